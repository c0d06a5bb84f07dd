// The sessions of clients: which are connected, from where, since when; and their ends.

import { Badge, Select } from "@mantine/core";
import type { ReactElement } from "react";
import { useSearchParams } from "wouter";
import type { ShortClientSession } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { formatTime, t } from "@/i18n";
import type { FormField } from "@/ui/form/values";
import { ofNumber } from "@/ui/grid/columns";
import type { GridSort } from "@/ui/grid/sorting";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { FilterForm } from "@/ui/list/FilterForm";
import { TIME_FILTERS } from "@/ui/list/filterValues";
import { useListState } from "@/ui/list/state";
import { CLIENT_TYPES, LIST_EVERY_MS, sessionQuery, STATES, wordFor, YES_NO, yesNo } from "./model";
import { AskForMany } from "./parts";
import { SessionDrawer } from "./SessionDrawer";

const COLUMNS: Column<ShortClientSession>[] = [
  { key: "clientId", label: "Client ID", px: 240, least: 130, hideable: false, sortable: true, text: (row) => row.clientId },
  {
    key: "connectionState", label: "State", px: 150, sortable: true, text: (row) => wordFor(STATES, row.connectionState),
    show: (row) => (
      <Badge variant="dot" color={row.connectionState === "CONNECTED" ? "teal" : "gray"}>
        {wordFor(STATES, row.connectionState)}
      </Badge>
    ),
  },
  { key: "clientType", label: "Client type", px: 110, yields: 3, sortable: true, text: (row) => wordFor(CLIENT_TYPES, row.clientType) },
  { key: "clientIpAdr", label: "IP address", px: 140, yields: 2, sortable: true, text: (row) => row.clientIpAdr },
  { key: "subscriptionsCount", label: "Subscriptions", px: 120, yields: 4, sortable: true, ...ofNumber(({ subscriptionsCount }) => subscriptionsCount) },
  { key: "connectedAt", label: "Connected at", px: 184, yields: 1, sortable: true, text: (row) => formatTime(row.connectedAt), value: (row) => row.connectedAt },
  { key: "disconnectedAt", label: "Away since", px: 184, yields: 5, sortable: true, text: (row) => (row.disconnectedAt > 0 ? formatTime(row.disconnectedAt) : ""), value: (row) => row.disconnectedAt },
  { key: "cleanStart", label: "Clean start", px: 110, hidden: true, sortable: true, text: (row) => yesNo(row.cleanStart) },
];

const FIELDS: readonly FormField[] = [
  { name: "type", label: "Client type", type: "select", options: CLIENT_TYPES },
  { name: "clean", label: "Clean start", type: "select", options: YES_NO },
  { name: "ip", label: "IP address" },
  { name: "subscriptions", label: "Subscriptions at least", type: "number", least: 0 },
  ...TIME_FILTERS,
];
const FILTERS = ["state", ...FIELDS.map(({ name }) => name)];
const SORT: GridSort = { key: "clientId", order: "ASC" };

export function Sessions(): ReactElement {
  const [params, setParams] = useSearchParams();
  const control = useListState(SORT, FILTERS, true);
  const { filters } = control.state;
  const change = (texts: Record<string, string>): void => control.change({ filters: { ...filters, ...texts } });
  const open = (clientId: string | undefined): void =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      after.delete("client");
      if (clientId !== undefined) {
        after.set("client", clientId);
      }
      return after;
    }, { replace: true });
  const shown = params.get("client");
  return (
    <>
      <DataTable<ShortClientSession>
        label={t("Client sessions")}
        name="BROKER_SESSIONS"
        path="/api/v2/client-session"
        query={sessionQuery(filters)}
        every={LIST_EVERY_MS}
        columns={COLUMNS}
        rowKey={(row) => row.clientId}
        sort={SORT}
        control={control}
        filterNames={FILTERS}
        onOpen={(row) => open(row.clientId)}
        whenEmpty={t("No client has connected yet. Connect one to the address on which the broker listens.")}
        bulk={(rows, done) => {
          const connected = rows.filter(({ connectionState }) => connectionState === "CONNECTED");
          const away = rows.filter(({ connectionState }) => connectionState !== "CONNECTED");
          return (
            <>
              <AskForMany
                text={t("Disconnect {n}", { n: connected.length })}
                heading={t("Disconnect {n} clients?", { n: connected.length })}
                note={t("Their wills are published. They may connect again at once, as long as they are not blocked.")}
                told={t("{n} disconnected", { n: connected.length })}
                rows={connected}
                nameOf={({ clientId }) => clientId}
                act={({ clientId, sessionId }) => ask("DELETE /api/client-session/disconnect", { query: { clientId, sessionId } })}
                done={done}
              />
              <AskForMany
                text={t("Remove {n}", { n: away.length })}
                heading={t("Remove {n} sessions for good?", { n: away.length })}
                note={t("Their subscriptions and all messages that wait for them go, too. This can't be undone.")}
                told={t("{n} removed", { n: away.length })}
                rows={away}
                nameOf={({ clientId }) => clientId}
                act={({ clientId, sessionId }) => ask("DELETE /api/client-session/remove", { query: { clientId, sessionId } })}
                done={done}
              />
            </>
          );
        }}
        filters={
          <>
            <Select
              w={170}
              aria-label={t("State")}
              placeholder={t("State")}
              clearable
              clearButtonProps={{ "aria-label": t("Clear the choice") }}
              data={STATES.map(({ value, label }) => ({ value, label: t(label) }))}
              value={filters["state"] || null}
              onChange={(next) => change({ state: next ?? "" })}
            />
            <FilterForm fields={FIELDS} texts={filters} change={change} />
          </>
        }
      />
      {shown !== null && <SessionDrawer key={shown} clientId={shown} onClose={() => open(undefined)} />}
    </>
  );
}
