// What is recorded about an entity: alarms, relations, the audit log.

import { Badge, Button, Table } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { EntityId } from "@/api/types";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { DataTable, type Column } from "@/ui/DataTable";
import { EmptyState, notify, Problem, TextLink, Waiting } from "@/ui/feedback";
import { pathOf } from "./kinds";

interface Alarm {
  id: EntityId;
  createdTime: number;
  type: string;
  severity: string;
  status: string;
  acknowledged: boolean;
  cleared: boolean;
  originator: EntityId;
  originatorName?: string | null;
  [field: string]: unknown;
}

const SEVERITY_COLORS: Record<string, string> = { CRITICAL: "red", MAJOR: "orange", MINOR: "yellow", WARNING: "grape", INDETERMINATE: "gray" };

function Originator({ alarm }: { alarm: Alarm }): ReactElement {
  const path = pathOf(alarm.originator);
  const name = alarm.originatorName ?? alarm.originator.id;
  return path === undefined ? <>{name}</> : <TextLink to={path}>{name}</TextLink>;
}

const ALARM_COLUMNS: Column<Alarm>[] = [
  { key: "createdTime", label: "Created", sortable: true, text: (row) => formatTime(row.createdTime) },
  { key: "originatorName", label: "Originator", text: (row) => row.originatorName ?? row.originator.id, show: (row) => <Originator alarm={row} /> },
  { key: "type", label: "Type", sortable: true, text: (row) => row.type },
  {
    key: "severity",
    label: "Severity",
    sortable: true,
    text: (row) => row.severity,
    show: (row) => (
      <Badge variant="dot" color={SEVERITY_COLORS[row.severity] ?? "gray"}>
        {t(row.severity)}
      </Badge>
    ),
  },
  { key: "status", label: "Status", sortable: true, text: (row) => t(row.status) },
];

/** Alarms of one entity, or of all that the user sees. */
export function AlarmsTab({ id }: { id?: EntityId }): ReactElement {
  const cache = useQueryClient();
  const { authority } = useSession();
  const act = async (rows: Alarm[], action: "ack" | "clear", done: () => void): Promise<void> => {
    const open = rows.filter((alarm) => !(action === "ack" ? alarm.acknowledged : alarm.cleared));
    try {
      for (const alarm of open) {
        await api.post(`/api/alarm/${alarm.id.id}/${action}`);
      }
      notify.ok(t(action === "ack" ? "{n} acknowledged" : "{n} cleared", { n: open.length }));
      done();
    } catch (error) {
      notify.error(error);
    }
    await cache.invalidateQueries({ queryKey: ["list"] });
  };
  return (
    <DataTable<Alarm>
      label={t("Alarms")}
      path={id === undefined ? "/api/v2/alarms" : `/api/v2/alarm/${id.entityType}/${id.id}`}
      query={{ fetchOriginator: true }}
      columns={ALARM_COLUMNS}
      rowKey={(row) => row.id.id}
      sort={{ key: "createdTime", order: "DESC" }}
      {...(authority === "SYS_ADMIN"
        ? {}
        : {
            bulk: (rows: Alarm[], done: () => void) => (
              <>
                <Button size="xs" onClick={() => void act(rows, "ack", done)}>
                  {t("Acknowledge {n}", { n: rows.length })}
                </Button>
                <Button size="xs" variant="default" onClick={() => void act(rows, "clear", done)}>
                  {t("Clear {n}", { n: rows.length })}
                </Button>
              </>
            ),
          })}
    />
  );
}

interface Relation {
  from: EntityId;
  to: EntityId;
  type: string;
  fromName?: string;
  toName?: string;
}

export function RelationsTab({ id }: { id: EntityId }): ReactElement {
  const relations = useQuery({
    queryKey: ["relations", id.id],
    queryFn: async () => [
      ...(await api.get<Relation[]>("/api/relations/info", { fromId: id.id, fromType: id.entityType })),
      ...(await api.get<Relation[]>("/api/relations/info", { toId: id.id, toType: id.entityType })),
    ],
  });
  if (relations.isPending) {
    return <Waiting />;
  }
  if (relations.isError) {
    return <Problem error={relations.error} />;
  }
  if (relations.data.length === 0) {
    return <EmptyState>{t("No relations.")}</EmptyState>;
  }
  return (
    <Table aria-label={t("Relations")}>
      <Table.Thead>
        <Table.Tr>
          {["Direction", "Type", "Entity"].map((label) => (
            <Table.Th key={label}>{t(label)}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {relations.data.map((relation) => {
          const outward = relation.from.id === id.id;
          const other = outward ? relation.to : relation.from;
          const name = (outward ? relation.toName : relation.fromName) ?? other.id;
          const path = pathOf(other);
          return (
            <Table.Tr key={`${relation.from.id} ${relation.type} ${relation.to.id}`}>
              <Table.Td>{t(outward ? "From here" : "To here")}</Table.Td>
              <Table.Td>{relation.type}</Table.Td>
              <Table.Td>{path === undefined ? name : <TextLink to={path}>{name}</TextLink>}</Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}

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
  { key: "createdTime", label: "Time", sortable: true, text: (row) => formatTime(row.createdTime) },
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
