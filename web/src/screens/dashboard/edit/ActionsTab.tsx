// What clicks in a widget do.

import { Accordion, Button, Group, Select, Stack, Text } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { changeWidget, newId } from "@/dashboard/edit/document";
import { settleAction } from "@/dashboard/edit/mobileAction";
import { list, object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { AroundContext } from "@/ui/form/around";
import { Fields } from "@/ui/form/Fields";
import type { FormField } from "@/ui/form/values";
import { ACTION_TYPES, actionFields } from "@/widgets/form/actions";
import type { DashboardEditor } from "./editor";

/** Where clicks come from; types of widgets have some of them. */
const SOURCES: readonly { value: string; label: string; of?: RegExp }[] = [
  { value: "headerButton", label: "Button in the head" },
  { value: "cardClick", label: "Click on the card", of: /card|count|progress|battery|signal|status|tank|label/ },
  { value: "rowClick", label: "Click on a row", of: /table/ },
  { value: "rowDoubleClick", label: "Double click on a row", of: /table/ },
  { value: "actionCellButton", label: "Button in each row", of: /table/ },
  { value: "elementClick", label: "Click on an element of the text", of: /markdown|html/ },
  { value: "click", label: "Click", of: /button|map|chart|pie|doughnut|bars|count|radar|polar/ },
  { value: "nodeSelected", label: "Choice of a node", of: /hierarchy/ },
];

/** Besides what an action does: what it is called, and when and where it is offered. */
const OFFERED: readonly FormField[] = [
  { name: "name", label: "Name", required: true },
  { name: "icon", label: "Icon" },
  { name: "useShowWidgetActionFunction", label: "Offered only if a function says so", type: "boolean" },
  { name: "showWidgetActionFunction", label: "Whether it is offered: function", type: "code", help: "function (widgetContext, data)", when: ({ useShowWidgetActionFunction: uses }) => uses === true },
];
const DONE = actionFields("", { knowsStates: true });

interface FormProps {
  action: Json;
  onChange: (change: (before: Json) => Json) => void;
}

function ActionForm({ action, onChange }: FormProps): ReactElement {
  const type = text(action["type"]) ?? "";
  const isKnown = ACTION_TYPES.some(({ value }) => value === type);
  return (
    <Stack gap={6}>
      {!isKnown && <Text size="sm">{t("This action is of another kind ({type}); it is changed as JSON.", { type })}</Text>}
      <Fields fields={isKnown ? [...OFFERED, ...DONE] : OFFERED} values={action} change={(update) => onChange((before) => settleAction(update(before), before))} />
    </Stack>
  );
}

export default function ActionsTab({ editor, id, fqn }: { editor: DashboardEditor; id: string; fqn: string }): ReactElement {
  const config = object(object(object(editor.document["widgets"])[id])["config"]);
  const actions = object(config["actions"]);
  const offered = SOURCES.filter(({ value, of }) => of === undefined || of.test(fqn) || list(actions[value]).length > 0);
  const [source, setSource] = useState(offered[0]?.value ?? "");
  const rows = Object.entries(actions).flatMap(([from, stored]) => list(stored).map((action, n) => ({ from, n, action: object(action) })));
  const put = (from: string, change: (actions: Json[]) => Json[]): void =>
    editor.edit((before) => {
      const widget = object(object(before["widgets"])[id]);
      const own = object(widget["config"]);
      const all = object(own["actions"]);
      return changeWidget(before, id, { ...widget, config: { ...own, actions: { ...all, [from]: change(list(all[from]).map(object)) } } });
    });
  const labelOf = (from: string): string => t(SOURCES.find(({ value }) => value === from)?.label ?? from);
  const around = { values: config, names: {}, options: { states: editor.model.states.map((state) => ({ value: state.id, label: state.name || state.id })) } };
  return (
    <Stack gap="sm">
      {rows.length === 0 && <Text size="sm">{t("Clicks do nothing yet.")}</Text>}
      <AroundContext value={around}>
      <Accordion variant="separated">
        {rows.map(({ from, n, action }) => (
          <Accordion.Item key={text(action["id"]) ?? `${from} ${n}`} value={text(action["id"]) ?? `${from} ${n}`}>
            <Accordion.Control>
              {text(action["name"]) ?? t("without a name")}
              <Text size="xs" c="var(--soft-text)">
                {labelOf(from)}
              </Text>
            </Accordion.Control>
            <Accordion.Panel>
              <ActionForm action={action} onChange={(change) => put(from, (all) => all.map((one, at) => (at === n ? change(one) : one)))} />
              <Button mt="xs" size="compact-sm" variant="default" color="red" onClick={() => put(from, (all) => all.filter((_, at) => at !== n))}>
                {t("Remove")}
              </Button>
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
      </AroundContext>
      <Group align="end" gap="xs">
        <Select flex={1} label={t("Where")} allowDeselect={false} data={offered.map(({ value, label }) => ({ value, label: t(label) }))} value={source} onChange={(value) => setSource(value ?? source)} />
        <Button onClick={() => put(source, (all) => [...all, { id: newId(), name: t("Action {n}", { n: rows.length + 1 }), icon: "more_horiz", type: "openDashboardState", targetDashboardStateId: null, setEntityId: true }])}>{t("Add an action")}</Button>
      </Group>
    </Stack>
  );
}
