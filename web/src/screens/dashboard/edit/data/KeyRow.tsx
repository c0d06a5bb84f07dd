// One key of a source: its name and kind, and behind them how it is written, aggregated, processed and drawn.

import { ActionIcon, Autocomplete, Group, Select, Stack, Switch } from "@mantine/core";
import { lazy, Suspense, type HTMLAttributes, type ReactElement } from "react";
import { nameCourse, nameKey } from "@/dashboard/edit/sources";
import { object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { Waiting } from "@/ui/feedback";
import { Fields } from "@/ui/form/Fields";
import { codeText, type FormField } from "@/ui/form/values";
import { keyFields, type KeyUse } from "@/widgets/form/keys";
import type { Trial } from "./KeyFunction";
import classes from "./data.module.css";

const KeyFunction = lazy(() => import("./KeyFunction"));

const KIND_LABELS: Readonly<Record<string, { label: string }>> = {
  timeseries: { label: "Telemetry" },
  attribute: { label: "Attribute" },
  entityField: { label: "Field of the entity" },
  alarm: { label: "Field of the alarm" },
  function: { label: "Function" },
  count: { label: "Number" },
};
const PROCESSED = ["time", "value", "prevValue", "timePrev", "prevOrigValue"];
const MADE = ["time", "prevValue"];
/** Fields of entities and alarms are shown as they are. */
const CAN_BE_PROCESSED = new Set(["timeseries", "attribute", "count"]);

interface KeyRowProps {
  /** What the key is for, where there is one for each purpose. */
  label?: string;
  value: Json;
  use: KeyUse;
  kinds: readonly string[];
  known: (kind: string) => readonly string[];
  /** What the widget's type has to set for each key. */
  fields: readonly FormField[];
  /** Changes when the history does, so that fields begin anew with what is there now. */
  turn: number;
  opened: boolean;
  toggle: () => void;
  onChange: (update: (before: Json) => Json) => void;
  /** Left out where the key has to be. */
  onRemove?: () => void;
  trial: (key: Json) => Promise<Trial | undefined>;
  row: HTMLAttributes<HTMLElement>;
  /** What moves it among several. */
  handle: ReactElement | undefined;
}

function Details({ value, use, fields, onChange, trial }: KeyRowProps): ReactElement {
  const type = text(value["type"]) ?? "timeseries";
  const processed = value["usePostProcessing"] !== false && codeText(value["postFuncBody"]).trim() !== "";
  return (
    <Stack gap={6}>
      <Fields fields={keyFields(use)} values={value} change={onChange} />
      {type === "function" && (
        <Suspense fallback={<Waiting />}>
          <KeyFunction
            label={t("Function that makes its values")}
            help="function (time, prevValue)"
            names={MADE}
            value={value["funcBody"]}
            change={(funcBody) => onChange((before) => ({ ...before, funcBody }))}
            trial={() => Promise.resolve({ args: [Date.now(), 0], given: "0" })}
          />
        </Suspense>
      )}
      {CAN_BE_PROCESSED.has(type) && use !== "alarm" && (
        <Switch
          label={t("A function processes the values")}
          checked={processed}
          onChange={(event) => {
            const on = event.currentTarget.checked;
            onChange((before) => ({ ...before, usePostProcessing: on, ...(on && codeText(before["postFuncBody"]).trim() === "" ? { postFuncBody: "return value;" } : {}) }));
          }}
        />
      )}
      {CAN_BE_PROCESSED.has(type) && use !== "alarm" && processed && (
        <Suspense fallback={<Waiting />}>
          <KeyFunction
            label={t("Function that processes the values")}
            help={`function (${PROCESSED.join(", ")})`}
            names={PROCESSED}
            value={value["postFuncBody"]}
            change={(postFuncBody) => onChange((before) => ({ ...before, postFuncBody, usePostProcessing: true }))}
            trial={() => trial(value)}
          />
        </Suspense>
      )}
      {fields.length > 0 && <Fields fields={fields} values={object(value["settings"])} change={(update) => onChange((before) => ({ ...before, settings: update(object(before["settings"])) }))} />}
    </Stack>
  );
}

export function KeyRow(props: KeyRowProps): ReactElement {
  const { label, value, kinds, known, turn, opened, toggle, onChange, onRemove, row, handle } = props;
  const name = text(value["name"]) ?? "";
  const type = text(value["type"]) ?? "timeseries";
  const offered = kinds.includes(type) ? kinds : [type, ...kinds];
  return (
    <div role="group" aria-label={label ?? (name || t("New key"))} className={classes["key"]} {...row}>
      <Group gap={4} align="end" wrap="nowrap">
        {handle}
        <Autocomplete
          flex={1}
          miw={0}
          label={label ?? t("Key")}
          data={[...new Set(known(type))]}
          limit={100}
          value={name}
          onChange={(next) => onChange((before) => (type === "function" ? nameCourse(before, next) : nameKey(before, next)))}
        />
        {offered.length > 1 && (
          <Select w={112} label={t("Kind")} allowDeselect={false} data={offered.map((kind) => ({ value: kind, label: t(KIND_LABELS[kind]?.label ?? kind) }))} value={type} onChange={(next) => onChange((before) => ({ ...before, type: next }))} />
        )}
        <ActionIcon variant="subtle" mb={4} aria-expanded={opened} aria-label={t("More of {name}", { name: name || t("New key") })} onClick={toggle}>
          {opened ? "▴" : "▾"}
        </ActionIcon>
        {onRemove !== undefined && (
          <ActionIcon variant="subtle" color="red" mb={4} aria-label={t("Remove the key {name}", { name })} onClick={onRemove}>
            ✕
          </ActionIcon>
        )}
      </Group>
      {opened && <Details key={turn} {...props} />}
    </div>
  );
}
