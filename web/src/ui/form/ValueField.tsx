// A value of whatever type: first its type, then what it is.

import { Group, NumberInput, Select, TextInput } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { JsonField } from "./JsonField";
import { kindOfValue, VALUE_KINDS } from "./values";

interface Props {
  label: string;
  description?: string;
  value: unknown;
  change: (value: unknown) => void;
}

export function ValueField({ label, description, value, change }: Props): ReactElement {
  // JSON may be a plain number, too; whoever has chosen to write it as JSON goes on so.
  const [asJson, setAsJson] = useState(kindOfValue(value) === "JSON");
  const kind = asJson ? "JSON" : kindOfValue(value);
  const text = typeof value === "string" ? value : "";
  return (
    <Group align="end" gap="xs" wrap="nowrap">
      <Select
        w={130}
        style={{ flex: "none", alignSelf: kind === "JSON" ? "start" : undefined }}
        label={t("Type")}
        aria-label={t("{label}: type", { label })}
        allowDeselect={false}
        data={VALUE_KINDS.map((one) => ({ value: one.value, label: t(one.label) }))}
        value={kind}
        onChange={(next) => {
          const chosen = VALUE_KINDS.find((one) => one.value === next);
          setAsJson(chosen?.value === "JSON");
          if (chosen !== undefined && chosen.value !== kind) {
            change(chosen.empty);
          }
        }}
      />
      <div style={{ flex: 1, minWidth: 0 }}>
        {kind === "BOOLEAN" ? (
          <Select label={label} description={description} allowDeselect={false} data={[{ value: "true", label: t("Yes") }, { value: "false", label: t("No") }]} value={String(value === true)} onChange={(next) => change(next === "true")} />
        ) : kind === "DOUBLE" ? (
          <NumberInput label={label} description={description} value={typeof value === "number" ? value : ""} onChange={(next) => change(next === "" ? 0 : Number(next))} />
        ) : kind === "JSON" ? (
          <JsonField label={label} {...(description === undefined ? {} : { description })} value={value} change={change} />
        ) : (
          <TextInput label={label} description={description} value={text} onChange={(event) => change(event.currentTarget.value)} />
        )}
      </div>
    </Group>
  );
}
