// One or several of choices whose values may be of any type.

import { MultiSelect, Select } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import type { FormChoice } from "./values";

interface Props {
  label: string;
  description?: string;
  choices: readonly FormChoice[];
  multiple: boolean;
  value: unknown;
  change: (value: unknown) => void;
}

/** Lists take texts for values. */
const keyOf = (value: unknown): string => JSON.stringify(value ?? null);

export function ChoiceField({ label, description, choices, multiple, value, change }: Props): ReactElement {
  const chosen = multiple ? (Array.isArray(value) ? (value as unknown[]) : []) : value === undefined || value === null ? [] : [value];
  // What is stored stays a choice, even if it is none any more.
  const offered = new Map([...chosen.map((one): FormChoice => ({ value: one, label: String(one) })), ...choices].map((one) => [keyOf(one.value), one]));
  const data = [...offered].map(([key, one]) => ({ value: key, label: one.label === "" ? key : one.label }));
  const valueOf = (key: string): unknown => offered.get(key)?.value;
  const common = { label, data, clearButtonProps: { "aria-label": t("Clear the choice") }, ...(description === undefined ? {} : { description }) };
  return multiple ? (
    <MultiSelect {...common} clearable value={chosen.map(keyOf)} onChange={(keys) => change(keys.map(valueOf))} />
  ) : (
    <Select {...common} clearable value={chosen.length === 0 ? null : keyOf(chosen[0])} onChange={(key) => change(key === null ? null : valueOf(key))} />
  );
}
