// A list of alike things, such as the arguments of a calculated field, each with its own fields.

import { Button, Fieldset, Group, Stack, Text } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { Fields } from "./Fields";
import { freeKey, fromRows, initialValues, toRows, type FormField, type FormValues } from "./values";

interface Row {
  id: number;
  values: FormValues;
}

export function RowsField({ field, value, change }: { field: FormField; value: unknown; change: (value: unknown) => void }): ReactElement {
  const { keyed, keyPrefix } = field;
  const [rows, setRows] = useState<Row[]>(() => {
    const stored = toRows(value, keyed);
    return (stored.length === 0 ? (field.begin ?? []) : stored).map((values, id) => ({ id, values }));
  });
  const store = (next: Row[]): void => {
    setRows(next);
    change(fromRows(next.map((row) => row.values), keyed, keyPrefix !== undefined));
  };
  const fields = field.fields ?? [];
  const keys = keyed === undefined ? [] : rows.map((row) => row.values[keyed]);
  const twice = keys.find((key, at) => key !== undefined && key !== "" && keys.indexOf(key) < at);
  const added = (): FormValues => {
    const key = keyed === undefined || keyPrefix === undefined ? {} : { [keyed]: freeKey(rows.map((row) => row.values), keyed, keyPrefix) };
    return { ...initialValues(fields, {}), ...key };
  };
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
        {twice !== undefined && (
          <Text size="sm" role="alert" c="var(--mantine-color-error)">
            {t("“{name}” is there twice, and only the last one would be kept.", { name: t(String(twice)) })}
          </Text>
        )}
        <Group>
          <Button
            size="xs"
            variant="default"
            onClick={() => store([...rows, { id: Math.max(-1, ...rows.map((row) => row.id)) + 1, values: added() }])}
          >
            {t("Add to: {list}", { list: t(field.label) })}
          </Button>
        </Group>
      </Stack>
    </Fieldset>
  );
}
