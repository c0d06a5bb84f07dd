// The subscriptions of all clients, and those that several clients share.

import { Drawer, Table } from "@mantine/core";
import { useState, type ReactElement } from "react";
import type { ClientSubscriptionInfo } from "@/api/schema.gen";
import { t } from "@/i18n";
import { TextLink } from "@/ui/feedback";
import { Flow } from "@/ui/Flow";
import type { FormField } from "@/ui/form/values";
import { ofNumber } from "@/ui/grid/columns";
import type { GridSort } from "@/ui/grid/sorting";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { FilterForm } from "@/ui/list/FilterForm";
import { useListState } from "@/ui/list/state";
import { CLIENT_TYPES, LIST_EVERY_MS, QOS, qosOf, RETAIN_HANDLING, STATES, wordFor, YES_NO, yesNo, type SharedSubscription } from "./model";

const sessionPath = (clientId: string): string => `/broker/sessions?client=${encodeURIComponent(clientId)}`;

const COLUMNS: Column<ClientSubscriptionInfo>[] = [
  { key: "clientId", label: "Client ID", px: 220, least: 120, hideable: false, sortable: true, text: (row) => row.clientId, show: (row) => <TextLink to={sessionPath(row.clientId)}>{row.clientId}</TextLink> },
  { key: "topicFilter", label: "Topic filter", px: 280, least: 120, sortable: true, text: (row) => row.subscription.topicFilter },
  { key: "qos", label: "QoS", px: 80, sortable: true, text: (row) => String(qosOf(row.subscription.qos)) },
  { key: "noLocal", label: "Without own messages", px: 150, yields: 2, sortable: true, text: (row) => yesNo(row.subscription.options?.noLocal === true) },
  { key: "retainAsPublish", label: "Retain flag kept", px: 130, yields: 3, sortable: true, text: (row) => yesNo(row.subscription.options?.retainAsPublish === true) },
  { key: "retainHandling", label: "Retained messages", px: 200, yields: 1, sortable: true, text: (row) => wordFor(RETAIN_HANDLING, String(row.subscription.options?.retainHandling ?? 0)) },
  { key: "subscriptionId", label: "Subscription identifier", px: 150, hidden: true, sortable: true, text: (row) => String(row.subscription.subscriptionId ?? "") },
];

const FIELDS: readonly FormField[] = [
  { name: "topic", label: "Gets messages of the topic", help: "A whole topic, which the filter has to match" },
  { name: "filter", label: "Topic filter contains" },
  { name: "qos", label: "QoS", type: "several", options: QOS },
  { name: "handling", label: "Retained messages", type: "several", options: RETAIN_HANDLING },
  { name: "noLocal", label: "Without own messages", type: "select", options: YES_NO },
  { name: "asPublished", label: "Retain flag kept", type: "select", options: YES_NO },
];
const FILTERS = FIELDS.map(({ name }) => name);
const SORT: GridSort = { key: "clientId", order: "ASC" };

export function Subscriptions(): ReactElement {
  const control = useListState(SORT, FILTERS, true);
  const { filters } = control.state;
  return (
    <DataTable<ClientSubscriptionInfo>
      label={t("Subscriptions")}
      name="BROKER_SUBSCRIPTIONS"
      path="/api/subscription/all"
      query={{ topic: filters["topic"], topicFilter: filters["filter"], qosList: filters["qos"], retainHandlingList: filters["handling"], noLocalList: filters["noLocal"], retainAsPublishList: filters["asPublished"] }}
      every={LIST_EVERY_MS}
      columns={COLUMNS}
      rowKey={(row) => JSON.stringify([row.clientId, row.subscription.topicFilter])}
      sort={SORT}
      control={control}
      filterNames={FILTERS}
      whenEmpty={t("No client has subscribed to anything. Clients do so themselves; those of one client are changed in its session.")}
      filters={<FilterForm fields={FIELDS} texts={filters} change={(texts) => control.change({ filters: { ...filters, ...texts } })} />}
    />
  );
}

const connected = (row: SharedSubscription): number => row.clients.filter((client) => client.connected).length;

const SHARED: Column<SharedSubscription>[] = [
  { key: "topicFilter", label: "Topic filter", px: 280, least: 120, hideable: false, sortable: true, text: (row) => row.topicFilter },
  { key: "shareName", label: "Name of the share", px: 200, least: 100, sortable: true, text: (row) => row.shareName },
  { key: "clientType", label: "Client type", px: 130, yields: 1, text: (row) => wordFor(CLIENT_TYPES, row.clients[0]?.clientType) },
  { key: "clients", label: "Members", px: 110, ...ofNumber(({ clients }) => clients.length) },
  { key: "connected", label: "Members that are connected", px: 180, ...ofNumber(connected) },
];
const SHARED_FIELDS: readonly FormField[] = [
  { name: "share", label: "Name of the share" },
  { name: "member", label: "Client ID" },
];
const SHARED_FILTERS = SHARED_FIELDS.map(({ name }) => name);
const SHARED_SORT: GridSort = { key: "topicFilter", order: "ASC" };

export function Shared(): ReactElement {
  const [opened, setOpened] = useState<SharedSubscription>();
  const control = useListState(SHARED_SORT, SHARED_FILTERS, true);
  const { filters } = control.state;
  return (
    <>
      <DataTable<SharedSubscription>
        label={t("Shared subscriptions")}
        name="BROKER_SHARED"
        path="/api/subscription"
        query={{ shareNameSearch: filters["share"], clientIdSearch: filters["member"] }}
        every={LIST_EVERY_MS}
        columns={SHARED}
        rowKey={(row) => JSON.stringify([row.shareName, row.topicFilter, row.clients[0]?.clientType])}
        sort={SHARED_SORT}
        control={control}
        filterNames={SHARED_FILTERS}
        onOpen={setOpened}
        whenEmpty={t("No subscription is shared. Clients that subscribe to “$share/name/filter” share its messages among them.")}
        filters={<FilterForm fields={SHARED_FIELDS} texts={filters} change={(texts) => control.change({ filters: { ...filters, ...texts } })} />}
      />
      {opened !== undefined && (
        <Drawer opened onClose={() => setOpened(undefined)} position="right" size="lg" title={`${opened.shareName}: ${opened.topicFilter}`} closeButtonProps={{ "aria-label": t("Close") }}>
          <Flow>
            <Table aria-label={t("Members")}>
              <Table.Thead>
                <Table.Tr>
                  {["Client ID", "State"].map((label) => (
                    <Table.Th key={label}>{t(label)}</Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {opened.clients.map((client) => (
                  <Table.Tr key={client.clientId}>
                    <Table.Td>
                      <TextLink to={sessionPath(client.clientId)}>{client.clientId}</TextLink>
                    </Table.Td>
                    <Table.Td data-label={t("State")}>{wordFor(STATES, client.connected ? "CONNECTED" : "DISCONNECTED")}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Flow>
        </Drawer>
      )}
    </>
  );
}
