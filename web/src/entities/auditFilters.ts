// What the audit log can be narrowed by: by one user, customer or entity, and by actions and time.

import type { EntityId } from "@/api/types";
import type { FormField } from "@/ui/form/values";
import { TIME_NAMES } from "@/ui/list/filterValues";

/** Kinds of entities with the lists that they are chosen from. */
const KINDS = [
  { value: "DEVICE", label: "Device", list: "/api/tenant/devices" },
  { value: "ASSET", label: "Asset", list: "/api/tenant/assets" },
  { value: "ENTITY_VIEW", label: "Entity view", list: "/api/tenant/entityViews" },
  { value: "DASHBOARD", label: "Dashboard", list: "/api/tenant/dashboards" },
  { value: "RULE_CHAIN", label: "Rule chain", list: "/api/ruleChains" },
  { value: "DEVICE_PROFILE", label: "Device profile", list: "/api/deviceProfiles" },
  { value: "ASSET_PROFILE", label: "Asset profile", list: "/api/assetProfiles" },
] as const;

/** One of these at a time, as the API has it. */
export const WHOSE_FILTERS: readonly FormField[] = [
  { name: "whose", label: "Actions", type: "select", options: [{ value: "user", label: "of a user" }, { value: "customer", label: "about a customer" }, ...KINDS.map(({ value, label }) => ({ value, label }))] },
  { name: "who", label: "User", type: "entity", list: "/api/users", when: ({ whose }) => whose === "user" },
  { name: "who", label: "Customer", type: "entity", list: "/api/customers", when: ({ whose }) => whose === "customer" },
  ...KINDS.map(({ value, label, list }): FormField => ({ name: "who", label, type: "entity", list, when: ({ whose }) => whose === value })),
];

export const ACTION_FILTER: FormField = {
  name: "actions", label: "Kinds of actions", type: "several",
  options: [
    "ADDED", "DELETED", "UPDATED", "ATTRIBUTES_UPDATED", "ATTRIBUTES_DELETED", "ATTRIBUTES_READ", "TIMESERIES_UPDATED", "TIMESERIES_DELETED", "RPC_CALL", "CREDENTIALS_UPDATED", "CREDENTIALS_READ",
    "ASSIGNED_TO_CUSTOMER", "UNASSIGNED_FROM_CUSTOMER", "ACTIVATED", "SUSPENDED", "RELATION_ADD_OR_UPDATE", "RELATION_DELETED", "RELATIONS_DELETED", "REST_API_RULE_ENGINE_CALL", "ALARM_ACK", "ALARM_CLEAR",
    "ALARM_DELETE", "ALARM_ASSIGNED", "ALARM_UNASSIGNED", "LOGIN", "LOGOUT", "LOCKOUT", "ASSIGNED_FROM_TENANT", "ASSIGNED_TO_TENANT", "PROVISION_SUCCESS", "PROVISION_FAILURE", "ADDED_COMMENT", "UPDATED_COMMENT",
    "DELETED_COMMENT", "SMS_SENT",
  ],
};

export const AUDIT_TIMES = [
  { value: "3600000", label: "last hour" },
  { value: "86400000", label: "last day" },
  { value: "604800000", label: "last 7 days" },
  { value: "2592000000", label: "last 30 days" },
] as const;

export const AUDIT_FILTERS: readonly string[] = ["whose", "who", "actions", ...TIME_NAMES];

/** Drops whom a filter named where another kind has been chosen since. */
export function fitting(texts: Readonly<Record<string, string>>): Record<string, string> {
  const kind = (texts["whose"] ?? "").toUpperCase();
  return { ...texts, who: texts["who"]?.startsWith(`${kind}/`) === true ? texts["who"] : "" };
}

/** Returns where the log of one entity is listed, or of whom a filter names; until then of all. */
export function auditPath(id: EntityId | undefined, texts: Readonly<Record<string, string>>): string {
  const [entityType, entity] = id === undefined ? (texts["who"] ?? "").split("/") : [id.entityType, id.id];
  if (entityType === undefined || entity === undefined || entity === "") {
    return "/api/audit/logs";
  }
  // A user is asked for as whoever acted, a customer as whom actions are about; on its own page an entity is what was changed.
  const part = id !== undefined || (entityType !== "USER" && entityType !== "CUSTOMER") ? `entity/${entityType}` : entityType.toLowerCase();
  return `/api/audit/logs/${part}/${encodeURIComponent(entity)}`;
}
