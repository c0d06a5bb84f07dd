// Forms of devices, assets, views, packages, dashboards and people.

import { KINDS } from "@/entities/kinds";
import { valueAt, type FormField } from "@/ui/form/values";

const NAME: FormField = { name: "name", label: "Name", required: true };
const TITLE: FormField = { name: "title", label: "Title", required: true };
const LABEL: FormField = { name: "label", label: "Label" };
const DESCRIPTION: FormField = { name: "additionalInfo.description", label: "Description", type: "long" };

export const DEVICE_FORM: FormField[] = [
  NAME,
  LABEL,
  { name: "deviceProfileId", label: "Device profile", type: "entity", list: "/api/deviceProfileInfos" },
  { name: "firmwareId", label: "Firmware of its own", type: "entity", list: "/api/otaPackages/{deviceProfileId.id}/FIRMWARE", once: false, when: (values) => "firmwareId" in values },
  { name: "softwareId", label: "Software of its own", type: "entity", list: "/api/otaPackages/{deviceProfileId.id}/SOFTWARE", when: (values) => "softwareId" in values },
  { name: "additionalInfo.gateway", label: "It is a gateway", type: "boolean" },
  { name: "additionalInfo.overwriteActivityTime", label: "Activity of devices behind the gateway counts as its own", type: "boolean", when: (values) => (values["additionalInfo"] as { gateway?: boolean } | null | undefined)?.gateway === true },
  DESCRIPTION,
];

export const ASSET_FORM: FormField[] = [NAME, LABEL, { name: "assetProfileId", label: "Asset profile", type: "entity", list: "/api/assetProfileInfos" }, DESCRIPTION];

export const ENTITY_VIEW_FORM: FormField[] = [
  NAME,
  { name: "type", label: "Type", required: true, initial: "default" },
  {
    name: "entityId.entityType", label: "Kind of entity it shows", type: "select", required: true, initial: "DEVICE", once: true,
    options: [{ value: "DEVICE", label: "Device" }, { value: "ASSET", label: "Asset" }],
  },
  { name: "entityId", label: "Device it shows", type: "entity", list: "/api/tenant/deviceInfos", required: true, once: true, when: (values) => kindOf(values) !== "ASSET" },
  { name: "entityId", label: "Asset it shows", type: "entity", list: "/api/tenant/assetInfos", required: true, once: true, when: (values) => kindOf(values) === "ASSET" },
  { name: "keys.timeseries", label: "Time series", type: "own", drawnBy: "keys", slim: true, initial: [] },
  { name: "keys.attributes.cs", label: "Client attributes", type: "own", drawnBy: "keys", slim: true, initial: [] },
  { name: "keys.attributes.sh", label: "Shared attributes", type: "own", drawnBy: "keys", slim: true, initial: [] },
  { name: "keys.attributes.ss", label: "Server attributes", type: "own", drawnBy: "keys", slim: true, initial: [] },
  { name: "startTimeMs", label: "Shows data from", type: "time", initial: 0 },
  { name: "endTimeMs", label: "Shows data until", type: "time", initial: 0 },
  DESCRIPTION,
];

function kindOf(values: Record<string, unknown>): string | undefined {
  return (values["entityId"] as { entityType?: string } | undefined)?.entityType;
}

export const OTA_PACKAGE_FORM: FormField[] = [
  { name: "title", label: "Title", required: true, once: true },
  { name: "version", label: "Version", required: true, once: true },
  { name: "tag", label: "Tag", once: true },
  { name: "type", label: "Type", type: "select", options: ["FIRMWARE", "SOFTWARE"], required: true, initial: "FIRMWARE", once: true },
  { name: "deviceProfileId", label: "Device profile", type: "entity", list: "/api/deviceProfileInfos", required: true, once: true },
  { name: "usesUrl", label: "Devices fetch it from an address", type: "boolean", once: true },
  { name: "url", label: "Address", required: true, once: true, when: (values) => values["usesUrl"] === true },
  DESCRIPTION,
];

export const DASHBOARD_FORM: FormField[] = [
  { name: "title", label: "Title", required: true },
  { name: "image", label: "Picture of the dashboard", type: "image", when: ({ id }) => id !== undefined },
  { name: "mobileHide", label: "Hidden in the mobile application", type: "boolean" },
  { name: "mobileOrder", label: "Place in the mobile application", type: "number" },
];

/** The dashboard that users of a role begin with, and whether they get no other screen. */
function beginWith(authority: string, list: string): FormField[] {
  const isOfRole = (values: Record<string, unknown>): boolean => values["authority"] === authority && values["id"] !== undefined;
  return [
    { name: "additionalInfo.defaultDashboardId", label: "Begins with this dashboard", type: "entity", list, pick: "id", one: "/api/dashboard/info/", when: isOfRole },
    {
      name: "additionalInfo.defaultDashboardFullscreen", label: "and gets no other screen", type: "boolean",
      when: (values) => isOfRole(values) && ((values["additionalInfo"] as { defaultDashboardId?: string | null } | null)?.defaultDashboardId ?? "") !== "",
    },
  ];
}

export const USER_FORM: FormField[] = [
  { name: "email", label: "E-mail", required: true },
  { name: "firstName", label: "First name" },
  { name: "lastName", label: "Last name" },
  { name: "phone", label: "Phone" },
  { name: "customerId", label: "Customer", type: "entity", list: "/api/customers", required: true, once: true, when: (values) => values["tenantId"] === undefined },
  ...beginWith("CUSTOMER_USER", "/api/customer/{customerId.id}/dashboards"),
  ...beginWith("TENANT_ADMIN", "/api/tenant/{tenantId.id}/dashboards"),
  DESCRIPTION,
];

const fieldsOf = (type: string): readonly FormField[] => KINDS.find((kind) => kind.type === type)?.fields ?? [];

export const CUSTOMER_FORM: FormField[] = [
  ...fieldsOf("CUSTOMER"),
  {
    name: "additionalInfo.homeDashboardId", label: "Home of its users shows this dashboard", type: "entity", list: "/api/customer/{id.id}/dashboards", pick: "id", one: "/api/dashboard/info/",
    when: (values) => values["id"] !== undefined,
  },
  {
    name: "additionalInfo.homeDashboardHideToolbar", label: "without its toolbar", type: "boolean", otherwise: true,
    when: (values) => (valueAt(values, "additionalInfo.homeDashboardId") ?? "") !== "",
  },
  DESCRIPTION,
];

export const TENANT_FORM: FormField[] = [
  ...fieldsOf("TENANT"),
  { name: "tenantProfileId", label: "Tenant profile", type: "entity", list: "/api/tenantProfileInfos" },
  DESCRIPTION,
];

export const WIDGET_TYPE_FORM: FormField[] = [
  NAME,
  {
    name: "descriptor.type", label: "What it shows", type: "select", required: true, initial: "latest", once: true,
    options: [
      { value: "latest", label: "Latest values" },
      { value: "timeseries", label: "Time series" },
      { value: "alarm", label: "Alarms" },
      { value: "rpc", label: "Commands" },
      { value: "static", label: "No data" },
    ],
  },
  { name: "description", label: "Description", type: "long" },
];

export const WIDGETS_BUNDLE_FORM: FormField[] = [
  TITLE,
  { name: "description", label: "Description", type: "long" },
  { name: "order", label: "Place among bundles", type: "number" },
  { name: "scada", label: "Of SCADA symbols", type: "boolean" },
];
