// Whose values the arguments of calculated fields and alarm rules are, and the zones of geofencing: of the entity itself, a certain one, its owner, or
// what relations lead to. A form has one choice for it, where the server has two settings that exclude each other.

import type { FormAround } from "@/ui/form/around";
import { isObject, valueAt, type FormField, type FormOption, type FormValues } from "@/ui/form/values";

export const SOURCE = "source";
const PATH = "RELATION_PATH_QUERY";
const OWNER = "CURRENT_OWNER";
const KEY = "refEntityKey.key";
/** Of a row of the form alone: nobody has named it yet. */
const UNNAMED = "unnamed";
export const OWN = "CURRENT";

export const DIRECTIONS = [{ value: "FROM", label: "From here" }, { value: "TO", label: "To here" }] as const;
export const SCOPES = [{ value: "SERVER_SCOPE", label: "Server" }, { value: "SHARED_SCOPE", label: "Shared" }, { value: "CLIENT_SCOPE", label: "Client" }] as const;

const ENTITIES = [
  { value: "DEVICE", label: "A device", field: "Device", list: "/api/tenant/deviceInfos" },
  { value: "ASSET", label: "An asset", field: "Asset", list: "/api/tenant/assetInfos" },
  { value: "CUSTOMER", label: "A customer", field: "Customer", list: "/api/customers" },
];

const OTHERS: readonly FormOption[] = [
  { value: OWN, label: "This entity" },
  ...ENTITIES.map(({ value, label }) => ({ value, label })),
  { value: "TENANT", label: "The tenant" },
  { value: OWNER, label: "Its owner" },
];

const sourceIs = (source: string) => (row: FormValues): boolean => row[SOURCE] === source;

/** Fields that say whose values they are; `byPath` offers what relations lead to, which may be many. */
export function sourceFields(label: string, byPath: boolean): FormField[] {
  return [
    {
      name: SOURCE, label, type: "select", required: true, initial: OWN, otherwise: OWN,
      options: byPath ? [...OTHERS, { value: PATH, label: "Entities at the end of relations" }] : OTHERS,
    },
    ...ENTITIES.map(({ value, field, list }): FormField => ({ name: "refEntityId", label: field, type: "entity", list, required: true, when: sourceIs(value) })),
    {
      name: "refDynamicSourceConfiguration.levels", label: "Path of relations", type: "rows", when: sourceIs(PATH),
      fields: [
        { name: "direction", label: "Direction", type: "select", options: DIRECTIONS, required: true, initial: "FROM" },
        { name: "relationType", label: "Relation type", required: true, initial: "Contains" },
      ],
    },
  ];
}

/** What was chosen for another source goes; a path begins with one step. */
export function settleSource(row: FormValues, before: FormValues): FormValues {
  if (row[SOURCE] === before[SOURCE]) {
    return row;
  }
  const { refEntityId: _entity, refDynamicSourceConfiguration: _dynamic, ...rest } = row;
  return row[SOURCE] === PATH ? { ...rest, refDynamicSourceConfiguration: { levels: [{ direction: "FROM", relationType: "Contains" }] } } : rest;
}

/** Expressions and scripts know an argument by its name, which therefore holds only letters, digits and underscores. */
const nameFor = (key: unknown): string => String(key ?? "").replace(/\W/g, "_").replace(/^(?=\d)/, "_");

/** A new argument is called as its key until somebody names it; the name of a stored one stays, since others know it by that. */
export function settleArgument(row: FormValues, before: FormValues): FormValues {
  const { [UNNAMED]: unnamed, ...settled } = settleSource(row, before);
  return unnamed === true && row["name"] === before["name"] ? { ...settled, [UNNAMED]: true, name: nameFor(valueAt(row, KEY)) } : settled;
}

/** The arguments that a form has, for fields that name one. */
export function namesOfArguments({ values }: FormAround): FormOption[] {
  const named = valueAt(values, "configuration.arguments");
  return Object.keys(isObject(named) ? named : {}).map((name) => ({ value: name, label: name }));
}

/** Reads the source of a stored argument or group of zones. */
export function withSource(stored: FormValues): FormValues {
  const source = valueAt(stored, "refDynamicSourceConfiguration.type") ?? valueAt(stored, "refEntityId.entityType") ?? OWN;
  return { ...stored, [SOURCE]: source };
}

