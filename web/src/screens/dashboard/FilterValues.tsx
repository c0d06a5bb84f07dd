// Changes the values of filters that the dashboard leaves to its viewers.

import { Button, Group, NumberInput, Popover, Select, Stack, Text, TextInput, Title } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { userValues, type UserValue } from "@/dashboard/filters";
import type { Dashboard } from "@/dashboard/model";
import { fieldText, knownMoment } from "@/dashboard/time/zone";
import type { FilterValues as Values } from "@/dashboard/viewer";
import { t } from "@/i18n";

/** Writes a moment as the field of a date and a time takes it. */
function localTime(value: unknown): string {
  const ts = Number(value);
  return Number.isFinite(ts) ? fieldText(knownMoment(ts), undefined).slice(0, 16) : "";
}

/** A field for a value of a filter, of whatever type. */
export function ValueField({ label, type, value, onChange }: { label: string; type: string; value: unknown; onChange: (value: unknown) => void }): ReactElement {
  switch (type) {
    case "NUMERIC":
      return <NumberInput label={label} value={typeof value === "number" ? value : ""} onChange={(next) => onChange(next === "" ? null : Number(next))} />;
    case "BOOLEAN":
      return (
        <Select
          label={label}
          allowDeselect={false}
          comboboxProps={{ withinPortal: false }}
          data={[{ value: "true", label: t("yes") }, { value: "false", label: t("no") }]}
          value={String(value === true || value === "true")}
          onChange={(next) => onChange(next === "true")}
        />
      );
    case "DATE_TIME":
      return <TextInput type="datetime-local" label={label} value={localTime(value)} onChange={(event) => onChange(Date.parse(event.currentTarget.value) || null)} />;
    default:
      return <TextInput label={label} value={typeof value === "string" || typeof value === "number" ? String(value) : ""} onChange={(event) => onChange(event.currentTarget.value)} />;
  }
}

interface FilterProps {
  model: Dashboard;
  values: Values;
  onChange: (values: Values) => void;
}

export default function FilterValues({ model, values, onChange }: FilterProps): ReactElement {
  const [draft, setDraft] = useState<Values>(values);
  const [opened, setOpened] = useState(false);
  const offered = [...model.filters.values()].map((filter) => ({ filter, fields: userValues(filter) })).filter(({ fields }) => fields.length > 0);
  const put = (id: string, field: UserValue, value: unknown): void => setDraft((before) => new Map(before).set(id, new Map(before.get(id)).set(field.path, value)));
  const apply = (next: Values): void => {
    onChange(next);
    setOpened(false);
  };
  return (
    <Popover
      width={300}
      position="bottom-end"
      trapFocus
      shadow="md"
      opened={opened}
      onChange={(open) => {
        setOpened(open);
        setDraft(values);
      }}
    >
      <Popover.Target>
        <Button variant={values.size > 0 ? "light" : "default"} onClick={() => {
          setDraft(values);
          setOpened(!opened);
        }}>
          {t("Filters")}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={t("Values of filters")}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            apply(draft);
          }}
        >
          <Stack gap="xs">
            {offered.map(({ filter, fields }) => (
              <Stack key={filter.id} gap="xs">
                <Title order={2} size="h6">
                  {filter.name}
                </Title>
                {fields.map((field) => {
                  const changed = draft.get(filter.id);
                  const value = changed?.has(field.path) === true ? changed.get(field.path) : field.value;
                  return <ValueField key={field.path} label={field.label} type={field.valueType} value={value} onChange={(next) => put(filter.id, field, next)} />;
                })}
              </Stack>
            ))}
            <Text size="xs" c="var(--soft-text)">
              {t("They are kept in the address, and change nothing for others.")}
            </Text>
            <Group>
              <Button type="submit">{t("Apply")}</Button>
              <Button variant="default" onClick={() => apply(new Map())}>
                {t("As stored")}
              </Button>
            </Group>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
