// Live latest values with their recent course, and attributes that can be changed.

import { ActionIcon, Button, Group, SegmentedControl, Table, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent, type ReactElement } from "react";
import { api } from "@/api/client";
import type { EntityId, Scope } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { useKeys, useLatestValues, useValue, type LatestValues } from "@/live/latest";
import { attributesOf, latestTelemetry } from "@/live/protocol";
import { Ago, EmptyState, notify } from "@/ui/feedback";
import { Sparkline } from "@/ui/Sparkline";

export function valueText(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Reads what a person typed as the JSON value that it looks like, else as text. */
export function typedValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function ValueRow({ values, name, course, onRemove }: { values: LatestValues; name: string; course?: boolean; onRemove?: () => void }): ReactElement | null {
  const latest = useValue(values, name);
  if (latest === undefined) {
    return null;
  }
  return (
    <Table.Tr>
      <Table.Td>{name}</Table.Td>
      <Table.Td data-key={name} style={{ fontVariantNumeric: "tabular-nums" }}>
        {valueText(latest.value)}
      </Table.Td>
      {course === true && (
        <Table.Td>
          <Sparkline values={values.history(name).map((point) => Number(point.value))} />
        </Table.Td>
      )}
      <Table.Td>
        <Ago ts={latest.ts} />
      </Table.Td>
      {onRemove !== undefined && (
        <Table.Td>
          <ActionIcon variant="subtle" color="red" aria-label={t("Delete {name}", { name })} onClick={onRemove}>
            ✕
          </ActionIcon>
        </Table.Td>
      )}
    </Table.Tr>
  );
}

export function TelemetryTab({ id }: { id: EntityId }): ReactElement {
  const values = useLatestValues(latestTelemetry(id));
  const keys = useKeys(values);
  if (keys.length === 0) {
    return <EmptyState>{t("No telemetry yet. Values appear here as soon as they arrive.")}</EmptyState>;
  }
  return (
    <Table aria-label={t("Latest telemetry")}>
      <Table.Thead>
        <Table.Tr>
          {["Key", "Value", "Course", "Updated"].map((label) => (
            <Table.Th key={label}>{t(label)}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {keys.map((key) => (
          <ValueRow key={key} values={values} name={key} course />
        ))}
      </Table.Tbody>
    </Table>
  );
}

const SCOPES: { value: Scope; label: string }[] = [
  { value: "SERVER_SCOPE", label: "Server" },
  { value: "SHARED_SCOPE", label: "Shared" },
  { value: "CLIENT_SCOPE", label: "Client" },
];

export function AttributesTab({ id }: { id: EntityId }): ReactElement {
  const [scope, setScope] = useState<Scope>("SERVER_SCOPE");
  const scopes = id.entityType === "DEVICE" ? SCOPES : SCOPES.slice(0, 1);
  return (
    <>
      {scopes.length > 1 && (
        <SegmentedControl
          mb="md"
          aria-label={t("Scope")}
          value={scope}
          onChange={(value) => setScope(SCOPES.find((one) => one.value === value)?.value ?? "SERVER_SCOPE")}
          data={scopes.map(({ value, label }) => ({ value, label: t(label) }))}
        />
      )}
      <ScopeAttributes key={scope} id={id} scope={scope} />
    </>
  );
}

function ScopeAttributes({ id, scope }: { id: EntityId; scope: Scope }): ReactElement {
  const { authority } = useSession();
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const values = useLatestValues(attributesOf(id, scope));
  const keys = useKeys(values).filter((key) => !removed.has(key));
  const mayWrite = scope !== "CLIENT_SCOPE" && authority !== "SYS_ADMIN";
  const path = `/api/plugins/telemetry/${id.entityType}/${id.id}/${scope}`;
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    try {
      await api.post(path, { [name]: typedValue(value) });
      setRemoved((before) => new Set([...before].filter((key) => key !== name)));
      setName("");
      setValue("");
    } catch (error) {
      notify.error(error);
    }
  };
  const remove = async (key: string): Promise<void> => {
    try {
      await api.delete(path, { keys: key });
      setRemoved((before) => new Set(before).add(key));
    } catch (error) {
      notify.error(error);
    }
  };
  return (
    <>
      {mayWrite && (
        <form onSubmit={(event) => void save(event)}>
          <Group mb="md" align="end">
            <TextInput label={t("Key")} required value={name} onChange={(event) => setName(event.currentTarget.value)} />
            <TextInput label={t("Value")} required value={value} onChange={(event) => setValue(event.currentTarget.value)} />
            <Button type="submit">{t("Set")}</Button>
            <Text size="sm">{t("Numbers, true, false and JSON keep their type; all else is text.")}</Text>
          </Group>
        </form>
      )}
      {keys.length === 0 ? (
        <EmptyState>{t("No attributes in this scope.")}</EmptyState>
      ) : (
        <Table aria-label={t("Attributes")}>
          <Table.Thead>
            <Table.Tr>
              {["Key", "Value", "Updated"].map((label) => (
                <Table.Th key={label}>{t(label)}</Table.Th>
              ))}
              {mayWrite && <Table.Th aria-label={t("Delete")} />}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {keys.map((key) => (
              <ValueRow key={key} values={values} name={key} {...(mayWrite ? { onRemove: () => void remove(key) } : {})} />
            ))}
          </Table.Tbody>
        </Table>
      )}
    </>
  );
}
