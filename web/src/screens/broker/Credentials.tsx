// What clients log in with, and on which topics they may publish and subscribe.

import { Button, Drawer, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import type { MqttClientCredentials, ShortMqttClientCredentials } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { formatTime, t } from "@/i18n";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { AS_OPENED, FieldsForm } from "@/ui/FieldsForm";
import type { FormField } from "@/ui/form/values";
import type { GridSort } from "@/ui/grid/sorting";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { FilterForm } from "@/ui/list/FilterForm";
import { useListState } from "@/ui/list/state";
import { BROKER_DATA, CLIENT_TYPES, CREDENTIALS_TYPES, credentialsFields, credentialsForm, credentialsOf, hasPassword, wordFor } from "./model";
import { AskFirst, AskForMany, changed } from "./parts";

const COLUMNS: Column<ShortMqttClientCredentials>[] = [
  { key: "name", label: "Name", px: 260, least: 130, hideable: false, sortable: true, text: (row) => row.name },
  { key: "clientType", label: "Client type", px: 130, sortable: true, text: (row) => wordFor(CLIENT_TYPES, row.clientType) },
  { key: "credentialsType", label: "Kind of credentials", px: 210, sortable: true, text: (row) => wordFor(CREDENTIALS_TYPES, row.credentialsType) },
  { key: "createdTime", label: "Created", px: 184, yields: 1, sortable: true, text: (row) => formatTime(row.createdTime), value: (row) => row.createdTime },
];

const FIELDS: readonly FormField[] = [
  { name: "types", label: "Client type", type: "several", options: CLIENT_TYPES },
  { name: "kinds", label: "Kind of credentials", type: "several", options: CREDENTIALS_TYPES },
  { name: "user", label: "User name" },
  { name: "client", label: "Client ID" },
  { name: "cn", label: "Common name of the certificate" },
];
const FILTERS = FIELDS.map(({ name }) => name);
const SORT: GridSort = { key: "createdTime", order: "DESC" };

const remove = (credentialsId: string): Promise<undefined> => ask("DELETE /api/mqtt/client/credentials/{credentialsId}", { path: { credentialsId } });

function PasswordForm({ stored, onSaved }: { stored: MqttClientCredentials; onSaved: () => Promise<void> }): ReactElement {
  const isSet = hasPassword(stored);
  const fields: FormField[] = [
    ...(isSet ? [{ name: "currentPassword", label: "Present password", type: "password", required: true } as const] : []),
    { name: "newPassword", label: "New password", type: "password", help: "Without one, every password is right." },
  ];
  return (
    <section>
      <Title order={3} size="h5">
        {t("Password")}
      </Title>
      <Text size="sm" mb="xs">
        {t(isSet ? "There is a password. It is never shown." : "There is no password, so that every one is right.")}
      </Text>
      <FieldsForm
        fields={fields}
        values={{}}
        action="Change the password"
        onSave={async (values) => {
          await ask("POST /api/mqtt/client/credentials/{credentialsId}", { path: { credentialsId: stored.id ?? "" }, body: values });
          notify.ok(t("Saved"));
          await onSaved();
        }}
      />
    </section>
  );
}

function Stored({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const cache = useQueryClient();
  const key = [BROKER_DATA, "credentials", id];
  const stored = useQuery({ queryKey: key, ...AS_OPENED, queryFn: () => ask("GET /api/mqtt/client/credentials/{credentialsId}", { path: { credentialsId: id } }) });
  if (stored.isPending) {
    return <Waiting />;
  }
  if (stored.isError) {
    return <Problem error={stored.error} />;
  }
  const { data } = stored;
  return (
    <Stack gap="xl">
      <FieldsForm
        fields={credentialsFields(false).filter(({ when }) => when?.({ credentialsType: data.credentialsType }) ?? true)}
        values={credentialsForm(data)}
        action="Save"
        onCancel={onClose}
        onSave={async (values) => {
          await ask("POST /api/mqtt/client/credentials", { body: credentialsOf(values, data) });
          notify.ok(t("Saved"));
          await changed(cache);
          onClose();
        }}
      />
      {data.credentialsType === "MQTT_BASIC" && <PasswordForm key={`password ${stored.dataUpdatedAt}`} stored={data} onSaved={() => changed(cache)} />}
      <Group>
        <AskFirst
          text={t("Delete")}
          heading={t("Delete {name} for good?", { name: data.name })}
          note={t("Clients can't log in with them any more. Those that are connected stay until they are disconnected. This can't be undone.")}
          told={t("{name} is deleted", { name: data.name })}
          run={() => remove(id)}
          onDone={onClose}
        />
      </Group>
    </Stack>
  );
}

export function Credentials(): ReactElement {
  const cache = useQueryClient();
  const [opened, setOpened] = useState<ShortMqttClientCredentials>();
  const [adding, setAdding] = useState(false);
  const control = useListState(SORT, FILTERS, true);
  const { filters } = control.state;
  return (
    <>
      <Group justify="space-between">
        <Text size="sm" c="var(--soft-text)">
          {t("They count where broker.access is “credentials”. Changes hold for clients that connect from now on.")}
        </Text>
        <Button onClick={() => setAdding(true)}>{t("Add")}</Button>
      </Group>
      <DataTable<ShortMqttClientCredentials>
        label={t("Client credentials")}
        name="BROKER_CREDENTIALS"
        path="/api/v2/mqtt/client/credentials"
        query={{ clientTypeList: filters["types"], credentialsTypeList: filters["kinds"], username: filters["user"], clientId: filters["client"], certificateCn: filters["cn"] }}
        columns={COLUMNS}
        rowKey={(row) => row.id}
        sort={SORT}
        control={control}
        filterNames={FILTERS}
        onOpen={setOpened}
        whenEmpty={t("No client has credentials yet. Add some, so that clients can log in with a name and a password, a certificate or SCRAM.")}
        bulk={(rows, done) => (
          <AskForMany
            text={t("Delete {n}", { n: rows.length })}
            heading={t("Delete {n} for good?", { n: rows.length })}
            note={t("Clients can't log in with them any more. Those that are connected stay until they are disconnected. This can't be undone.")}
            told={t("{n} deleted", { n: rows.length })}
            rows={rows}
            nameOf={({ name }) => name}
            act={({ id }) => remove(id)}
            done={done}
          />
        )}
        filters={<FilterForm fields={FIELDS} texts={filters} change={(texts) => control.change({ filters: { ...filters, ...texts } })} />}
      />
      {adding && (
        <Drawer opened onClose={() => setAdding(false)} position="right" size="xl" title={t("Add client credentials")} closeButtonProps={{ "aria-label": t("Close") }}>
          <FieldsForm
            fields={credentialsFields(true)}
            values={{}}
            action="Add"
            onCancel={() => setAdding(false)}
            onSave={async (values) => {
              await ask("POST /api/mqtt/client/credentials", { body: credentialsOf(values) });
              notify.ok(t("Saved"));
              setAdding(false);
              await changed(cache);
            }}
          />
        </Drawer>
      )}
      {opened !== undefined && (
        <Drawer opened onClose={() => setOpened(undefined)} position="right" size="xl" title={opened.name} closeButtonProps={{ "aria-label": t("Close") }}>
          <Stored id={opened.id} onClose={() => setOpened(undefined)} />
        </Drawer>
      )}
    </>
  );
}
