// The audit log of an entity, or of the tenant.

import { Code, Modal, Select } from "@mantine/core";
import { useMemo, useState, type ReactElement } from "react";
import type { EntityId } from "@/api/types";
import { formatTime, t } from "@/i18n";
import { wordsOf } from "@/ui/form/values";
import type { GridSort } from "@/ui/grid/sorting";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { FilterForm } from "@/ui/list/FilterForm";
import { TIME_FILTERS, timesOf } from "@/ui/list/filterValues";
import { useListState } from "@/ui/list/state";
import { ACTION_FILTER, AUDIT_FILTERS, AUDIT_TIMES, auditPath, fitting, WHOSE_FILTERS } from "./auditFilters";

interface AuditEntry {
  id: EntityId;
  createdTime: number;
  entityId?: EntityId | null;
  entityName?: string | null;
  userName?: string | null;
  actionType: string;
  actionStatus: string;
  actionData?: unknown;
  actionFailureDetails?: string | null;
}

const AUDIT_COLUMNS: Column<AuditEntry>[] = [
  { key: "createdTime", label: "Time", px: 184, sortable: true, text: (row) => formatTime(row.createdTime), value: (row) => row.createdTime },
  { key: "entityType", label: "Kind", px: 90, least: 70, text: (row) => t(wordsOf(row.entityId?.entityType ?? "")) },
  { key: "entityName", label: "Entity", px: 220, least: 130, text: (row) => row.entityName ?? "" },
  { key: "userName", label: "User", px: 220, least: 130, sortable: true, text: (row) => row.userName ?? "" },
  { key: "actionType", label: "Action", px: 130, least: 90, sortable: true, text: (row) => t(wordsOf(row.actionType)) },
  { key: "actionStatus", label: "Status", px: 80, least: 76, sortable: true, text: (row) => t(wordsOf(row.actionStatus)) },
  { key: "actionFailureDetails", label: "Why it failed", px: 112, least: 70, text: (row) => row.actionFailureDetails ?? "" },
];

const NEWEST: GridSort = { key: "createdTime", order: "DESC" };

/** The audit log of one entity, or of the tenant. */
export function AuditTab({ id }: { id?: EntityId }): ReactElement {
  const [shown, setShown] = useState<AuditEntry>();
  const control = useListState(NEWEST, AUDIT_FILTERS, true);
  const { filters } = control.state;
  const fields = useMemo(() => [...(id === undefined ? WHOSE_FILTERS : []), ACTION_FILTER, ...TIME_FILTERS], [id]);
  const times = useMemo(() => timesOf(filters, undefined, Date.now()), [filters["last"], filters["from"], filters["to"]]);
  const change = (texts: Record<string, string>): void => control.change({ filters: fitting({ ...filters, ...texts }) });
  return (
    <>
      <DataTable<AuditEntry>
        label={t("Audit log")}
        path={auditPath(id, filters)}
        query={{ ...times, actionTypes: filters["actions"] }}
        columns={AUDIT_COLUMNS}
        rowKey={(row) => row.id.id}
        sort={NEWEST}
        control={control}
        filterNames={AUDIT_FILTERS}
        {...(id === undefined ? { name: "AUDIT_LOG" } : {})}
        onOpen={setShown}
        filters={
          <>
            <Select
              w={150}
              aria-label={t("Time")}
              placeholder={t(filters["from"] || filters["to"] ? "as chosen" : "any time")}
              clearable
              clearButtonProps={{ "aria-label": t("Clear the choice") }}
              value={filters["from"] || filters["to"] ? null : filters["last"] || null}
              onChange={(next) => change({ last: next ?? "", from: "", to: "" })}
              data={AUDIT_TIMES.map(({ value, label }) => ({ value, label: t(label) }))}
            />
            <FilterForm fields={fields} texts={filters} change={change} />
          </>
        }
      />
      <Modal opened={shown !== undefined} onClose={() => setShown(undefined)} size="lg" title={`${t(wordsOf(shown?.actionType ?? ""))}: ${shown?.entityName ?? ""}`} closeButtonProps={{ "aria-label": t("Close") }}>
        <Code block tabIndex={0}>{JSON.stringify(shown?.actionData ?? null, null, 2)}</Code>
      </Modal>
    </>
  );
}
