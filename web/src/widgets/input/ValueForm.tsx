// A form that saves attributes and telemetry of entities: the one for many values, and the older ones for one value each.

import { Button, Fieldset, Group } from "@mantine/core";
import { useMemo, type CSSProperties, type FormEvent, type ReactElement } from "react";
import { currentClaims } from "@/api/session";
import { number, text } from "@/dashboard/model";
import { t } from "@/i18n";
import { EmptyState, notify } from "@/ui/feedback";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import { isBoolean } from "./fields";
import { planOf } from "./olderForms";
import { useForm, type Entry, type ValuesForm } from "./useForm";
import { ValueField } from "./ValueField";
import classes from "./input.module.css";

function Location({ form, keys }: { form: ValuesForm; keys: { latitude: string; longitude: string; precise: boolean } }): ReactElement {
  const ask = (): void => {
    if (!("geolocation" in navigator) || !isSecureContext) {
      notify.error(t("The browser tells its place only to pages that came over HTTPS."));
      return;
    }
    navigator.geolocation.getCurrentPosition(
      ({ coords }) =>
        form.entries.forEach((entry) => {
          const value = entry.field.key.name === keys.latitude ? coords.latitude : entry.field.key.name === keys.longitude ? coords.longitude : undefined;
          if (value !== undefined) {
            form.set(entry, String(value));
          }
        }),
      (error) => notify.error(t("The browser did not tell its place: {problem}", { problem: error.message })),
      { enableHighAccuracy: keys.precise },
    );
  };
  return (
    <Button size="compact-sm" variant="default" onClick={ask}>
      {t("Use my place")}
    </Button>
  );
}

export default function ValueForm({ widget, sources, entities }: WidgetProps): ReactElement {
  const { settings, fqn } = widget;
  const plan = useMemo(() => planOf(fqn, settings), [fqn, settings]);
  const form = useForm(sources, plan, settings["updateAllValues"] === true);
  const isVisitor = currentClaims()?.isPublic === true;
  const shown = form.entries.filter(({ field }) => !field.hidden);
  if (entities.length === 0) {
    return <EmptyState>{t("No entity is chosen for this.")}</EmptyState>;
  }
  if (shown.length === 0) {
    return <EmptyState>{t("This form has no keys yet.")}</EmptyState>;
  }
  const columns = settings["fieldsAlignment"] === "column" || settings["inputFieldsAlignment"] === "column" ? 1 : Math.min(12, Math.max(1, number(settings["fieldsInRow"]) ?? (shown.length === 1 ? 1 : 2)));
  const grid = { "--columns": columns, columnGap: number(settings["columnGap"]) ?? 10, rowGap: number(settings["rowGap"]) ?? 5 } as CSSProperties;
  const groups = new Map<string, Entry[]>();
  shown.forEach((entry) => groups.set(entry.entity.id.id, [...(groups.get(entry.entity.id.id) ?? []), entry]));
  const faults = shown.some((entry) => form.faultOf(entry) !== undefined);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (plan.buttons && !faults) {
      void form.save();
    }
  };
  const one = (entry: Entry): ReactElement => (
    <ValueField
      key={entry.id}
      field={entry.field}
      input={form.inputOf(entry)}
      fault={form.isTouched(entry) ? form.faultOf(entry) : undefined}
      disabled={isVisitor || form.isDisabled(entry)}
      onChange={(input) => form.set(entry, input)}
      onDone={(input) => {
        if (!plan.buttons && !isBoolean(entry.field.kind) && (input !== undefined || form.isChanged(entry))) {
          void form.save(entry, input);
        }
      }}
    />
  );
  const grouped = settings["showGroupTitle"] === true;
  return (
    <form className={classes["form"]} onSubmit={submit} noValidate aria-label={widget.title || t("Values")} aria-busy={form.saving}>
      <div className={classes["fields"]}>
        {[...groups.values()].map((entries) =>
          grouped ? (
            <Fieldset key={entries[0]?.id} p="xs" legend={fillPattern(text(settings["groupTitle"]) ?? "${entityName}", entries[0]?.entity, entries.map(({ field }) => field.key))}>
              <div className={classes["grid"]} style={grid}>{entries.map(one)}</div>
            </Fieldset>
          ) : (
            <div key={entries[0]?.id} className={classes["grid"]} style={grid}>{entries.map(one)}</div>
          ),
        )}
      </div>
      {form.problem !== undefined && <p role="alert" className={classes["problem"]}>{t("Not saved: {problem}", { problem: form.problem })}</p>}
      {isVisitor && <p className={classes["note"]}>{t("Visitors of a public link see this and change nothing.")}</p>}
      {!isVisitor && (plan.buttons || plan.location !== undefined) && (
        <Group gap="xs" className={classes["buttons"] ?? ""}>
          {form.done && settings["showResultMessage"] !== false && <span role="status" className={classes["note"]}>{t("Saved")}</span>}
          {plan.location !== undefined && <Location form={form} keys={plan.location} />}
          <Button size="compact-sm" variant="default" disabled={!form.changed} onClick={form.undo}>
            {text(settings["resetButtonLabel"]) ?? t("Undo")}
          </Button>
          <Button size="compact-sm" type="submit" loading={form.saving} disabled={faults || (!form.changed && settings["updateAllValues"] !== true)}>
            {text(settings["saveButtonLabel"]) ?? t("Save")}
          </Button>
        </Group>
      )}
      {!plan.buttons && form.done && settings["showResultMessage"] !== false && <p role="status" className={classes["note"]}>{t("Saved")}</p>}
    </form>
  );
}
