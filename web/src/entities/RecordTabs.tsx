// The audit log of an entity, or of the tenant.

import { Code, Modal } from "@mantine/core";
import { useState, type ReactElement } from "react";
import type { EntityId } from "@/api/types";
import { formatTime, t } from "@/i18n";
import { wordsOf } from "@/ui/form/values";
import { DataTable, type Column } from "@/ui/list/DataTable";

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
  { key: "createdTime", label: "Time", width: "11.5rem", sortable: true, text: (row) => formatTime(row.createdTime), value: (row) => row.createdTime },
  { key: "entityType", label: "Kind", text: (row) => t(wordsOf(row.entityId?.entityType ?? "")) },
  { key: "entityName", label: "Entity", text: (row) => row.entityName ?? "" },
  { key: "userName", label: "User", sortable: true, text: (row) => row.userName ?? "" },
  { key: "actionType", label: "Action", sortable: true, text: (row) => t(wordsOf(row.actionType)) },
  { key: "actionStatus", label: "Status", sortable: true, text: (row) => t(wordsOf(row.actionStatus)) },
  { key: "actionFailureDetails", label: "Why it failed", text: (row) => row.actionFailureDetails ?? "" },
];

/** The audit log of one entity, or of the tenant. */
export function AuditTab({ id }: { id?: EntityId }): ReactElement {
  const [shown, setShown] = useState<AuditEntry>();
  return (
    <>
      <DataTable<AuditEntry>
        label={t("Audit log")}
        path={id === undefined ? "/api/audit/logs" : `/api/audit/logs/entity/${id.entityType}/${id.id}`}
        columns={AUDIT_COLUMNS}
        rowKey={(row) => row.id.id}
        sort={{ key: "createdTime", order: "DESC" }}
        onOpen={setShown}
      />
      <Modal opened={shown !== undefined} onClose={() => setShown(undefined)} size="lg" title={`${t(wordsOf(shown?.actionType ?? ""))}: ${shown?.entityName ?? ""}`} closeButtonProps={{ "aria-label": t("Close") }}>
        <Code block tabIndex={0}>{JSON.stringify(shown?.actionData ?? null, null, 2)}</Code>
      </Modal>
    </>
  );
}
