// One session: how its client has connected, its messages and subscriptions, and what can be done about it.

import { Badge, Button, Drawer, Group, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { ask } from "@/api/typed";
import { formatNumber, formatTime, t } from "@/i18n";
import { EmptyState, notify, Problem, Waiting } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import { Flow } from "@/ui/Flow";
import type { FormField } from "@/ui/form/values";
import { BlockButton } from "./Blocking";
import { BROKER_DATA, byQos, CLIENT_TYPES, expiryText, latestOf, QOS, qosOf, RETAIN_HANDLING, STATES, subscriptionRows, subscriptionsOf, wordFor, yesNo, type SessionDetails } from "./model";
import { AskFirst, changed, Facts } from "./parts";

const EVERY_MS = 3_000;
/** What the server says where it doesn't know something. */
const UNKNOWN = "unknown";

const FIELDS: readonly FormField[] = [
  {
    name: "subscriptions", label: "Subscriptions", type: "rows",
    rowTitle: (row) => ({ title: String(row["topicFilter"] ?? ""), note: "" }),
    fields: [
      { name: "topicFilter", label: "Topic filter", required: true },
      { name: "qos", label: "Highest quality of service", type: "select", required: true, initial: "1", options: QOS },
      { name: "retainHandling", label: "Retained messages", type: "select", required: true, initial: "0", options: RETAIN_HANDLING },
      { name: "subscriptionId", label: "Subscription identifier", type: "number", least: 1 },
      { name: "noLocal", label: "Without the client's own messages", type: "boolean" },
      { name: "retainAsPublish", label: "With the retain flag as published", type: "boolean" },
    ],
  },
];

function SubscriptionList({ session }: { session: SessionDetails }): ReactElement {
  const cache = useQueryClient();
  const [changing, setChanging] = useState(false);
  const { clientId, subscriptions } = session;
  return (
    <section>
      <Group justify="space-between" mb="xs">
        <Title order={3} size="h5">
          {t("Subscriptions")}
        </Title>
        {!changing && (
          <Button size="compact-sm" variant="default" onClick={() => setChanging(true)}>
            {t("Change the subscriptions")}
          </Button>
        )}
      </Group>
      {changing && (
        <FieldsForm
          fields={FIELDS}
          values={{ subscriptions: subscriptionRows(subscriptions) }}
          action="Save"
          onCancel={() => setChanging(false)}
          onSave={async (values) => {
            await ask("POST /api/subscription", { body: { clientId, subscriptions: subscriptionsOf(values["subscriptions"]) } });
            notify.ok(t("Saved"));
            setChanging(false);
            await changed(cache);
          }}
        />
      )}
      {!changing && subscriptions.length === 0 && <EmptyState>{t("The client has subscribed to nothing.")}</EmptyState>}
      {!changing && subscriptions.length > 0 && (
        <Flow>
          <Table aria-label={t("Subscriptions")}>
            <Table.Thead>
              <Table.Tr>
                {["Topic filter", "QoS", "Without own messages", "Retain flag kept"].map((label) => (
                  <Table.Th key={label}>{t(label)}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {subscriptions.map(({ topicFilter, qos, options }) => (
                <Table.Tr key={topicFilter}>
                  <Table.Td style={{ overflowWrap: "anywhere" }}>{topicFilter}</Table.Td>
                  <Table.Td data-label={t("QoS")}>{qosOf(qos)}</Table.Td>
                  <Table.Td data-label={t("Without own messages")}>{yesNo(options?.noLocal === true)}</Table.Td>
                  <Table.Td data-label={t("Retain flag kept")}>{yesNo(options?.retainAsPublish === true)}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Flow>
      )}
    </section>
  );
}

function SessionFacts({ session }: { session: SessionDetails }): ReactElement {
  const { clientId } = session;
  const details = useQuery({ queryKey: [BROKER_DATA, "details", clientId, session.sessionId], queryFn: () => ask("GET /api/client-session/details", { query: { clientId } }) });
  const traffic = useQuery({ queryKey: [BROKER_DATA, "traffic", clientId], refetchInterval: EVERY_MS, queryFn: () => ask("GET /api/timeseries/latest", { query: { entityId: clientId } }) });
  const version = details.data?.mqttVersion;
  const count = (key: string): string => formatNumber(latestOf(traffic.data, key) ?? 0);
  const time = (ts: number): string => (ts > 0 ? formatTime(ts) : "");
  return (
    <>
      {traffic.isError && <Problem error={traffic.error} />}
      <Facts
        facts={[
          [t("Client type"), wordFor(CLIENT_TYPES, session.clientType)],
          [t("IP address"), session.clientIpAdr === UNKNOWN ? t("Unknown") : session.clientIpAdr],
          [t("Protocol"), version === undefined ? "" : version === UNKNOWN ? t("Unknown") : `MQTT ${version}`],
          [t("User name"), details.data?.username ?? ""],
          [t("Connected at"), time(session.connectedAt)],
          [t("Away since"), time(session.disconnectedAt)],
          [t("Clean start"), yesNo(session.cleanStart)],
          [t("Keep-alive"), t("{n} s", { n: session.keepAliveSeconds })],
          [t("Session outlives its connection"), expiryText(session.sessionExpiryInterval)],
          [t("Session ends at"), time(session.sessionEndTs)],
        ]}
      />
      <section>
        <Title order={3} size="h5" mb="xs">
          {t("Messages")}
        </Title>
        <Facts
          facts={[
            [t("Received from the client"), byQos(traffic.data, "ReceivedPubMsgs")],
            [t("Sent to the client"), byQos(traffic.data, "SentPubMsgs")],
            [t("Messages that wait"), count("queuedMsgs")],
            [t("Messages dropped"), count("droppedMsgs")],
          ]}
        />
        <Text size="sm" c="var(--soft-text)" mt="xs">
          {t("Counted since the server or the session began.")}
        </Text>
      </section>
    </>
  );
}

export function SessionDrawer({ clientId, onClose }: { clientId: string; onClose: () => void }): ReactElement {
  const session = useQuery({ queryKey: [BROKER_DATA, "session", clientId], refetchInterval: EVERY_MS, queryFn: () => api.get<SessionDetails>("/api/client-session", { clientId }) });
  const shown = session.isError ? undefined : session.data;
  const isConnected = shown?.connectionState === "CONNECTED";
  return (
    <Drawer opened onClose={onClose} position="right" size="xl" title={clientId} closeButtonProps={{ "aria-label": t("Close") }}>
      {session.isPending && <Waiting />}
      {session.isError && <Problem error={session.error} />}
      {shown !== undefined && (
        <Stack>
          <Group gap="xs">
            <Badge variant="dot" color={isConnected ? "teal" : "gray"}>
              {wordFor(STATES, shown.connectionState)}
            </Badge>
            <Group ms="auto" gap="xs">
              {isConnected ? (
                <AskFirst
                  key="disconnect"
                  text={t("Disconnect")}
                  heading={t("Disconnect {name}?", { name: clientId })}
                  note={t("Its will is published. It may connect again at once, as long as it is not blocked.")}
                  told={t("{name} is disconnected", { name: clientId })}
                  run={() => ask("DELETE /api/client-session/disconnect", { query: { clientId, sessionId: shown.sessionId } })}
                />
              ) : (
                <AskFirst
                  key="remove"
                  text={t("Remove the session")}
                  heading={t("Remove the session of {name} for good?", { name: clientId })}
                  note={t("Its subscriptions and all messages that wait for it go, too. This can't be undone.")}
                  told={t("The session of {name} is removed", { name: clientId })}
                  run={() => ask("DELETE /api/client-session/remove", { query: { clientId, sessionId: shown.sessionId } })}
                  onDone={onClose}
                />
              )}
              <BlockButton values={{ type: "CLIENT_ID", value: clientId }} />
            </Group>
          </Group>
          <SessionFacts session={shown} />
          <SubscriptionList session={shown} />
        </Stack>
      )}
    </Drawer>
  );
}
