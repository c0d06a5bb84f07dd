// An alarm as lists and subscriptions give it.

import type { EntityId } from "@/api/types";
import { object, text, type Json } from "@/dashboard/json";
import { formatTime, t } from "@/i18n";

export interface Assignee {
  id: EntityId;
  firstName?: string | null;
  lastName?: string | null;
  email: string;
}

export interface Alarm {
  id: EntityId;
  createdTime: number;
  type: string;
  severity: string;
  status: string;
  acknowledged: boolean;
  cleared: boolean;
  originator: EntityId;
  originatorName?: string | null;
  originatorLabel?: string | null;
  assigneeId?: EntityId | null;
  assignee?: Assignee | null;
  startTs: number;
  endTs: number;
  ackTs: number;
  clearTs: number;
  assignTs: number;
  details?: unknown;
  propagate?: boolean;
  propagateToOwner?: boolean;
  propagateToTenant?: boolean;
  propagateRelationTypes?: string[] | null;
  /** The entity of the query that it was found for. */
  entityId?: EntityId | null;
  /** Values of that entity. */
  latest?: Record<string, Record<string, { ts: number; value: unknown }>>;
  [field: string]: unknown;
}

export const SEVERITIES = ["CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE"] as const;
/** States that alarms are searched by. */
export const STATES = ["ACTIVE", "CLEARED", "UNACK", "ACK"] as const;
export const STATE_LABELS = [
  { value: "ACTIVE", label: "Active" },
  { value: "CLEARED", label: "Cleared" },
  { value: "UNACK", label: "Unacknowledged" },
  { value: "ACK", label: "Acknowledged" },
] as const;
/** Kinds of entities that alarms come from. */
export const ORIGINATORS = ["DEVICE", "ASSET", "ENTITY_VIEW", "CUSTOMER", "TENANT", "USER", "DASHBOARD", "RULE_CHAIN", "EDGE"] as const;

export const SEVERITY_COLORS: Record<string, string> = { CRITICAL: "red", MAJOR: "orange", MINOR: "yellow", WARNING: "grape", INDETERMINATE: "gray" };
const FILLS: Record<string, string> = { CRITICAL: "#e03131", MAJOR: "#e8590c", MINOR: "#b58900", WARNING: "#9c36b5", INDETERMINATE: "#868e96" };

/** The color of a bar that stands for an alarm. */
export const severityFill = (severity: string | null | undefined): string => FILLS[severity ?? ""] ?? "#868e96";

const STATUS_LABELS = [
  { value: "ACTIVE_UNACK", label: "Active, unacknowledged" },
  { value: "ACTIVE_ACK", label: "Active, acknowledged" },
  { value: "CLEARED_UNACK", label: "Cleared, unacknowledged" },
  { value: "CLEARED_ACK", label: "Cleared, acknowledged" },
] as const;

/** Returns the state of an alarm in words. */
export function statusText(status: string): string {
  return t(STATUS_LABELS.find(({ value }) => value === status)?.label ?? status);
}

export function assigneeName(alarm: Alarm): string {
  const { assignee } = alarm;
  const name = [assignee?.firstName, assignee?.lastName].filter((part) => typeof part === "string" && part !== "").join(" ");
  return name !== "" ? name : (assignee?.email ?? "");
}

export function originatorName(alarm: Alarm): string {
  return text(alarm.originatorName) ?? alarm.originator.id;
}

/** How long an alarm has been or was active, in milliseconds. */
export function durationOf(alarm: Alarm, now: number): number {
  return Math.max(0, (alarm.cleared ? alarm.clearTs : now) - alarm.startTs);
}

const moment = (ts: number): string => (ts > 0 ? formatTime(ts) : "");

