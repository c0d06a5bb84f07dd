// What clicks in a widget do.

import { Accordion, Button, Group, Select, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { changeWidget, newId } from "@/dashboard/edit/document";
import { safeUrl } from "@/dashboard/actions";
import { list, object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { EntityPicker } from "@/ui/form/EntityPicker";
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

const TYPES: readonly { value: string; label: string }[] = [
  { value: "openDashboardState", label: "Opens a state" },
  { value: "updateDashboardState", label: "Changes the present state" },
  { value: "openDashboard", label: "Opens another dashboard" },
  { value: "openURL", label: "Opens an address" },
];

interface FormProps {
  editor: DashboardEditor;
  action: Json;
  onChange: (action: Json) => void;
}

function ActionForm({ editor, action, onChange }: FormProps): ReactElement {
  const type = text(action["type"]) ?? "";
  const put = (change: Json): void => onChange({ ...action, ...change });
  const toState = type === "openDashboardState" || type === "updateDashboardState";
  const isCode = !TYPES.some(({ value }) => value === type);
  const url = text(action["url"]) ?? "";
  const dashboard = text(action["targetDashboardId"]);
  return (
    <Stack gap={6}>
      <TextInput label={t("Name")} value={text(action["name"]) ?? ""} onChange={(event) => put({ name: event.currentTarget.value })} />
      {isCode ? (
        <Text size="sm">{t("This action has code or is of another kind ({type}); it is changed as JSON.", { type })}</Text>
      ) : (
        <Select label={t("What it does")} allowDeselect={false} data={TYPES.map(({ value, label }) => ({ value, label: t(label) }))} value={type} onChange={(next) => put({ type: next })} />
      )}
      {toState && (
        <>
          <Select
            label={t("State")}
            data={editor.model.states.map((state) => ({ value: state.id, label: state.name || state.id }))}
            value={text(action["targetDashboardStateId"]) ?? null}
            onChange={(state) => put({ targetDashboardStateId: state })}
          />
          <Switch label={t("For the entity that was clicked")} checked={action["setEntityId"] !== false} onChange={(event) => put({ setEntityId: event.currentTarget.checked })} />
          {action["setEntityId"] !== false && (
            <TextInput label={t("Name of the parameter")} description={t("Empty for the entity that the state is about.")} value={text(action["stateEntityParamName"]) ?? ""} onChange={(event) => put({ stateEntityParamName: event.currentTarget.value || null })} />
          )}
          {type === "openDashboardState" && (
            <Switch label={t("In a dialog")} checked={action["openInSeparateDialog"] === true} onChange={(event) => put({ openInSeparateDialog: event.currentTarget.checked })} />
          )}
        </>
      )}
      {type === "openDashboard" && (
        <EntityPicker
          label={t("Dashboard")}
          list="/api/tenant/dashboards"
          value={dashboard === undefined ? null : { entityType: "DASHBOARD", id: dashboard }}
          onChange={(chosen) => put({ targetDashboardId: typeof chosen === "object" ? (chosen?.id ?? null) : chosen })}
        />
      )}
      {type === "openURL" && <TextInput label={t("Address")} value={url} error={url !== "" && safeUrl(url) === undefined ? t("The address of this action is none that may be opened.") : undefined} onChange={(event) => put({ url: event.currentTarget.value })} />}
      {(type === "openDashboard" || type === "openURL") && <Switch label={t("In a new tab")} checked={action["openNewBrowserTab"] === true} onChange={(event) => put({ openNewBrowserTab: event.currentTarget.checked })} />}
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
  return (
    <Stack gap="sm">
      {rows.length === 0 && <Text size="sm">{t("Clicks do nothing yet.")}</Text>}
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
              <ActionForm editor={editor} action={action} onChange={(next) => put(from, (all) => all.map((one, at) => (at === n ? next : one)))} />
              <Button mt="xs" size="compact-sm" variant="default" color="red" onClick={() => put(from, (all) => all.filter((_, at) => at !== n))}>
                {t("Remove")}
              </Button>
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
      <Group align="end" gap="xs">
        <Select flex={1} label={t("Where")} allowDeselect={false} data={offered.map(({ value, label }) => ({ value, label: t(label) }))} value={source} onChange={(value) => setSource(value ?? source)} />
        <Button onClick={() => put(source, (all) => [...all, { id: newId(), name: t("Action {n}", { n: rows.length + 1 }), icon: "more_horiz", type: "openDashboardState", targetDashboardStateId: null, setEntityId: true }])}>{t("Add an action")}</Button>
      </Group>
    </Stack>
  );
}
