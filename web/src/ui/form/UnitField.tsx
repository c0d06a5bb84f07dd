// A unit: the same for everybody, or one for each system of units, to which values are converted.

import { Autocomplete, Checkbox, Fieldset, SimpleGrid, Stack } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { isObject, unitForSystems } from "./values";

interface Props {
  label: string;
  description?: string;
  known: readonly string[];
  value: unknown;
  change: (value: unknown) => void;
}

const PARTS = [
  { name: "from", label: "Unit of the values" },
  { name: "METRIC", label: "Metric" },
  { name: "IMPERIAL", label: "Imperial" },
  { name: "HYBRID", label: "Hybrid" },
];

export function UnitField({ label, description, known, value, change }: Props): ReactElement {
  const each = isObject(value) ? value : undefined;
  const data = [...new Set(known)];
  const text = (stored: unknown): string => (typeof stored === "string" ? stored : "");
  const choose = (
    <Checkbox label={t("One for each system of units")} checked={each !== undefined} onChange={(event) => change(unitForSystems(value, event.currentTarget.checked))} />
  );
  if (each === undefined) {
    return (
      <Stack gap={6}>
        <Autocomplete label={label} description={description} data={data} limit={50} value={text(value)} onChange={change} />
        {choose}
      </Stack>
    );
  }
  return (
    <Fieldset legend={label} p="xs">
      <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="xs" mb="xs">
        {PARTS.map((part) => (
          <Autocomplete key={part.name} label={t(part.label)} data={data} limit={50} value={text(each[part.name])} onChange={(unit) => change({ ...each, [part.name]: unit })} />
        ))}
      </SimpleGrid>
      {choose}
    </Fieldset>
  );
}
