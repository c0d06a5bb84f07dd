// Live latest values with their recent course, and attributes that can be changed.

import { Button, Group, SegmentedControl, Text, TextInput } from "@mantine/core";
import { lazy, Suspense, useState, type FormEvent, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, Scope } from "@/api/types";
import { useSession } from "@/app/session";
import { plural, t } from "@/i18n";
import { useLatestValues } from "@/live/latest";
import { attributesOf, latestTelemetry } from "@/live/protocol";
import { notify } from "@/ui/feedback";
import { DeleteSeries } from "./DeleteSeries";
import { useStoredCourse } from "./storedCourse";
import { typedValue, ValueTable } from "./ValueTable";

const ShowOnDashboard = lazy(() => import("./ShowOnDashboard"));

function ShowButton({ entity, type, keys }: { entity: Entity; type: "timeseries" | "attribute"; keys: string[] }): ReactElement {
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button size="xs" variant="default" onClick={() => setOpened(true)}>
        {t("Show on a dashboard")}
      </Button>
      {opened && (
        <Suspense>
          <ShowOnDashboard entity={entity} type={type} keys={keys} onClose={() => setOpened(false)} />
        </Suspense>
      )}
    </>
  );
}

export function TelemetryTab({ entity }: { entity: Entity }): ReactElement {
  const { authority } = useSession();
  const values = useLatestValues(latestTelemetry(entity.id));
  const onView = useStoredCourse(entity.id, values);
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  const mayDelete = authority !== "SYS_ADMIN";
  return (
    <ValueTable
      label={t("Latest telemetry")}
      values={values}
      gone={gone}
      course
      onView={onView}
      empty={t("No telemetry yet. Values appear here as soon as they arrive.")}
      bulk={(keys, done) =>
        mayDelete && (
          <>
            {authority === "TENANT_ADMIN" && <ShowButton entity={entity} type="timeseries" keys={keys} />}
            <DeleteSeries
              id={entity.id}
              keys={keys}
              onDone={(all) => {
                done();
                setGone((before) => new Set([...before, ...(all ? keys : [])]));
              }}
            />
          </>
        )
      }
    />
  );
}

const SCOPES: { value: Scope; label: string }[] = [
  { value: "SERVER_SCOPE", label: "Server" },
  { value: "SHARED_SCOPE", label: "Shared" },
  { value: "CLIENT_SCOPE", label: "Client" },
];

export function AttributesTab({ entity }: { entity: Entity }): ReactElement {
  const [scope, setScope] = useState<Scope>("SERVER_SCOPE");
  const scopes = entity.id.entityType === "DEVICE" ? SCOPES : SCOPES.slice(0, 1);
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
      <ScopeAttributes key={scope} entity={entity} scope={scope} />
    </>
  );
}

function ScopeAttributes({ entity, scope }: { entity: Entity; scope: Scope }): ReactElement {
  const { authority } = useSession();
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const values = useLatestValues(attributesOf(entity.id, scope));
  // What devices say of themselves is theirs to change; administrators may only forget it.
  const mayRemove = authority !== "SYS_ADMIN";
  const mayWrite = mayRemove && scope !== "CLIENT_SCOPE";
  const path = `/api/plugins/telemetry/${entity.id.entityType}/${entity.id.id}/${scope}`;
  const set = async (key: string, next: unknown): Promise<void> => {
    await api.post(path, { [key]: next });
    setGone((before) => new Set([...before].filter((one) => one !== key)));
  };
  const add = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    try {
      await set(name, typedValue(value));
      setName("");
      setValue("");
    } catch (error) {
      notify.error(error);
    }
  };
  const remove = async (keys: string[]): Promise<void> => {
    try {
      // Each key on its own: a name may hold the comma that would part it from the next.
      for (const key of keys) {
        await api.delete(path, { key });
      }
      setGone((before) => new Set([...before, ...keys]));
    } catch (error) {
      notify.error(error);
    }
  };
  return (
    <>
      {mayWrite && (
        <form onSubmit={(event) => void add(event)}>
          <Group mb="md" align="end">
            <TextInput label={t("Key")} required value={name} onChange={(event) => setName(event.currentTarget.value)} />
            <TextInput label={t("Value")} required value={value} onChange={(event) => setValue(event.currentTarget.value)} />
            <Button type="submit">{t("Set")}</Button>
            <Text size="sm">{t("Numbers, true, false and JSON keep their type; all else is text.")}</Text>
          </Group>
        </form>
      )}
      <ValueTable
        label={t("Attributes")}
        values={values}
        gone={gone}
        empty={t("No attributes in this scope.")}
        {...(mayWrite ? { onSave: set } : {})}
        {...(mayRemove ? { onRemove: (key: string) => void remove([key]) } : {})}
        bulk={(keys, done) => (
          <>
            {authority === "TENANT_ADMIN" && <ShowButton entity={entity} type="attribute" keys={keys} />}
            {mayRemove && (
              <Button size="xs" color="red" onClick={() => void remove(keys).then(done)}>
                {plural(keys.length, "Delete {n} attribute", "Delete {n} attributes")}
              </Button>
            )}
          </>
        )}
      />
    </>
  );
}
