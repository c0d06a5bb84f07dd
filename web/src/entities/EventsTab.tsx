// Events of an entity: errors, lifecycle, statistics, debug; within a time, with their bodies as JSON.

import { Button, Code, Group, Modal, Select } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { notify } from "@/ui/feedback";

interface EventInfo {
  id: EntityId | string;
  uid: string;
  createdTime: number;
  body: Record<string, unknown>;
}

const DEBUG: Record<string, string> = { CALCULATED_FIELD: "DEBUG_CALCULATED_FIELD", RULE_CHAIN: "DEBUG_RULE_CHAIN", RULE_NODE: "DEBUG_RULE_NODE" };
const WITHIN = [{ value: "3600000", label: "Last hour" }, { value: "86400000", label: "Last day" }, { value: "2592000000", label: "Last 30 days" }] as const;

const TIME: Column<EventInfo> = { key: "createdTime", label: "Time", width: "11.5rem", sortable: true, text: (row) => formatTime(row.createdTime), value: (row) => row.createdTime };
const part = (name: string, label: string): Column<EventInfo> => ({ key: name, label, text: ({ body }) => partText(body[name]) });
const COLUMNS: Column<EventInfo>[] = [
  TIME,
  part("server", "Server"),
  { key: "content", label: "Content", text: ({ body: { server: _server, ...rest } }) => Object.entries(rest).map(([name, value]) => `${name}: ${partText(value)}`).join(", ") },
];
/** What evaluations of calculated fields and alarm rules keep. */
const EVALUATIONS: Column<EventInfo>[] = [TIME, part("entityId", "Entity"), part("arguments", "Arguments"), part("result", "Result"), part("error", "Error")];

function partText(value: unknown): string {
  return value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function EventsTab({ entity }: { entity: Entity }): ReactElement {
  const { user } = useSession();
  const cache = useQueryClient();
  const debug = DEBUG[entity.id.entityType];
  const [type, setType] = useState(debug ?? "LC_EVENT");
  const [within, setWithin] = useState<string>(WITHIN[1].value);
  const [begin, setBegin] = useState(() => Date.now() - Number(WITHIN[1].value));
  const [shown, setShown] = useState<EventInfo>();
  const id = entity.id;
  const tenantId = (entity["tenantId"] as EntityId | undefined)?.id ?? (id.entityType === "TENANT" ? id.id : (user as { tenantId?: EntityId }).tenantId?.id);
  const clear = async (): Promise<void> => {
    await api.post(`/api/events/${id.entityType}/${id.id}/clear`, { eventType: type });
    await cache.invalidateQueries({ queryKey: ["list"] });
  };
  return (
    <>
      <DataTable<EventInfo>
        key={type}
        label={t("Events")}
        path={`/api/events/${id.entityType}/${id.id}/${type}`}
        query={{ tenantId, startTime: begin }}
        columns={type === "DEBUG_CALCULATED_FIELD" ? EVALUATIONS : COLUMNS}
        rowKey={(row) => row.uid ?? (typeof row.id === "string" ? row.id : row.id.id)}
        sort={{ key: "createdTime", order: "DESC" }}
        searchable={false}
        onOpen={setShown}
        filters={
          <Group gap="xs">
            <Select
              aria-label={t("Type")}
              allowDeselect={false}
              value={type}
              onChange={(next) => setType(next ?? "LC_EVENT")}
              data={[
                { value: "LC_EVENT", label: t("Lifecycle") },
                { value: "ERROR", label: t("Errors") },
                { value: "STATS", label: t("Statistics") },
                ...(debug === undefined ? [] : [{ value: debug, label: t("Debug") }]),
              ]}
            />
            <Select
              aria-label={t("Time")}
              allowDeselect={false}
              value={within}
              onChange={(next) => {
                setWithin(next ?? within);
                setBegin(Date.now() - Number(next ?? within));
              }}
              data={WITHIN.map(({ value, label }) => ({ value, label: t(label) }))}
            />
            <Button size="xs" variant="default" onClick={() => void clear().catch(notify.error)}>
              {t("Clear the events")}
            </Button>
          </Group>
        }
      />
      <Modal opened={shown !== undefined} onClose={() => setShown(undefined)} size="lg" title={t("Event")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Code block>{JSON.stringify(shown?.body, null, 2)}</Code>
      </Modal>
    </>
  );
}
