// A list of alike things, such as the arguments of a calculated field, each with its own fields.

import { Accordion, Button, Fieldset, Group, Stack, Text } from "@mantine/core";
import { useContext, useEffect, useRef, useState, type ReactElement, type ReactNode } from "react";
import { t } from "@/i18n";
import { AroundContext } from "./around";
import { Fields } from "./Fields";
import { freeKey, fromRows, initialValues, toRows, type FormField, type FormValues } from "./values";

interface Row {
  id: number;
  values: FormValues;
}

export function RowsField({ field, value, change }: { field: FormField; value: unknown; change: (value: unknown) => void }): ReactElement {
  const { keyed, keyPrefix, rowTitle } = field;
  const around = useContext(AroundContext);
  const read = (from: unknown): Row[] => {
    const stored = toRows(from, keyed);
    return (stored.length === 0 ? (field.begin ?? []) : stored).map((values, id) => ({ id, values }));
  };
  const [rows, setRows] = useState(() => read(value));
  const [open, setOpen] = useState<string[]>([]);
  // A field that waits for something changes the rows as they are then, not as they were drawn with it.
  const newest = useRef(rows);
  const told = useRef(value);
  const store = (update: (rows: Row[]) => Row[]): void => {
    newest.current = update(newest.current);
    setRows(newest.current);
    told.current = fromRows(newest.current.map((row) => row.values), keyed, keyPrefix !== undefined);
    change(told.current);
  };
  useEffect(() => {
    // What another field has set in the place of these rows; their own changes come back as they were told.
    if (JSON.stringify(value) !== JSON.stringify(told.current)) {
      told.current = value;
      newest.current = read(value);
      setRows(newest.current);
    }
  }, [value]);
  const fields = field.fields ?? [];
  const keys = keyed === undefined ? [] : rows.map((row) => row.values[keyed]);
  const twice = keys.find((key, at) => key !== undefined && key !== "" && keys.indexOf(key) < at);
  const settled = (row: FormValues, before: FormValues): FormValues => field.settle?.(row, before) ?? row;
  const add = (): void => {
    const key = keyed === undefined || keyPrefix === undefined ? {} : { [keyed]: freeKey(newest.current.map((row) => row.values), keyed, keyPrefix) };
    const id = Math.max(-1, ...newest.current.map((row) => row.id)) + 1;
    store((before) => [...before, { id, values: settled({ ...initialValues(fields, {}), ...key }, {}) }]);
    setOpen((before) => [...before, String(id)]);
  };
  const moved = (at: number): void => store((before) => before.toSpliced(at - 1, 2, ...before.slice(at - 1, at + 1).reverse()));
  const form = (row: Row): ReactNode => (
    <Fields fields={fields} values={row.values} change={(update) => store((before) => before.map((other) => (other.id === row.id ? { ...other, values: settled(update(other.values), other.values) } : other)))} />
  );
  const remove = (row: Row, at: number): ReactNode => (
    <Button size="compact-xs" variant="subtle" color="red" mt="xs" onClick={() => store((before) => before.filter((other) => other.id !== row.id))}>
      {t("Remove {n}", { n: at + 1 })}
    </Button>
  );
  const listed =
    rowTitle === undefined ? (
      rows.map((row, at) => (
        <Fieldset key={row.id} legend={`${at + 1}`} p="xs">
          {form(row)}
          {remove(row, at)}
        </Fieldset>
      ))
    ) : (
      <Accordion multiple variant="contained" chevronPosition="left" value={open} onChange={setOpen}>
        {rows.map((row, at) => {
          const { title, note } = rowTitle(row.values, around);
          return (
            <Accordion.Item key={row.id} value={String(row.id)}>
              <Accordion.Control>
                <Text span fw={500}>
                  {title === "" ? t("without a name") : title}
                </Text>{" "}
                <Text span size="sm" c="var(--soft-text)" ms="xs">
                  {t(note)}
                </Text>
              </Accordion.Control>
              <Accordion.Panel>
                {open.includes(String(row.id)) && (
                  <>
                    {form(row)}
                    <Group gap="xs">
                      {remove(row, at)}
                      {at > 0 && (
                        <Button size="compact-xs" variant="subtle" mt="xs" onClick={() => moved(at)}>
                          {t("Move {n} up", { n: at + 1 })}
                        </Button>
                      )}
                    </Group>
                  </>
                )}
              </Accordion.Panel>
            </Accordion.Item>
          );
        })}
      </Accordion>
    );
  return (
    <Fieldset legend={t(field.label)}>
      {field.help !== undefined && (
        <Text size="sm" c="var(--soft-text)" mb="xs">
          {t(field.help)}
        </Text>
      )}
      <Stack gap="xs">
        <AroundContext value={{ ...around, siblings: rows.map((row) => row.values) }}>{listed}</AroundContext>
        {twice !== undefined && (
          <Text size="sm" role="alert" c="var(--mantine-color-error)">
            {t("“{name}” is there twice, and only the last one would be kept.", { name: t(String(twice)) })}
          </Text>
        )}
        <Group>
          <Button size="xs" variant="default" onClick={add}>
            {t("Add to: {list}", { list: t(field.label) })}
          </Button>
        </Group>
      </Stack>
    </Fieldset>
  );
}
