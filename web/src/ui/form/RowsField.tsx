// A list of alike things, such as the arguments of a calculated field, each with its own fields.

import { Button, Fieldset, Group, Stack, Text } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { Fields } from "./Fields";
import { fromRows, initialValues, toRows, type FormField, type FormValues } from "./values";

interface Row {
  id: number;
  values: FormValues;
}

export function RowsField({ field, value, change }: { field: FormField; value: unknown; change: (value: unknown) => void }): ReactElement {
  const [rows, setRows] = useState<Row[]>(() => toRows(value, field.keyed).map((values, id) => ({ id, values })));
  const store = (next: Row[]): void => {
    setRows(next);
    change(fromRows(next.map((row) => row.values), field.keyed));
  };
  const fields = field.fields ?? [];
  return (
    <Fieldset legend={t(field.label)}>
      {field.help !== undefined && (
        <Text size="sm" c="var(--soft-text)" mb="xs">
          {t(field.help)}
        </Text>
      )}
      <Stack gap="xs">
        {rows.map((row, at) => (
          <Fieldset key={row.id} legend={`${at + 1}`} p="xs">
            <Fields
              fields={fields}
              values={row.values}
              change={(update) => store(rows.map((other) => (other.id === row.id ? { ...other, values: update(other.values) } : other)))}
            />
            <Button size="compact-xs" variant="subtle" color="red" mt="xs" onClick={() => store(rows.filter((other) => other.id !== row.id))}>
              {t("Remove {n}", { n: at + 1 })}
            </Button>
          </Fieldset>
        ))}
        <Group>
          <Button
            size="xs"
            variant="default"
            onClick={() => store([...rows, { id: Math.max(-1, ...rows.map((row) => row.id)) + 1, values: initialValues(fields, {}) }])}
          >
            {t("Add to: {list}", { list: t(field.label) })}
          </Button>
        </Group>
      </Stack>
    </Fieldset>
  );
}
