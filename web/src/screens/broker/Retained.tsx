// The retained messages: the last one of each topic, which new subscribers get.

import { Code, Drawer, Group, Stack, Title } from "@mantine/core";
import { useState, type ReactElement } from "react";
import type { RetainedMsg } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { formatTime, t } from "@/i18n";
import type { FormField } from "@/ui/form/values";
import type { GridSort } from "@/ui/grid/sorting";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { FilterForm } from "@/ui/list/FilterForm";
import { TIME_FILTERS } from "@/ui/list/filterValues";
import { useListState } from "@/ui/list/state";
import { payloadText, periodOf, QOS, wordFor } from "./model";
import { AskFirst, AskForMany, Facts } from "./parts";

/** How often the list is asked for anew, milliseconds: payloads can be large. */
const EVERY_MS = 60_000;
/** Letters of a payload that a row shows. */
const SHOWN = 200;

const COLUMNS: Column<RetainedMsg>[] = [
  { key: "topic", label: "Topic", px: 260, least: 130, hideable: false, sortable: true, text: (row) => row.topic },
  { key: "payload", label: "Payload", px: 260, text: (row) => row.payload, show: (row) => row.payload.slice(0, SHOWN) },
  { key: "qos", label: "QoS", px: 80, yields: 1, sortable: true, text: (row) => String(row.qos), value: (row) => row.qos },
  { key: "createdTime", label: "Published", px: 184, sortable: true, text: (row) => formatTime(row.createdTime), value: (row) => row.createdTime },
];

const FIELDS: readonly FormField[] = [
  { name: "payload", label: "Payload contains" },
  { name: "qos", label: "QoS", type: "several", options: QOS },
  ...TIME_FILTERS,
];
const FILTERS = FIELDS.map(({ name }) => name);
const SORT: GridSort = { key: "topic", order: "ASC" };

function MessageDrawer({ message, onClose }: { message: RetainedMsg; onClose: () => void }): ReactElement {
  const { topic } = message;
  const properties = message.userProperties?.props ?? [];
  return (
    <Drawer opened onClose={onClose} position="right" size="xl" title={topic} closeButtonProps={{ "aria-label": t("Close") }}>
      <Stack>
        <Facts facts={[[t("QoS"), wordFor(QOS, String(message.qos))], [t("Published"), formatTime(message.createdTime)]]} />
        <section>
          <Title order={3} size="h5" mb="xs">
            {t("Payload")}
          </Title>
          <Code block tabIndex={0} mah="50vh" style={{ overflow: "auto", whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
            {payloadText(message.payload)}
          </Code>
        </section>
        {properties.length > 0 && (
          <section>
            <Title order={3} size="h5" mb="xs">
              {t("User properties")}
            </Title>
            <Facts facts={properties.map(({ k, v }) => [k, v] as const)} />
          </section>
        )}
        <Group>
          <AskFirst
            text={t("Delete")}
            heading={t("Delete the retained message of {name}?", { name: topic })}
            note={t("Who subscribes from now on doesn't get it. Subscribers are not told. This can't be undone.")}
            told={t("{name} is deleted", { name: topic })}
            run={() => ask("DELETE /api/retained-msg", { query: { topicName: topic } })}
            onDone={onClose}
          />
        </Group>
      </Stack>
    </Drawer>
  );
}

export function Retained(): ReactElement {
  const [opened, setOpened] = useState<RetainedMsg>();
  const control = useListState(SORT, FILTERS, true);
  const { filters } = control.state;
  return (
    <>
      <DataTable<RetainedMsg>
        label={t("Retained messages")}
        name="BROKER_RETAINED"
        path="/api/retained-msg/v2"
        query={{ payload: filters["payload"], qosList: filters["qos"], ...periodOf(filters) }}
        every={EVERY_MS}
        columns={COLUMNS}
        rowKey={(row) => row.topic}
        sort={SORT}
        control={control}
        filterNames={FILTERS}
        onOpen={setOpened}
        whenEmpty={t("No message is retained. The broker keeps the last message of a topic that was published with the retain flag.")}
        bulk={(rows, done) => (
          <AskForMany
            text={t("Delete {n}", { n: rows.length })}
            heading={t("Delete {n} for good?", { n: rows.length })}
            note={t("Who subscribes from now on doesn't get it. Subscribers are not told. This can't be undone.")}
            told={t("{n} deleted", { n: rows.length })}
            rows={rows}
            nameOf={({ topic }) => topic}
            act={({ topic }) => ask("DELETE /api/retained-msg", { query: { topicName: topic } })}
            done={done}
          />
        )}
        filters={<FilterForm fields={FIELDS} texts={filters} change={(texts) => control.change({ filters: { ...filters, ...texts } })} />}
      />
      {opened !== undefined && <MessageDrawer message={opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}
