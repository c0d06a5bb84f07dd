// Events of an entity: errors, lifecycle, statistics, debug; within a time, with their bodies as JSON.

import { Button, Code, Modal, Select } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { notify } from "@/ui/feedback";
import type { GridSort } from "@/ui/grid/sorting";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { FilterForm } from "@/ui/list/FilterForm";
import { TIME_FILTERS, TIME_NAMES, timesOf } from "@/ui/list/filterValues";
import { useListState } from "@/ui/list/state";
import { EVENT_FILTERS, eventFields, eventFilter, isUnfinished } from "./eventFilters";

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
const SERVER = part("server", "Server");
const ERROR = part("error", "Error");
const OTHERS: Column<EventInfo>[] = [
  TIME,
  SERVER,
  { key: "content", label: "Content", text: ({ body: { server: _server, ...rest } }) => Object.entries(rest).map(([name, value]) => `${name}: ${partText(value)}`).join(", ") },
];
const COLUMNS: Record<string, Column<EventInfo>[]> = {
  LC_EVENT: [TIME, SERVER, part("event", "Event"), { key: "success", label: "Status", text: ({ body }) => t(body["success"] === false ? "Failure" : "Success") }, ERROR],
  ERROR: [TIME, SERVER, part("method", "Method"), ERROR],
  STATS: [TIME, SERVER, part("messagesProcessed", "Messages"), part("errorsOccurred", "Errors")],
  DEBUG_RULE_CHAIN: [TIME, SERVER, part("message", "Message"), ERROR],
  // What evaluations of calculated fields and alarm rules keep.
  DEBUG_CALCULATED_FIELD: [TIME, part("entityId", "Entity"), part("arguments", "Arguments"), part("result", "Result"), ERROR],
};

function partText(value: unknown): string {
  return value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

const USUAL_MS = Number(WITHIN[1].value);
const NEWEST: GridSort = { key: "createdTime", order: "DESC" };
const FILTERS: readonly string[] = ["eventType", ...TIME_NAMES, ...EVENT_FILTERS];

export function EventsTab({ entity }: { entity: Entity }): ReactElement {
  const { user } = useSession();
  const cache = useQueryClient();
  const debug = DEBUG[entity.id.entityType];
  const control = useListState(NEWEST, FILTERS, true);
  const { filters } = control.state;
  const type = filters["eventType"] || (debug ?? "LC_EVENT");
  const fields = useMemo(() => [...TIME_FILTERS, ...eventFields(type)], [type]);
  const times = useMemo(() => timesOf(filters, USUAL_MS, Date.now()), [filters["last"], filters["from"], filters["to"]]);
  const body = eventFilter(type, eventFields(type), filters);
  const [shown, setShown] = useState<EventInfo>();
  const change = (texts: Record<string, string>): void => control.change({ filters: { ...filters, ...texts } });
  const id = entity.id;
  const tenantId = (entity["tenantId"] as EntityId | undefined)?.id ?? (id.entityType === "TENANT" ? id.id : (user as { tenantId?: EntityId }).tenantId?.id);
  const isNarrowed = Object.keys(body).length > 1 || TIME_NAMES.some((name) => (filters[name] ?? "") !== "");
  const clear = async (): Promise<void> => {
    await api.post(`/api/events/${id.entityType}/${id.id}/clear`, body, times);
    await cache.invalidateQueries({ queryKey: ["list"] });
  };
  return (
    <>
      <DataTable<EventInfo>
        key={type}
        label={t("Events")}
        path={`/api/events/${id.entityType}/${id.id}`}
        body={body}
        query={{ tenantId, ...times }}
        columns={COLUMNS[type] ?? OTHERS}
        rowKey={(row) => row.uid ?? (typeof row.id === "string" ? row.id : row.id.id)}
        sort={NEWEST}
        control={control}
        filterNames={FILTERS}
        searchable={false}
        onOpen={setShown}
        whenEmpty={t(type === debug ? "No events in this time. Debug events are kept while debugging is on." : "No events in this time. A longer one may have some.")}
        filters={
          <>
            <Select
              w={140}
              aria-label={t("Type")}
              allowDeselect={false}
              value={type}
              onChange={(next) => change({ ...Object.fromEntries(EVENT_FILTERS.map((name) => [name, ""])), eventType: next === (debug ?? "LC_EVENT") ? "" : (next ?? "") })}
              data={[
                { value: "LC_EVENT", label: t("Lifecycle") },
                { value: "ERROR", label: t("Errors") },
                { value: "STATS", label: t("Statistics") },
                ...(debug === undefined ? [] : [{ value: debug, label: t("Debug") }]),
              ]}
            />
            <Select
              w={140}
              aria-label={t("Time")}
              allowDeselect={false}
              value={filters["from"] || filters["to"] ? null : filters["last"] || WITHIN[1].value}
              placeholder={t("as chosen")}
              onChange={(next) => change({ last: next === WITHIN[1].value ? "" : (next ?? ""), from: "", to: "" })}
              data={WITHIN.map(({ value, label }) => ({ value, label: t(label) }))}
            />
            <Button size="xs" variant="default" disabled={isUnfinished(fields, filters)} onClick={() => void clear().catch(notify.error)}>
              {t(isNarrowed ? "Clear the events that match" : "Clear the events")}
            </Button>
            <FilterForm key={type} fields={fields} texts={filters} change={change} />
          </>
        }
      />
      <Modal opened={shown !== undefined} onClose={() => setShown(undefined)} size="lg" title={t("Event")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Code block>{JSON.stringify(shown?.body, null, 2)}</Code>
      </Modal>
    </>
  );
}
