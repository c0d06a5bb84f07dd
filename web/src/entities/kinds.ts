// What the screens of each kind of entities have. Lists, forms and pages are made from these declarations.

import type { Authority, Entity } from "@/api/types";
import { formatTime, t } from "@/i18n";
import type { Column } from "@/ui/DataTable";
import type { FormField } from "@/ui/FieldsForm";

export type EntityTab = "details" | "telemetry" | "dashboard" | "attributes" | "alarms" | "relations" | "commands" | "connect" | "audit";

export interface EntityKind {
  type: string;
  /** Path of the list in the address bar; the page of one entity lies below it. */
  path: string;
  plural: string;
  singular: string;
  section: "Overview" | "Things" | "People" | "Rules" | "Settings";
  /** The list's endpoint for each role that may see it; `{customerId}` is that of the user. */
  list: Partial<Record<Authority, string>>;
  /** Endpoint of one entity, to which it is also saved. */
  one: string;
  columns: Column<Entity>[];
  fields: FormField[];
  /** The roles that may create, change and delete. */
  writers: Authority[];
  tabs: EntityTab[];
  sortBy?: string;
  /** Whether files of exported entities can be brought in as new ones. */
  importable?: boolean;
}

export function nameOf(entity: Entity): string {
  return entity.title ?? entity.name ?? entity.email ?? entity.id.id;
}

