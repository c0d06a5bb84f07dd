// Columns of the lists of entities.

import { SEVERITIES } from "@/alarms/alarm";
import type { Authority, Entity, EntityId } from "@/api/types";
import { formatTime, t } from "@/i18n";
import { isObject, valueAt, wordsOf } from "@/ui/form/values";
import type { Column } from "@/ui/list/DataTable";
import { sizeText } from "@/ui/size";

/** The id that stands for no entity. */
export const NULL_ID = "13814000-1dd2-11b2-8080-808080808080";

function textOf(value: unknown): string {
  return typeof value === "boolean" ? t(value ? "Yes" : "No") : typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** A column with a property as it is. */
export function column(key: string, label: string, sortable = true): Column<Entity> {
  return { key, label, sortable, text: (row) => textOf(row[key]) };
}

/** A column of one of several choices, each with its name. */
export function choice(key: string, label: string, names: Readonly<Record<string, string>>, sortable = true): Column<Entity> {
  return { key, label, sortable, text: (row) => t(names[textOf(row[key])] ?? textOf(row[key])) };
}

/** A column with the name of another entity, whose id is in `of`. */
export function nameColumn(key: string, label: string, of: string, sortable = true): Column<Entity> {
  return { ...column(key, label, sortable), leadsTo: (row) => idIn(row, of) };
}

function idIn(row: Entity, key: string): EntityId | undefined {
  const id = row[key] as EntityId | null | undefined;
  return id === null || id === undefined || id.id === NULL_ID ? undefined : id;
}

export const ROLE_NAMES: Readonly<Record<Authority, string>> = { SYS_ADMIN: "System administrator", TENANT_ADMIN: "Tenant administrator", CUSTOMER_USER: "Customer user" };
/** What calculated fields do, by their type. */
export const FIELD_TYPES = {
  SIMPLE: "Expression",
  SCRIPT: "Script",
  GEOFENCING: "Geofencing",
  PROPAGATION: "Propagation to related entities",
  RELATED_ENTITIES_AGGREGATION: "Aggregation of related entities",
  ENTITY_AGGREGATION: "Aggregation over time",
} as const;
/** What calculated fields can be for, and where these are listed. Alarm rules can be for customers, too. */
export const FIELD_TARGETS = [
  { value: "DEVICE_PROFILE", label: "Device profile", list: "/api/deviceProfileInfos" },
  { value: "DEVICE", label: "Device", list: "/api/tenant/deviceInfos" },
  { value: "ASSET_PROFILE", label: "Asset profile", list: "/api/assetProfileInfos" },
  { value: "ASSET", label: "Asset", list: "/api/tenant/assetInfos" },
];
export const RULE_TARGETS = [...FIELD_TARGETS, { value: "CUSTOMER", label: "Customer", list: "/api/customers" }];
export const WIDGET_DATA = { latest: "Latest values", timeseries: "Time series", alarm: "Alarms", rpc: "Commands", static: "No data" } as const;
export const PACKAGES = { FIRMWARE: "Firmware", SOFTWARE: "Software" } as const;
export const TRANSPORTS = { DEFAULT: "Default", MQTT: "MQTT", COAP: "CoAP" } as const;

/** Whether entities of a kind are for another entity, which their form calls the target. */
export const hasTarget = (type: string): boolean => type === "CALCULATED_FIELD" || type === "ALARM_RULE";
/** The entity whose values a calculated field or alarm rule takes, and of which kind it is. */
export const TARGET = nameColumn("entityName", "Target", "entityId", false);
export const TARGET_KIND: Column<Entity> = { key: "entityType", label: "Kind of target", text: (row) => t(wordsOf(String(valueAt(row, "entityId.entityType") ?? ""))) };

/** Returns the severities that an alarm rule raises, the worst first. */
export function severitiesOf(row: Entity): string[] {
  const rules = valueAt(row, "configuration.createRules");
  return isObject(rules) ? SEVERITIES.filter((severity) => severity in rules) : [];
}

export const RAISES: Column<Entity> = { key: "severities", label: "Severities", text: (row) => severitiesOf(row).map((severity) => t(severity)).join(", ") };
export const CLEARS: Column<Entity> = { key: "clears", label: "Clears by a rule", text: (row) => textOf((valueAt(row, "configuration.clearRule") ?? null) !== null) };

export const CREATED: Column<Entity> = { key: "createdTime", label: "Created", width: "11.5rem", sortable: true, text: (row) => formatTime(row.createdTime), value: (row) => row.createdTime };
export const CUSTOMER: Column<Entity> = { key: "customerTitle", label: "Customer", sortable: true, leadsTo: (row) => idIn(row, "customerId"), text: (row) => (row["customerIsPublic"] === true ? t("Public") : textOf(row["customerTitle"])) };
export const CUSTOMERS: Column<Entity> = {
  key: "assignedCustomers", label: "Customers",
  text: (row) => (Array.isArray(row["assignedCustomers"]) ? row["assignedCustomers"].map((one: { title?: string; public?: boolean }) => (one.public === true ? t("Public") : (one.title ?? ""))).join(", ") : ""),
};
export const SIZE: Column<Entity> = { key: "dataSize", label: "Size", sortable: true, text: (row) => sizeText(row["dataSize"] as number | null | undefined), value: (row) => Number(row["dataSize"] ?? 0) };
export const GATEWAY: Column<Entity> = { key: "gateway", label: "Gateway", text: (row) => (isGateway(row) ? t("Yes") : "") };
export const OF_SYSTEM: Column<Entity> = { key: "tenantId", label: "Of the installation", sortable: true, text: (row) => ((row["tenantId"] as EntityId | undefined)?.id === NULL_ID ? t("Yes") : "") };
export const BUNDLES: Column<Entity> = { key: "bundles", label: "Bundles", text: (row) => (Array.isArray(row["bundles"]) ? row["bundles"].map((one: { name?: string }) => one.name ?? "").join(", ") : "") };

/** Whether a device stands for others that connect through it. */
export function isGateway(row: Entity): boolean {
  const info = row["additionalInfo"];
  return typeof info === "object" && info !== null && "gateway" in info && info.gateway === true;
}