/** Writes the source as the server has it. `tenantId` is that of whoever saves. */
export function storedSource(row: FormValues, tenantId: string | undefined): FormValues {
  const { [SOURCE]: chosen, refEntityId, refDynamicSourceConfiguration, ...rest } = row;
  const source = chosen ?? withSource(row)[SOURCE];
  switch (source) {
    case OWN:
      return rest;
    case OWNER:
      return { ...rest, refDynamicSourceConfiguration: { type: OWNER } };
    case PATH:
      return { ...rest, refDynamicSourceConfiguration: { type: PATH, levels: valueAt({ refDynamicSourceConfiguration }, "refDynamicSourceConfiguration.levels") ?? [] } };
    case "TENANT":
      return { ...rest, refEntityId: refEntityId ?? { entityType: "TENANT", id: tenantId } };
    default:
      return { ...rest, refEntityId };
  }
}

interface Offered {
  /** Whether they may be values of other entities. */
  others?: boolean;
  attributes?: boolean;
  windows?: boolean;
}

const isAttribute = (row: FormValues): boolean => valueAt(row, "refEntityKey.type") === "ATTRIBUTE";
const isWindow = (row: FormValues): boolean => valueAt(row, "refEntityKey.type") === "TS_ROLLING";

/** The fields of an argument, as far as its type of calculated field takes them. */
export function argumentFields({ others = false, attributes = true, windows = false }: Offered): FormField[] {
  const kinds: FormOption[] = [
    { value: "TS_LATEST", label: "Latest value" },
    ...(attributes ? [{ value: "ATTRIBUTE", label: "Attribute" }] : []),
    ...(windows ? [{ value: "TS_ROLLING", label: "Window of values" }] : []),
  ];
  return [
    ...(others ? sourceFields("Whose value", false) : []),
    { name: "refEntityKey.type", label: "Kind of value", type: "select", required: true, initial: "TS_LATEST", options: kinds },
    { name: KEY, label: "Key", type: "own", drawnBy: "key", slim: true, required: true },
    { name: UNNAMED, label: "Argument name", initial: true, when: () => false },
    { name: "name", label: "Argument name", required: true, help: "Conditions, expressions and scripts know the value by it" },
    { name: "refEntityKey.scope", label: "Scope", type: "select", options: SCOPES, required: true, initial: "SERVER_SCOPE", when: isAttribute },
    { name: "defaultValue", label: "Value when there is none", when: (row) => !isWindow(row) },
    { name: "timeWindow", label: "Window, ms", type: "number", help: "300000 is five minutes; empty for any age", when: isWindow },
    { name: "limit", label: "Most points", type: "number", help: "Empty for as many as the tenant may have", when: isWindow },
  ];
}

/** Brings an argument into the form that the server stores; `isOwn` are those of types that take values of the entity alone. */
export function storedArgument(row: FormValues, tenantId: string | undefined, isOwn = false): FormValues {
  const { refEntityKey, defaultValue, timeWindow, limit, [UNNAMED]: _unnamed, ...rest } = storedSource(isOwn ? { ...row, [SOURCE]: OWN } : row, tenantId);
  const { scope, ...key } = isObject(refEntityKey) ? refEntityKey : {};
  const given = Object.entries(isWindow(row) ? { timeWindow, limit } : { defaultValue }).filter(([, value]) => value !== undefined && value !== null);
  return { ...rest, ...Object.fromEntries(given), refEntityKey: isAttribute(row) ? { ...key, scope: scope ?? "SERVER_SCOPE" } : key };
}

const ofEach = (map: unknown, change: (row: FormValues) => FormValues): FormValues =>
  Object.fromEntries(Object.entries(isObject(map) ? map : {}).map(([name, row]) => [name, change(isObject(row) ? row : {})]));

/** Changes each argument and each group of zones of a configuration that has some. */
export function changeSources(configuration: FormValues, changeArgument: (row: FormValues) => FormValues, changeGroup: (row: FormValues) => FormValues): FormValues {
  return {
    ...configuration,
    ...("arguments" in configuration ? { arguments: ofEach(configuration["arguments"], changeArgument) } : {}),
    ...("zoneGroups" in configuration ? { zoneGroups: ofEach(configuration["zoneGroups"], changeGroup) } : {}),
  };
}
