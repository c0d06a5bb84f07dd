// Columns of the lists of entities.

import type { Authority, Entity, EntityId } from "@/api/types";
import { formatTime, t } from "@/i18n";
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
export const WIDGET_DATA = { latest: "Latest values", timeseries: "Time series", alarm: "Alarms", rpc: "Commands", static: "No data" } as const;
export const PACKAGES = { FIRMWARE: "Firmware", SOFTWARE: "Software" } as const;
export const TRANSPORTS = { DEFAULT: "Default", MQTT: "MQTT", COAP: "CoAP" } as const;

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