/** Fields of alarms that columns can show, by the names that dashboards have for them. */
const FIELDS: Record<string, { label: string; sort?: string; text: (alarm: Alarm) => string }> = {
  createdTime: { label: "Created", sort: "createdTime", text: (alarm) => moment(alarm.createdTime) },
  startTime: { label: "Started", sort: "startTs", text: (alarm) => moment(alarm.startTs) },
  endTime: { label: "Last raised", sort: "endTs", text: (alarm) => moment(alarm.endTs) },
  ackTime: { label: "Acknowledged at", sort: "ackTs", text: (alarm) => moment(alarm.ackTs) },
  clearTime: { label: "Cleared at", sort: "clearTs", text: (alarm) => moment(alarm.clearTs) },
  assignTime: { label: "Assigned at", sort: "assignTs", text: (alarm) => moment(alarm.assignTs) },
  originator: { label: "Originator", sort: "originatorName", text: originatorName },
  originatorLabel: { label: "Label of the originator", sort: "originatorLabel", text: (alarm) => text(alarm.originatorLabel) ?? "" },
  originatorType: { label: "Kind of originator", sort: "originatorType", text: (alarm) => t(alarm.originator.entityType) },
  type: { label: "Type", sort: "type", text: (alarm) => alarm.type },
  severity: { label: "Severity", sort: "severity", text: (alarm) => t(alarm.severity) },
  status: { label: "Status", sort: "status", text: (alarm) => statusText(alarm.status) },
  assignee: { label: "Assignee", sort: "assignee", text: assigneeName },
};
/** Names of the fields that tables of alarms can show. */
export const ALARM_FIELDS: readonly string[] = Object.keys(FIELDS);
const SAME: Record<string, string> = { createdTime: "createdTime", startTs: "startTime", endTs: "endTime", ackTs: "ackTime", clearTs: "clearTime", assignTs: "assignTime", originatorName: "originator", originatorId: "originator", assigneeId: "assignee" };

/** Returns what is known of a field, under any of its names. */
export function fieldOf(name: string): { label: string; sort?: string; text: (alarm: Alarm) => string } | undefined {
  return FIELDS[SAME[name] ?? name];
}

/** Returns what lies at a path within an alarm, such as `details.temperature`. */
export function atPath(alarm: Alarm, path: string): string {
  const found = path.split(".").reduce<unknown>((value, name) => object(value)[name], alarm as Json);
  return found === undefined || found === null ? "" : typeof found === "object" ? JSON.stringify(found) : String(found);
}

/** Compares alarms by a property as the server does. */
export function compareAlarms(property: string, order: "ASC" | "DESC"): (a: Alarm, b: Alarm) => number {
  const value = (alarm: Alarm): string | number => {
    if (property === "originatorName") {
      return originatorName(alarm).toLowerCase();
    }
    if (property === "assignee") {
      return (alarm.assignee?.email ?? "").toLowerCase();
    }
    if (property === "originatorType") {
      return alarm.originator.entityType;
    }
    const own = alarm[property];
    return typeof own === "number" ? own : typeof own === "string" ? own.toLowerCase() : "";
  };
  const sign = order === "ASC" ? 1 : -1;
  return (a, b) => {
    const [x, y] = [value(a), value(b)];
    const both = typeof x === "number" && typeof y === "number" ? x - y : String(x) < String(y) ? -1 : String(x) > String(y) ? 1 : 0;
    return sign * both || b.createdTime - a.createdTime || (a.id.id < b.id.id ? -1 : 1);
  };
}

/** Alarms that have been seen, and when the newest of them came. */
export interface KnownAlarms {
  ids: ReadonlySet<string>;
  newest: number;
}

/** Returns the alarms that came since; none before the first answer. Older ones only move up when another one is gone. */
export function newAlarms(known: KnownAlarms | undefined, alarms: readonly Alarm[]): Alarm[] {
  return known === undefined ? [] : alarms.filter((alarm) => !known.ids.has(alarm.id.id) && alarm.createdTime >= known.newest);
}

/** Adds alarms to what is known of them. */
export function withAlarms(known: KnownAlarms | undefined, alarms: readonly Alarm[]): KnownAlarms {
  return { ids: new Set([...(known?.ids ?? []), ...alarms.map((alarm) => alarm.id.id)]), newest: Math.max(known?.newest ?? 0, ...alarms.map((alarm) => alarm.createdTime)) };
}
