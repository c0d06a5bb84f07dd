// The sources of a widget in their order, as many as its type draws.

import { ActionIcon, Alert, Button, Fieldset, Group, Stack } from "@mantine/core";
import type { ReactElement } from "react";
import { changeWidget } from "@/dashboard/edit/document";
import { addSource, keysIn, moveSource, removeSource, sourcePlace, sourcesIn } from "@/dashboard/edit/sources";
import { object, text, type Json } from "@/dashboard/model";
import { plural, t } from "@/i18n";
import type { WidgetForm } from "@/widgets/forms";
import type { TypeRules } from "@/widgets/typeRules";
import type { DashboardEditor } from "../editor";
import { MoveHandle } from "./MoveHandle";
import { SourceForm } from "./SourceForm";
import { useOrder } from "./useOrder";
import classes from "./data.module.css";

interface Props {
  editor: DashboardEditor;
  id: string;
  rules: TypeRules;
  form: WidgetForm | undefined;
}

export function Sources({ editor, id, rules, form }: Props): ReactElement | null {
  const { document, edit } = editor;
  const widget = object(object(document["widgets"])[id]);
  const type = text(widget["type"]) ?? "latest";
  const stored = sourcesIn(widget);
  const isList = sourcePlace(widget) === "datasources";
  const change = (update: (widget: Json) => Json): void => edit((before) => changeWidget(before, id, update(object(object(before["widgets"])[id]))));
  const shown = stored.length === 0 && rules.maxSources > 0 && !rules.sourcesOptional ? [{}] : rules.maxSources === 0 && !isList ? [] : stored;
  const order = useOrder(shown.length, (from, to) => change((before) => moveSource(before, from, to)));
  const many = shown.length > 1 || (isList && rules.maxSources > 1);
  const nameOf = (n: number): string => (many ? t("Source {n}", { n: n + 1 }) : t("Data"));
  if (shown.length === 0 && rules.maxSources === 0) {
    return null;
  }
  const begin = (): Json => ({ type: rules.kinds[0] ?? "entity", dataKeys: [], ...(rules.latestKeys ? { latestDataKeys: [] } : {}) });
  return (
    <Stack gap="xs">
      {shown.map((source, n) => (
        <Fieldset key={order.ids[n] ?? n} legend={nameOf(n)} p="xs" className={classes["source"] ?? ""} {...order.row(n)}>
          {(shown.length > 1 || (isList && rules.sourcesOptional)) && (
            <Group justify="space-between" mb={4}>
              {shown.length > 1 ? <MoveHandle name={nameOf(n)} n={n} total={shown.length} events={order.handle(n)} /> : <span />}
              <ActionIcon
                variant="subtle"
                color="red"
                aria-label={t("Remove: {name}", { name: nameOf(n) })}
                onClick={() => {
                  order.removed(n);
                  change((before) => removeSource(before, n));
                }}
              >
                ✕
              </ActionIcon>
            </Group>
          )}
          <SourceForm editor={editor} id={id} n={n} source={source} type={type} rules={rules} form={form} before={shown.slice(0, n).reduce((sum, one) => sum + keysIn(one, "dataKeys").length, 0)} />
        </Fieldset>
      ))}
      {shown.length > rules.maxSources && rules.maxSources > 0 && (
        <Alert color="yellow">{plural(rules.maxSources, "This kind of widget draws the first {n} source.", "This kind of widget draws the first {n} sources.")}</Alert>
      )}
      {isList && shown.length < rules.maxSources && (
        <Group>
          <Button size="xs" variant="default" onClick={() => change((before) => addSource(before, shown.length, begin))}>
            {t("Add a source")}
          </Button>
        </Group>
      )}
    </Stack>
  );
}
