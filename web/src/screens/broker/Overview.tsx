// What goes on in the broker: what it has now, the traffic of the last minute, and the longest queues.

import { SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ask } from "@/api/typed";
import { formatNumber, formatTime, t } from "@/i18n";
import { Figure } from "@/screens/home/parts";
import { EmptyState, Problem, TextLink } from "@/ui/feedback";
import { Flow } from "@/ui/Flow";
import { sizeText } from "@/ui/size";
import { BROKER_DATA, latestOf, LIST_EVERY_MS, STATES, wordFor } from "./model";
import { Facts } from "./parts";

const EVERY_MS = 3_000;
/** Queues that are shown. */
const QUEUES = 5;

function Queues(): ReactElement {
  const queues = useQuery({
    queryKey: [BROKER_DATA, "queues"],
    // Sorting looks at all sessions, of which there may be very many.
    refetchInterval: LIST_EVERY_MS,
    queryFn: () => ask("GET /api/client-session/queues", { query: { pageSize: QUEUES, page: 0, sortProperty: "queuedMsgs", sortOrder: "DESC" } }),
  });
  const rows = queues.data?.data.filter(({ queuedMsgs, droppedMsgs }) => queuedMsgs + droppedMsgs > 0) ?? [];
  return (
    <section>
      <Title order={2} size="h4" mb="xs">
        {t("Longest queues")}
      </Title>
      {queues.isError && <Problem error={queues.error} />}
      {queues.isSuccess && rows.length === 0 && <EmptyState>{t("No message waits for a client.")}</EmptyState>}
      {rows.length > 0 && (
        <Flow>
          <Table aria-label={t("Longest queues")}>
            <Table.Thead>
              <Table.Tr>
                {["Client ID", "State", "Messages that wait", "Messages dropped"].map((label) => (
                  <Table.Th key={label}>{t(label)}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((row) => (
                <Table.Tr key={row.clientId}>
                  <Table.Td>
                    <TextLink to={`/broker/sessions?client=${encodeURIComponent(row.clientId)}`}>{row.clientId}</TextLink>
                  </Table.Td>
                  <Table.Td data-label={t("State")}>{wordFor(STATES, row.connectionState)}</Table.Td>
                  <Table.Td data-label={t("Messages that wait")}>{formatNumber(row.queuedMsgs)}</Table.Td>
                  <Table.Td data-label={t("Messages dropped")}>{formatNumber(row.droppedMsgs)}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Flow>
      )}
    </section>
  );
}

export function Overview(): ReactElement {
  const sessions = useQuery({ queryKey: [BROKER_DATA, "sessions"], refetchInterval: EVERY_MS, queryFn: () => ask("GET /api/client-session/info") });
  const statistics = useQuery({ queryKey: [BROKER_DATA, "statistics"], refetchInterval: EVERY_MS, queryFn: () => ask("GET /api/timeseries/latest", { query: { entityId: "total" } }) });
  const credentials = useQuery({ queryKey: [BROKER_DATA, "credentials"], refetchInterval: LIST_EVERY_MS, queryFn: () => ask("GET /api/mqtt/client/credentials/info") });
  const failed = [sessions, statistics, credentials].find(({ isError }) => isError);
  const latest = (key: string): number | undefined => latestOf(statistics.data, key);
  const at = statistics.data?.["incomingMsgs"]?.[0]?.ts;
  return (
    <Stack gap="lg">
      {failed !== undefined && <Problem error={failed.error} />}
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }}>
        <Figure label="Connected clients" value={sessions.data?.connectedCount} to="/broker/sessions?state=CONNECTED" />
        <Figure label="Sessions of clients that are away" value={sessions.data?.disconnectedCount} to="/broker/sessions?state=DISCONNECTED" />
        <Figure label="Subscriptions" value={latest("subscriptions")} to="/broker/subscriptions" />
        <Figure label="Retained messages" value={latest("retainedMsgs")} to="/broker/retained" />
        <Figure label="Client credentials" value={credentials.data?.totalCount} to="/broker/credentials" />
      </SimpleGrid>
      <section>
        <Title order={2} size="h4" mb="xs">
          {t("Traffic of the last whole minute")}
        </Title>
        <SimpleGrid cols={{ base: 2, sm: 3 }} mb="sm">
          <Figure label="Messages received" value={latest("incomingMsgs")} />
          <Figure label="Messages sent" value={latest("outgoingMsgs")} />
          <Figure label="Messages dropped" value={latest("droppedMsgs")} />
        </SimpleGrid>
        <Facts
          facts={[
            [t("Payload received"), sizeText(latest("inboundPayloadTraffic"))],
            [t("Payload sent"), sizeText(latest("outboundPayloadTraffic"))],
            [t("As of"), at === undefined ? "" : formatTime(at)],
          ]}
        />
        <Text size="sm" c="var(--soft-text)" mt="xs">
          {t("Dropped are also messages that nobody has subscribed to.")}
        </Text>
      </section>
      <Queues />
    </Stack>
  );
}
