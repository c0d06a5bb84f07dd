// A calculated field or alarm rule out of a file of another installation: what it refers to there, and what takes the place of that here.

import { SEVERITIES } from "@/alarms/alarm";
import type { EntityId } from "@/api/types";
import { isObject, valueAt, withValue, type FormField, type FormValues } from "@/ui/form/values";
import { FIELD_TARGETS, NULL_ID, RULE_TARGETS } from "../columns";
import { changeSources } from "../forms/argument";
import { targetFields } from "../forms/calculatedField";

/** An entity that is named in a file, with the parts that name it. */
export interface Reference {
  id: EntityId;
  /** Names of arguments and groups of zones, or severities of rules. */
  of: string[];
}

/** What a file holds, without what only meant something where it comes from. */
export interface ReadField {
  content: FormValues;
  /** Whom it was for. */
  target: EntityId | undefined;
  references: Reference[];
}

const RULES = "createRules";
const CLEARS = "clearRule";
/** What rules are known by. */
const RULE_NAMES: ReadonlySet<string> = new Set([...SEVERITIES, "CLEAR"]);
/** Where dashboards are listed; the other kinds are those that an argument can be of. */
const LISTS: Readonly<Record<string, string>> = { ...Object.fromEntries(RULE_TARGETS.map(({ value, list }) => [value, list])), DASHBOARD: "/api/tenant/dashboards" };
/** What a rule does without: it has no dashboard then. */
const isOptional = ({ id }: Reference): boolean => id.entityType === "DASHBOARD";

function idOf(value: unknown): EntityId | undefined {
  const [entityType, id] = [valueAt(value, "entityType"), valueAt(value, "id")];
  return typeof entityType === "string" && typeof id === "string" && id !== NULL_ID ? { entityType, id } : undefined;
}

/** Names an entity as maps of them have it. */
export const entityKey = (id: EntityId): string => `${id.entityType} ${id.id}`;

/** Changes each rule of an alarm rule, by its severity or `CLEAR`. */
function changeRules(configuration: FormValues, change: (rule: FormValues, name: string) => FormValues): FormValues {
  const rules = configuration[RULES];
  const clears = configuration[CLEARS];
  return {
    ...configuration,
    ...(isObject(rules) ? { [RULES]: Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, isObject(rule) ? change(rule, name) : rule])) } : {}),
    ...(isObject(clears) ? { [CLEARS]: change(clears, "CLEAR") } : {}),
  };
}

/** Writes the name of a part that names an entity. Only rules name dashboards, by words of the program; all else are names that people gave. */
export const partText = ({ entityType }: EntityId, name: string, word: (text: string) => string): string => (entityType === "DASHBOARD" && RULE_NAMES.has(name) ? word(name) : name);

function referencesIn(configuration: FormValues): Reference[] {
  const found = new Map<string, Reference>();
  const note = (value: unknown, name: string): void => {
    const id = idOf(value);
    if (id !== undefined && id.entityType !== "TENANT") {
      const known = found.get(entityKey(id)) ?? { id, of: [] };
      found.set(entityKey(id), { ...known, of: [...known.of, name] });
    }
  };
  for (const part of ["arguments", "zoneGroups"]) {
    const rows = configuration[part];
    Object.entries(isObject(rows) ? rows : {}).forEach(([name, row]) => note(valueAt(row, "refEntityId"), name));
  }
  changeRules(configuration, (rule, name) => {
    note(rule["dashboardId"], name);
    return rule;
  });
  return [...found.values()];
}

/** Reads a file as a calculated field or alarm rule. What is neither, or the other one, is refused with a reason. */
export function readField(type: string, text: string): ReadField {
  const file: unknown = JSON.parse(text);
  const configuration = valueAt(file, "configuration");
  if (!isObject(file) || !isObject(configuration)) {
    throw new Error(type === "ALARM_RULE" ? "This file holds no alarm rule." : "This file holds no calculated field.");
  }
  const isRule = (file["type"] ?? configuration["type"]) === "ALARM";
  if (isRule !== (type === "ALARM_RULE")) {
    throw new Error(isRule ? "This file holds an alarm rule: import it among the alarm rules." : "This file holds a calculated field: import it among the calculated fields.");
  }
  const { id: _id, version: _version, tenantId: _tenant, createdTime: _created, externalId: _external, entityName: _name, entityId, ...content } = file;
  return { content, target: idOf(entityId), references: referencesIn(configuration) };
}

/** Puts other entities in the place of those that a file names, by their kind and id; the tenant is always that of whoever imports. */
export function withReplacements(content: FormValues, replacements: ReadonlyMap<string, EntityId | undefined>, tenantId: string | undefined): FormValues {
  const configuration = content["configuration"];
  if (!isObject(configuration)) {
    return content;
  }
  const replaced = (row: FormValues, key: string): FormValues => {
    const id = idOf(row[key]);
    if (id?.entityType === "TENANT") {
      return { ...row, [key]: { entityType: "TENANT", id: tenantId ?? id.id } };
    }
    return id !== undefined && replacements.has(entityKey(id)) ? { ...row, [key]: replacements.get(entityKey(id)) ?? null } : row;
  };
  const ofSource = (row: FormValues): FormValues => replaced(row, "refEntityId");
  return { ...content, configuration: changeRules(changeSources(configuration, ofSource, ofSource), (rule) => replaced(rule, "dashboardId")) };
}

/** Where the form has what takes the place of a missing entity. */
const placeOf = (n: number): string => `instead.${n}`;

/** The form of an import: its name, whom it is for, and something in the place of each entity that isn't here. `labelOf` says what that stands for. */
export function importFields(type: string, missing: readonly Reference[], labelOf: (one: Reference) => string): FormField[] {
  return [
    { name: "name", label: type === "ALARM_RULE" ? "Alarm type" : "Name", required: true },
    ...targetFields(type === "ALARM_RULE" ? RULE_TARGETS : FIELD_TARGETS),
    ...missing.map((one, n): FormField => ({ name: placeOf(n), label: labelOf(one), type: "entity", list: LISTS[one.id.entityType] ?? "", required: !isOptional(one) })),
  ];
}

/** What the form of an import begins with. The target is that of the page, or else that of the file if it is here. */
export function importValues({ content, target }: ReadField, given: EntityId | undefined, isHere: (id: EntityId) => boolean): FormValues {
  const known = given ?? (target !== undefined && isHere(target) ? target : undefined);
  const kind = known ?? (target === undefined ? undefined : { entityType: target.entityType });
  return { name: content["name"], ...(kind === undefined ? {} : { entityId: kind }) };
}

/** Makes what is saved of a file and the form that was filled in for it. */
export function importedField({ content }: ReadField, missing: readonly Reference[], filled: FormValues, tenantId: string | undefined): FormValues {
  const replacements = new Map(missing.map(({ id }, n) => [entityKey(id), idOf(valueAt(filled, placeOf(n)))]));
  return withValue({ ...withReplacements(content, replacements, tenantId), name: filled["name"] }, "entityId", filled["entityId"]);
}

/** Whether a form of an import lacks an entity that it can't do without: inputs of entities can be sent empty. */
export function lacking(missing: readonly Reference[], filled: FormValues): "target" | "replacement" | undefined {
  if (idOf(filled["entityId"]) === undefined) {
    return "target";
  }
  return missing.some((one, n) => !isOptional(one) && idOf(valueAt(filled, placeOf(n))) === undefined) ? "replacement" : undefined;
}
