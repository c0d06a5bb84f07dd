// What the screens of each kind of entities have. Lists, forms and pages are made from these declarations.

import type { Authority, Entity, EntityId } from "@/api/types";
import type { Column } from "@/ui/list/DataTable";
import type { FormField } from "@/ui/FieldsForm";
import { BUNDLES, choice, CLEARS, column, CREATED, CUSTOMER, CUSTOMERS, FIELD_TARGETS, FIELD_TYPES, GATEWAY, nameColumn, NULL_ID, OF_SYSTEM, PACKAGES, RAISES, ROLE_NAMES, RULE_TARGETS, SIZE, TARGET, TARGET_KIND, TRANSPORTS, WIDGET_DATA } from "./columns";

export { NULL_ID };

export type EntityTab =
  | "details" | "telemetry" | "dashboard" | "attributes" | "alarms" | "relations" | "commands" | "connect" | "audit"
  | "events" | "calculatedFields" | "alarmRules" | "reprocess" | "widgets";

export const SECTIONS = ["Overview", "Things", "People", "Rules", "Resources", "Settings"] as const;
/** A part of the menu. */
export type Section = (typeof SECTIONS)[number];

/** Entities that belong to another one, shown as a tab of its page. */
export interface RelatedList {
  type: string;
  label: string;
  /** Where they are listed; `{id}` is the entity's. */
  list: string;
  /** What a new one gets; without it none is added there. */
  preset?: (id: EntityId) => Record<string, unknown>;
}

/** What a list can be narrowed by. */
export interface ListFilter {
  /** The parameter of the request. */
  name: string;
  label: string;
  /** Where the choices are listed; or the choices. */
  list?: string;
  options?: readonly { value: string; label: string }[];
}

export interface EntityKind {
  type: string;
  /** Path of the list in the address bar; the page of one entity lies below it. */
  path: string;
  plural: string;
  singular: string;
  section: Section;
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
  /** Whether files of exported entities can be brought in as new ones, and entities saved as such files. */
  importable?: boolean;
  /** What it is good for, where there is none yet. */
  hint?: string;
  /** How there will be one, for those who may add it. */
  help?: string;
  /** What follows the path of a new one, where one goes on with it. */
  begin?: string;
  /** The name in paths that assign entities to customers. */
  assign?: "device" | "asset" | "entityView" | "dashboard";
  /** Whether one of them is the default, which can be chosen. */
  hasDefault?: boolean;
  related?: RelatedList[];
  filters?: ListFilter[];
  /** Whether some belong to the installation, which only its administrators change. */
  shared?: boolean;
  /** Whether many can be made from a CSV file. */
  bulkImport?: boolean;
}

export function nameOf(entity: Entity): string {
  return entity.title ?? entity.name ?? entity.email ?? entity.id.id;
}

const NAME: FormField = { name: "name", label: "Name", required: true };
const LABEL: FormField = { name: "label", label: "Label" };
const TITLE: FormField = { name: "title", label: "Title", required: true };
const ADDRESS: FormField[] = ["email", "phone", "country", "state", "city", "address", "zip"].map((name) => ({
  name,
  label: { email: "E-mail", zip: "Postcode" }[name] ?? name.charAt(0).toUpperCase() + name.slice(1),
}));
const TENANT: Authority[] = ["TENANT_ADMIN"];
const SYSTEM: Authority[] = ["SYS_ADMIN"];
const THING: EntityTab[] = ["details", "telemetry", "dashboard", "attributes", "alarms", "relations", "events", "audit"];
const FIELDS: EntityTab[] = ["calculatedFields", "alarmRules"];
const LIBRARIANS: Authority[] = ["SYS_ADMIN", "TENANT_ADMIN"];