function textOf(value: unknown): string {
  return typeof value === "boolean" ? t(value ? "Yes" : "No") : typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function column(key: string, label: string, sortable = true): Column<Entity> {
  return { key, label, sortable, text: (row) => textOf(row[key]) };
}

const CREATED: Column<Entity> = { key: "createdTime", label: "Created", sortable: true, text: (row) => formatTime(row.createdTime) };
const NAME: FormField = { name: "name", label: "Name", required: true };
const LABEL: FormField = { name: "label", label: "Label" };
const TITLE: FormField = { name: "title", label: "Title", required: true };
const ADDRESS: FormField[] = ["email", "phone", "country", "state", "city", "address", "zip"].map((name) => ({
  name,
  label: { email: "E-mail", zip: "Postcode" }[name] ?? name.charAt(0).toUpperCase() + name.slice(1),
}));
const TENANT: Authority[] = ["TENANT_ADMIN"];
const SYSTEM: Authority[] = ["SYS_ADMIN"];
const THING: EntityTab[] = ["details", "telemetry", "dashboard", "attributes", "alarms", "relations", "audit"];

export const KINDS: EntityKind[] = [
  {
    type: "DEVICE",
    path: "/entities/devices",
    plural: "Devices",
    singular: "Device",
    section: "Things",
    list: { TENANT_ADMIN: "/api/tenant/deviceInfos", CUSTOMER_USER: "/api/customer/{customerId}/deviceInfos" },
    one: "/api/device",
    columns: [column("name", "Name"), column("deviceProfileName", "Profile"), column("label", "Label"), column("active", "Active"), column("customerTitle", "Customer"), CREATED],
    fields: [NAME, LABEL],
    writers: TENANT,
    tabs: ["details", "connect", "telemetry", "dashboard", "attributes", "alarms", "commands", "relations", "audit"],
  },
  {
    type: "ASSET",
    path: "/entities/assets",
    plural: "Assets",
    singular: "Asset",
    section: "Things",
    list: { TENANT_ADMIN: "/api/tenant/assetInfos", CUSTOMER_USER: "/api/customer/{customerId}/assetInfos" },
    one: "/api/asset",
    columns: [column("name", "Name"), column("assetProfileName", "Profile"), column("label", "Label"), column("customerTitle", "Customer"), CREATED],
    fields: [NAME, LABEL],
    writers: TENANT,
    tabs: THING,
  },
  {
    type: "ENTITY_VIEW",
    path: "/entities/entityViews",
    plural: "Entity views",
    singular: "Entity view",
    section: "Things",
    list: { TENANT_ADMIN: "/api/tenant/entityViewInfos", CUSTOMER_USER: "/api/customer/{customerId}/entityViewInfos" },
    one: "/api/entityView",
    columns: [column("name", "Name"), column("type", "Type"), column("customerTitle", "Customer"), CREATED],
    fields: [NAME],
    writers: [],
    tabs: THING,
  },
  {
    type: "DEVICE_PROFILE",
    path: "/profiles/deviceProfiles",
    plural: "Device profiles",
    singular: "Device profile",
    section: "Things",
    list: { TENANT_ADMIN: "/api/deviceProfiles" },
    one: "/api/deviceProfile",
    columns: [column("name", "Name"), column("transportType", "Transport"), column("description", "Description"), column("default", "Default", false), CREATED],
    fields: [NAME, { name: "description", label: "Description", type: "long" }],
    writers: [],
    tabs: ["details", "audit"],
  },
  {
    type: "CUSTOMER",
    path: "/customers",
    plural: "Customers",
    singular: "Customer",
    section: "People",
    list: { TENANT_ADMIN: "/api/customers" },
    one: "/api/customer",
    columns: [column("title", "Title"), column("email", "E-mail"), column("country", "Country"), column("city", "City"), CREATED],
    fields: [TITLE, ...ADDRESS],
    writers: TENANT,
    tabs: ["details", "telemetry", "attributes", "alarms", "relations", "audit"],
  },
  {
    type: "USER",
    path: "/users",
    plural: "Users",
    singular: "User",
    section: "People",
    list: { TENANT_ADMIN: "/api/users" },
    one: "/api/user",
    columns: [column("email", "E-mail"), column("firstName", "First name"), column("lastName", "Last name"), column("authority", "Role", false), CREATED],
    fields: [{ name: "email", label: "E-mail", required: true }, { name: "firstName", label: "First name" }, { name: "lastName", label: "Last name" }, { name: "phone", label: "Phone" }],
    writers: [],
    tabs: ["details", "attributes", "audit"],
    sortBy: "email",
  },
  {
    type: "DASHBOARD",
    path: "/dashboards",
    plural: "Dashboards",
    singular: "Dashboard",
    section: "Overview",
    list: { TENANT_ADMIN: "/api/tenant/dashboards", CUSTOMER_USER: "/api/customer/{customerId}/dashboards" },
    one: "/api/dashboard",
    columns: [column("title", "Title"), CREATED],
    fields: [TITLE],
    writers: TENANT,
    tabs: ["details", "audit"],
    sortBy: "title",
    importable: true,
  },
  {
    type: "RULE_CHAIN",
    path: "/ruleChains",
    plural: "Rule chains",
    singular: "Rule chain",
    section: "Rules",
    list: { TENANT_ADMIN: "/api/ruleChains" },
    one: "/api/ruleChain",
    columns: [column("name", "Name"), column("root", "Root", false), CREATED],
    fields: [NAME],
    writers: TENANT,
    tabs: ["details", "audit"],
  },
  {
    type: "TENANT",
    path: "/tenants",
    plural: "Tenants",
    singular: "Tenant",
    section: "People",
    list: { SYS_ADMIN: "/api/tenantInfos" },
    one: "/api/tenant",
    columns: [column("title", "Title"), column("tenantProfileName", "Profile"), column("email", "E-mail"), column("country", "Country"), column("city", "City"), CREATED],
    fields: [TITLE, ...ADDRESS],
    writers: SYSTEM,
    tabs: ["details", "attributes"],
    sortBy: "title",
  },
  {
    type: "TENANT_PROFILE",
    path: "/tenantProfiles",
    plural: "Tenant profiles",
    singular: "Tenant profile",
    section: "Settings",
    list: { SYS_ADMIN: "/api/tenantProfiles" },
    one: "/api/tenantProfile",
    columns: [column("name", "Name"), column("description", "Description"), column("default", "Default", false), CREATED],
    fields: [NAME, { name: "description", label: "Description", type: "long" }],
    writers: [],
    tabs: ["details"],
  },
];

/** Returns the path of an entity's page, if its kind has one. */
export function pathOf(id: { entityType: string; id: string }): string | undefined {
  const kind = KINDS.find((candidate) => candidate.type === id.entityType);
  return kind === undefined ? undefined : `${kind.path}/${id.id}`;
}
