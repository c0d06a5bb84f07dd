// How the broker knows its clients: what is asked about them, in which order, and how each works.

import { Alert, Badge, Button, Drawer, Group, Stack, Table, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { ShortMqttAuthProvider } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { t } from "@/i18n";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { AS_OPENED, FieldsForm } from "@/ui/FieldsForm";
import { Flow } from "@/ui/Flow";
import { BROKER_DATA, inOrder, movedUp, orderOf, providerFields, providerForm, providerOf, PROVIDERS, wordFor } from "./model";
import { AskFirst, changed } from "./parts";

const ORDER = "mqttAuthorization";
/** It is asked by clients that name it, in no order. */
const APART = "SCRAM";

interface Setting {
  jsonValue?: unknown;
  [field: string]: unknown;
}

function Configuration({ provider, onClose }: { provider: ShortMqttAuthProvider; onClose: () => void }): ReactElement {
  const cache = useQueryClient();
  const stored = useQuery({ queryKey: [BROKER_DATA, "provider", provider.id], ...AS_OPENED, queryFn: () => ask("GET /api/mqtt/auth/provider/{authProviderId}", { path: { authProviderId: provider.id } }) });
  if (stored.isPending) {
    return <Waiting />;
  }
  if (stored.isError) {
    return <Problem error={stored.error} />;
  }
  const { data } = stored;
  const check = async (body: unknown): Promise<void> => {
    await ask("POST /api/mqtt/auth/provider/http/check", { body });
    notify.ok(t("The server answers"));
  };
  return (
    <FieldsForm
      fields={providerFields(data.type)}
      values={providerForm(data)}
      action="Save"
      onCancel={onClose}
      onSave={async (values) => {
        await ask("POST /api/mqtt/auth/provider", { body: providerOf(data, values) });
        notify.ok(t("Saved"));
        onClose();
        await changed(cache);
      }}
      more={(values) =>
        data.type === "HTTP" && (
          <Button variant="default" onClick={() => void check(providerOf(data, values)).catch(notify.error)}>
            {t("Try the server")}
          </Button>
        )
      }
    />
  );
}

export function Providers(): ReactElement {
  const cache = useQueryClient();
  const [opened, setOpened] = useState<ShortMqttAuthProvider>();
  const providers = useQuery({ queryKey: [BROKER_DATA, "providers"], queryFn: () => ask("GET /api/mqtt/auth/providers", { query: { pageSize: 20, page: 0 } }) });
  const setting = useQuery({ queryKey: [BROKER_DATA, "order"], queryFn: () => api.get<Setting>(`/api/admin/settings/${ORDER}`) });
  const failed = providers.error ?? setting.error;
  if (failed !== null) {
    return <Problem error={failed} />;
  }
  if (providers.data === undefined || setting.data === undefined) {
    return <Waiting />;
  }
  const order = orderOf(setting.data.jsonValue);
  const rows = inOrder(providers.data.data, order);
  const isOn = rows.filter(({ enabled }) => enabled);
  const act = (work: Promise<unknown>): void => void work.catch(notify.error).then(() => changed(cache));
  const place = (next: string[]): void => act(api.post("/api/admin/settings", { ...setting.data, key: ORDER, jsonValue: { priorities: next } }));
  return (
    <Stack>
      <Text size="sm" c="var(--soft-text)">
        {t("It counts where broker.access is “credentials”. What is on is asked about each client that connects, one after the other, until one knows it.")}
      </Text>
      {isOn.length === 0 && (
        <Alert color="red" title={t("Everybody may connect")}>
          {t("All ways to know clients are off, so that every client may connect and use all topics. Switch one on.")}
        </Alert>
      )}
      <Flow>
        <Table aria-label={t("Authentication")}>
          <Table.Thead>
            <Table.Tr>
              {["Clients are known by", "Place", "State", "Actions"].map((label) => (
                <Table.Th key={label}>{t(label)}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((provider) => {
              const name = wordFor(PROVIDERS, provider.type);
              const at = order.indexOf(provider.type);
              const path = { authProviderId: provider.id };
              return (
                <Table.Tr key={provider.id}>
                  <Table.Td>
                    <Text fw={500}>{name}</Text>
                    <Text size="sm" c="var(--soft-text)">
                      {t(PROVIDERS.find(({ value }) => value === provider.type)?.hint ?? "")}
                    </Text>
                  </Table.Td>
                  <Table.Td data-label={t("Place")}>{provider.type === APART ? "–" : at < 0 ? t("not asked") : at + 1}</Table.Td>
                  <Table.Td data-label={t("State")}>
                    <Badge variant="dot" color={provider.enabled ? "teal" : "gray"}>
                      {t(provider.enabled ? "On" : "Off")}
                    </Badge>
                  </Table.Td>
                  <Table.Td>
                    <Group gap="xs">
                      {provider.enabled ? (
                        <AskFirst
                          size="compact-sm"
                          text={t("Switch off")}
                          aria-label={t("Switch off: {name}", { name })}
                          heading={t("Switch off {name}?", { name })}
                          note={t(isOn.length === 1 ? "It is the only one that is on: every client may connect then, and use all topics." : "Clients that it alone knows can't connect any more. Those that are connected stay.")}
                          told={t("{name} is off", { name })}
                          run={() => ask("POST /api/mqtt/auth/provider/{authProviderId}/disable", { path })}
                        />
                      ) : (
                        <Button size="compact-sm" variant="default" aria-label={t("Switch on: {name}", { name })} onClick={() => act(ask("POST /api/mqtt/auth/provider/{authProviderId}/enable", { path }))}>
                          {t("Switch on")}
                        </Button>
                      )}
                      {providerFields(provider.type).length > 0 && (
                        <Button size="compact-sm" variant="default" aria-label={t("Settings: {name}", { name })} onClick={() => setOpened(provider)}>
                          {t("Settings")}
                        </Button>
                      )}
                      {provider.type !== APART && at !== 0 && (
                        <Button size="compact-sm" variant="subtle" aria-label={t(at < 0 ? "Ask last: {name}" : "Ask earlier: {name}", { name })} onClick={() => place(movedUp(order, provider.type))}>
                          {t(at < 0 ? "Ask last" : "Ask earlier")}
                        </Button>
                      )}
                    </Group>
                  </Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </Flow>
      {opened !== undefined && (
        <Drawer opened onClose={() => setOpened(undefined)} position="right" size="xl" title={wordFor(PROVIDERS, opened.type)} closeButtonProps={{ "aria-label": t("Close") }}>
          <Configuration provider={opened} onClose={() => setOpened(undefined)} />
        </Drawer>
      )}
    </Stack>
  );
}
