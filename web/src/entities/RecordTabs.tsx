// The audit log of an entity, or of the tenant.

import type { ReactElement } from "react";
import type { EntityId } from "@/api/types";
import { formatTime, t } from "@/i18n";
import { DataTable, type Column } from "@/ui/list/DataTable";

interface AuditEntry {
  id: EntityId;
  createdTime: number;
  entityName?: string | null;
  userName?: string | null;
  actionType: string;
  actionStatus: string;
  actionFailureDetails?: string | null;
}

const AUDIT_COLUMNS: Column<AuditEntry>[] = [
  { key: "createdTime", label: "Time", width: "11.5rem", sortable: true, text: (row) => formatTime(row.createdTime), value: (row) => row.createdTime },
  { key: "entityName", label: "Entity", text: (row) => row.entityName ?? "" },
  { key: "userName", label: "User", sortable: true, text: (row) => row.userName ?? "" },
  { key: "actionType", label: "Action", sortable: true, text: (row) => row.actionType },
  { key: "actionStatus", label: "Status", sortable: true, text: (row) => row.actionStatus },
  { key: "actionFailureDetails", label: "Why it failed", text: (row) => row.actionFailureDetails ?? "" },
];

/** The audit log of one entity, or of the tenant. */
export function AuditTab({ id }: { id?: EntityId }): ReactElement {
  return (
    <DataTable<AuditEntry>
      label={t("Audit log")}
      path={id === undefined ? "/api/audit/logs" : `/api/audit/logs/entity/${id.entityType}/${id.id}`}
      columns={AUDIT_COLUMNS}
      rowKey={(row) => row.id.id}
      sort={{ key: "createdTime", order: "DESC" }}
    />
  );
}
