// The kinds of filters that aliases have, what each one asks for, and what it begins with.

import { list, object, text, type Json } from "../model";

/** A part of the form of an alias. */
export type AliasPart = "oneEntity" | "entityType" | "entities" | "name" | "types" | "typeName" | "state" | "root" | "levels" | "relation" | "relations" | "searchTypes";

export interface AliasForm {
  type: string;
  label: string;
  group: string;
  parts: readonly AliasPart[];
  /** Kind of entity that it finds, where its fields are named after it. */
  prefix?: "device" | "asset" | "edge" | "entityView";
  begin: Json;
  /** Whether it can stand for many entities. */
  many: boolean;
}

const search = (prefix: "device" | "asset" | "edge" | "entityView", label: string): AliasForm => ({
  type: `${prefix}SearchQuery`,
  label,
  group: "By relations",
  parts: ["root", "levels", "relation", "searchTypes"],
  prefix,
  begin: { rootStateEntity: false, rootEntity: null, direction: "FROM", maxLevel: 1, fetchLastLevelOnly: false, relationType: "Contains", [`${prefix}Types`]: [] },
  many: true,
});

const ofType = (prefix: "device" | "asset" | "edge" | "entityView", label: string): AliasForm => ({
  type: `${prefix}Type`,
  label,
  group: "By type",
  parts: ["types", "typeName"],
  prefix,
  begin: { [`${prefix}Types`]: [], [`${prefix}NameFilter`]: "" },
  many: true,
});

export const ALIAS_FORMS: readonly AliasForm[] = [
  { type: "singleEntity", label: "One entity", group: "Chosen", parts: ["oneEntity"], begin: { singleEntity: null }, many: false },
  { type: "entityList", label: "A list of entities", group: "Chosen", parts: ["entityType", "entities"], begin: { entityType: "DEVICE", entityList: [] }, many: true },
  { type: "stateEntity", label: "The entity that the state was opened for", group: "Chosen", parts: ["state"], begin: { stateEntityParamName: null, defaultStateEntity: null }, many: false },
  { type: "entityName", label: "Entities by name", group: "By type", parts: ["entityType", "name"], begin: { entityType: "DEVICE", entityNameFilter: "" }, many: true },
  { type: "entityType", label: "All entities of a kind", group: "By type", parts: ["entityType"], begin: { entityType: "DEVICE" }, many: true },
  ofType("device", "Devices by profile"),
  ofType("asset", "Assets by profile"),
  ofType("entityView", "Entity views by type"),
  ofType("edge", "Edges by type"),
  {
    type: "relationsQuery",
    label: "Related entities",
    group: "By relations",
    parts: ["root", "levels", "relations"],
    begin: { rootStateEntity: false, rootEntity: null, direction: "FROM", maxLevel: 1, fetchLastLevelOnly: false, filters: [] },
    many: true,
  },
  search("device", "Related devices"),
  search("asset", "Related assets"),
  search("entityView", "Related entity views"),
  search("edge", "Related edges"),
  { type: "apiUsageState", label: "API usage of the tenant", group: "Chosen", parts: [], begin: {}, many: false },
];

/** Kinds of entities that aliases can find, with where they are listed. */
export const ENTITY_TYPES: readonly { value: string; label: string; list?: string }[] = [
  { value: "DEVICE", label: "Device", list: "/api/tenant/devices" },
  { value: "ASSET", label: "Asset", list: "/api/tenant/assets" },
  { value: "ENTITY_VIEW", label: "Entity view", list: "/api/tenant/entityViews" },
  { value: "CUSTOMER", label: "Customer", list: "/api/customers" },
  { value: "USER", label: "User", list: "/api/users" },
  { value: "DASHBOARD", label: "Dashboard", list: "/api/tenant/dashboards" },
  { value: "RULE_CHAIN", label: "Rule chain", list: "/api/ruleChains" },
  { value: "DEVICE_PROFILE", label: "Device profile", list: "/api/deviceProfiles" },
  { value: "ASSET_PROFILE", label: "Asset profile", list: "/api/assetProfiles" },
  { value: "EDGE", label: "Edge", list: "/api/tenant/edges" },
];

/** Entities that differ by who looks. */
export const CURRENT_ENTITIES: readonly { value: string; label: string }[] = [
  { value: "CURRENT_CUSTOMER", label: "Customer of the viewer" },
  { value: "CURRENT_TENANT", label: "Tenant of the viewer" },
  { value: "CURRENT_USER", label: "The viewer" },
  { value: "CURRENT_USER_OWNER", label: "Owner of the viewer" },
];

/** Changes the kind of a filter; what both kinds have stays. */
export function changeKind(filter: Json, type: string): Json {
  const form = ALIAS_FORMS.find((one) => one.type === type);
  const kept = Object.fromEntries(Object.keys(form?.begin ?? {}).flatMap((key) => (filter[key] === undefined ? [] : [[key, filter[key]]])));
  return { ...form?.begin, ...kept, type, resolveMultiple: form?.many === true };
}

/** Returns what keeps a filter from finding anything, as texts for people. */
export function missingIn(filter: Json): string | undefined {
  const form = ALIAS_FORMS.find((one) => one.type === filter["type"]);
  const parts = form?.parts ?? [];
  if (form === undefined) {
    return "This kind of filter is not known here; it is kept as it is.";
  }
  if (parts.includes("oneEntity") && text(object(filter["singleEntity"])["entityType"]) === undefined) {
    return "Choose an entity.";
  }
  if (parts.includes("entities") && list(filter["entityList"]).length === 0) {
    return "Choose at least one entity.";
  }
  if (parts.includes("types") && list(filter[`${form.prefix}Types`]).length === 0) {
    return "Choose at least one type.";
  }
  return parts.includes("root") && filter["rootStateEntity"] !== true && text(object(filter["rootEntity"])["entityType"]) === undefined ? "Choose the entity that the search begins at." : undefined;
}