export const KINDS: EntityKind[] = [
  {
    type: "DEVICE",
    hint: "A device sends values and gets commands.",
    help: "Add one to see how it connects.",
    begin: "?tab=connect",
    path: "/entities/devices",
    plural: "Devices",
    singular: "Device",
    section: "Things",
    list: { TENANT_ADMIN: "/api/tenant/deviceInfos", CUSTOMER_USER: "/api/customer/{customerId}/deviceInfos" },
    one: "/api/device",
    columns: [column("name", "Name"), nameColumn("deviceProfileName", "Profile", "deviceProfileId"), column("label", "Label"), column("active", "Active"), CUSTOMER, GATEWAY, CREATED],
    fields: [NAME, LABEL],
    writers: TENANT,
    tabs: ["details", "connect", "telemetry", "dashboard", "attributes", "alarms", "commands", ...FIELDS, "relations", "events", "audit"],
    assign: "device",
    bulkImport: true,
    filters: [
      { name: "deviceProfileId", label: "Profile", list: "/api/deviceProfileInfos" },
      { name: "active", label: "Active", options: [{ value: "true", label: "Yes" }, { value: "false", label: "No" }] },
    ],
  },
  {
    type: "ASSET",
    hint: "An asset is what devices belong to: a building, a machine, a field.",
    path: "/entities/assets",
    plural: "Assets",
    singular: "Asset",
    section: "Things",
    list: { TENANT_ADMIN: "/api/tenant/assetInfos", CUSTOMER_USER: "/api/customer/{customerId}/assetInfos" },
    one: "/api/asset",
    columns: [column("name", "Name"), nameColumn("assetProfileName", "Profile", "assetProfileId"), column("label", "Label"), CUSTOMER, CREATED],
    fields: [NAME, LABEL],
    writers: TENANT,
    tabs: [...THING.slice(0, -1), ...FIELDS, "audit"],
    assign: "asset",
    bulkImport: true,
    filters: [{ name: "assetProfileId", label: "Profile", list: "/api/assetProfileInfos" }],
  },
  {
    type: "ENTITY_VIEW",
    hint: "A view shows a part of a device's or asset's data to others, such as customers.",
    path: "/entities/entityViews",
    plural: "Entity views",
    singular: "Entity view",
    section: "Things",
    list: { TENANT_ADMIN: "/api/tenant/entityViewInfos", CUSTOMER_USER: "/api/customer/{customerId}/entityViewInfos" },
    one: "/api/entityView",
    columns: [column("name", "Name"), column("type", "Type"), CUSTOMER, CREATED],
    fields: [NAME],
    writers: TENANT,
    tabs: THING,
    assign: "entityView",
  },
  {
    type: "DEVICE_PROFILE",
    path: "/profiles/deviceProfiles",
    plural: "Device profiles",
    singular: "Device profile",
    section: "Things",
    list: { TENANT_ADMIN: "/api/deviceProfiles" },
    one: "/api/deviceProfile",
    columns: [column("name", "Name"), choice("transportType", "Transport", TRANSPORTS), column("description", "Description"), column("default", "Default", false), CREATED],
    fields: [NAME],
    writers: TENANT,
    tabs: ["details", "dashboard", ...FIELDS, "events", "audit"],
    importable: true,
    hasDefault: true,
    related: [{ type: "DEVICE", label: "Devices", list: "/api/tenant/deviceInfos?deviceProfileId={id}" }],
  },
  {
    type: "ASSET_PROFILE",
    path: "/profiles/assetProfiles",
    plural: "Asset profiles",
    singular: "Asset profile",
    section: "Things",
    list: { TENANT_ADMIN: "/api/assetProfiles" },
    one: "/api/assetProfile",
    columns: [column("name", "Name"), column("description", "Description"), column("default", "Default", false), CREATED],
    fields: [NAME],
    writers: TENANT,
    tabs: ["details", "dashboard", ...FIELDS, "events", "audit"],
    importable: true,
    hasDefault: true,
    related: [{ type: "ASSET", label: "Assets", list: "/api/tenant/assetInfos?assetProfileId={id}" }],
  },
  {
    type: "OTA_PACKAGE",
    hint: "A package is firmware or software that devices fetch.",
    path: "/features/otaUpdates",
    plural: "OTA updates",
    singular: "OTA package",
    section: "Things",
    list: { TENANT_ADMIN: "/api/otaPackages" },
    one: "/api/otaPackage",
    columns: [column("title", "Title"), column("version", "Version"), choice("type", "Type", PACKAGES), column("tag", "Tag"), column("checksum", "Checksum"), SIZE, CREATED],
    fields: [TITLE],
    writers: TENANT,
    tabs: ["details", "audit"],
  },
  {
    type: "CUSTOMER",
    hint: "A customer sees the devices, assets and dashboards that are assigned to it.",
    path: "/customers",
    plural: "Customers",
    singular: "Customer",
    section: "People",
    list: { TENANT_ADMIN: "/api/customers" },
    one: "/api/customer",
    columns: [column("title", "Title"), column("email", "E-mail"), column("country", "Country"), column("city", "City"), CREATED],
    fields: [TITLE, ...ADDRESS],
    writers: TENANT,
    tabs: ["details", "telemetry", "dashboard", "attributes", "alarms", "alarmRules", "relations", "events", "audit"],
    related: [
      { type: "USER", label: "Users", list: "/api/customer/{id}/users", preset: (id) => ({ authority: "CUSTOMER_USER", customerId: id }) },
      { type: "DEVICE", label: "Devices", list: "/api/customer/{id}/deviceInfos", preset: (id) => ({ customerId: id }) },
      { type: "ASSET", label: "Assets", list: "/api/customer/{id}/assetInfos", preset: (id) => ({ customerId: id }) },
      { type: "ENTITY_VIEW", label: "Entity views", list: "/api/customer/{id}/entityViewInfos" },
      { type: "DASHBOARD", label: "Dashboards", list: "/api/customer/{id}/dashboards" },
    ],
  },
  {
    type: "USER",
    path: "/users",
    plural: "Users",
    singular: "User",
    section: "People",
    list: { TENANT_ADMIN: "/api/users" },
    one: "/api/user",
    columns: [column("email", "E-mail"), column("firstName", "First name"), column("lastName", "Last name"), choice("authority", "Role", ROLE_NAMES, false), CREATED],
    fields: [{ name: "email", label: "E-mail", required: true }, { name: "firstName", label: "First name" }, { name: "lastName", label: "Last name" }, { name: "phone", label: "Phone" }],
    writers: ["SYS_ADMIN", "TENANT_ADMIN"],
    tabs: ["details", "attributes", "events", "audit"],
    sortBy: "email",
  },
  {
    type: "DASHBOARD",
    hint: "A dashboard shows values and steers devices.",
    help: "Files of ThingsBoard can be imported as they are.",
    path: "/dashboards",
    plural: "Dashboards",
    singular: "Dashboard",
    section: "Overview",
    list: { TENANT_ADMIN: "/api/tenant/dashboards", CUSTOMER_USER: "/api/customer/{customerId}/dashboards" },
    one: "/api/dashboard",
    columns: [column("title", "Title"), CUSTOMERS, CREATED],
    fields: [TITLE],
    writers: TENANT,
    tabs: ["details", "audit"],
    sortBy: "title",
    importable: true,
    begin: "?edit=true",
    assign: "dashboard",
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
    tabs: ["details", "events", "audit"],
  },
  {
    type: "CALCULATED_FIELD",
    hint: "A calculated field makes new values of stored ones, such as an average.",
    path: "/calculatedFields",
    plural: "Calculated fields",
    singular: "Calculated field",
    section: "Rules",
    list: { TENANT_ADMIN: "/api/calculatedFields" },
    one: "/api/calculatedField",
    columns: [column("name", "Name"), choice("type", "Type", FIELD_TYPES), TARGET, TARGET_KIND, CREATED],
    fields: [NAME],
    writers: TENANT,
    tabs: ["details", "reprocess", "events"],
    importable: true,
    filters: [
      { name: "types", label: "Type", options: Object.entries(FIELD_TYPES).map(([value, label]) => ({ value, label })) },
      { name: "entityType", label: "Kind of target", options: FIELD_TARGETS },
    ],
  },
  {
    type: "ALARM_RULE",
    hint: "An alarm rule says when a value is wrong, and how bad that is.",
    path: "/alarms/alarm-rules",
    plural: "Alarm rules",
    singular: "Alarm rule",
    section: "Rules",
    list: { TENANT_ADMIN: "/api/alarm/rules" },
    one: "/api/alarm/rule",
    columns: [column("name", "Alarm type"), TARGET, TARGET_KIND, RAISES, CLEARS, CREATED],
    fields: [NAME],
    writers: TENANT,
    tabs: ["details", "events"],
    importable: true,
    filters: [{ name: "entityType", label: "Kind of target", options: RULE_TARGETS }],
  },
  {
    type: "WIDGET_TYPE",
    hint: "Dashboards draw the usual widgets without any of this. A widget of your own has its HTML, CSS and script here.",
    path: "/resources/widgets-library/widget-types",
    plural: "Widgets",
    singular: "Widget",
    section: "Resources",
    list: { SYS_ADMIN: "/api/widgetTypes?fullSearch=true", TENANT_ADMIN: "/api/widgetTypes?fullSearch=true" },
    one: "/api/widgetType",
    columns: [column("name", "Name"), BUNDLES, choice("widgetType", "Type", WIDGET_DATA, false), OF_SYSTEM, column("deprecated", "Deprecated"), CREATED],
    fields: [NAME],
    writers: LIBRARIANS,
    tabs: ["details"],
    sortBy: "name",
    importable: true,
    shared: true,
    filters: [
      { name: "widgetTypeList", label: "Type", options: Object.entries(WIDGET_DATA).map(([value, label]) => ({ value, label })) },
      { name: "deprecatedFilter", label: "Deprecated", options: [{ value: "ACTUAL", label: "No" }, { value: "DEPRECATED", label: "Yes" }] },
      { name: "tenantOnly", label: "Whose", options: [{ value: "true", label: "Our own" }] },
    ],
  },
  {
    type: "WIDGETS_BUNDLE",
    hint: "A bundle puts widgets together that belong together. Files of ThingsBoard can be imported.",
    path: "/resources/widgets-library/widgets-bundles",
    plural: "Widget bundles",
    singular: "Widget bundle",
    section: "Resources",
    list: { SYS_ADMIN: "/api/widgetsBundles?fullSearch=true", TENANT_ADMIN: "/api/widgetsBundles?fullSearch=true" },
    one: "/api/widgetsBundle",
    columns: [column("title", "Title"), column("description", "Description", false), OF_SYSTEM, CREATED],
    fields: [TITLE],
    writers: LIBRARIANS,
    tabs: ["widgets", "details"],
    sortBy: "title",
    shared: true,
  },
  {
    type: "TENANT",
    hint: "A tenant is an organization with devices and users of its own.",
    path: "/tenants",
    plural: "Tenants",
    singular: "Tenant",
    section: "People",
    list: { SYS_ADMIN: "/api/tenantInfos" },
    one: "/api/tenant",
    columns: [column("title", "Title"), nameColumn("tenantProfileName", "Profile", "tenantProfileId"), column("email", "E-mail"), column("country", "Country"), column("city", "City"), CREATED],
    fields: [TITLE, ...ADDRESS],
    writers: SYSTEM,
    tabs: ["details", "attributes", "events"],
    sortBy: "title",
    related: [{ type: "USER", label: "Administrators", list: "/api/tenant/{id}/users", preset: (id) => ({ authority: "TENANT_ADMIN", tenantId: id }) }],
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
    fields: [NAME],
    writers: SYSTEM,
    tabs: ["details"],
    importable: true,
    hasDefault: true,
  },
  {
    type: "QUEUE",
    path: "/settings/queues",
    plural: "Queues",
    singular: "Queue",
    section: "Settings",
    list: { SYS_ADMIN: "/api/queues?serviceType=TB_RULE_ENGINE", TENANT_ADMIN: "/api/queues?serviceType=TB_RULE_ENGINE" },
    one: "/api/queues",
    columns: [column("name", "Name"), column("topic", "Topic"), column("partitions", "Partitions"), column("pollInterval", "Poll interval, ms"), CREATED],
    fields: [NAME],
    writers: SYSTEM,
    tabs: ["details"],
    sortBy: "name",
  },
];

/** Whether a role may change an entity. */
export function mayChange(kind: EntityKind, entity: Entity, authority: Authority): boolean {
  const isOfSystem = (entity["tenantId"] as EntityId | undefined)?.id === NULL_ID;
  return kind.writers.includes(authority) && (kind.shared !== true || authority === "SYS_ADMIN" || !isOfSystem);
}

/** Whether a role may delete an entity: the default of its kind and the root chain stay until another one is that. */
export function mayDelete(kind: EntityKind, entity: Entity, authority: Authority): boolean {
  return mayChange(kind, entity, authority) && entity["default"] !== true && entity["root"] !== true;
}

/** Returns the path of an entity's page, if its kind has one. */
export function pathOf(id: { entityType: string; id: string }): string | undefined {
  const kind = KINDS.find((candidate) => candidate.type === id.entityType);
  return kind === undefined ? undefined : `${kind.path}/${id.id}`;
}

/** Returns the path of an entity's page for a role that may list its kind. */
export function readablePathOf(id: { entityType: string; id: string }, authority: Authority): string | undefined {
  const kind = KINDS.find((candidate) => candidate.type === id.entityType);
  return kind !== undefined && authority in kind.list ? `${kind.path}/${id.id}` : undefined;
}
