// Whether a query or relation that code of dashboards sends is about kinds of entities that are open to it.

import { object, type Json } from "@/dashboard/json";

/** Kinds of entities whose values and relations code may read and change. Users, dashboards and what runs the platform are none of them. */
export const ENTITIES: Record<string, string> = { DEVICE: "device", ASSET: "asset", ENTITY_VIEW: "entityView", CUSTOMER: "customer", TENANT: "tenant", EDGE: "edge" };
const NAMES = Object.keys(ENTITIES);
/** Entities that follow from who asks. The user themself is none that is open. */
const RELATIVE = ["CURRENT_CUSTOMER", "CURRENT_TENANT", "CURRENT_USER_OWNER"];
/** Fields whose values name kinds of entities, whoever writes them. */
const NAMING = /(entity|entities|root|from|to)types?$/i;
const FILTERS = ["singleEntity", "entityList", "entityName", "entityType", "assetType", "deviceType", "edgeType", "entityViewType", "relationsQuery", "assetSearchQuery", "deviceSearchQuery", "edgeSearchQuery", "entityViewSearchQuery"];
/** Parts that say whom an alarm is assigned to, and free text. */
const APART = ["assigneeId", "details", "additionalInfo"];

/** Arguments of a call that it can't be made with. */
export class WrongCall extends Error {}

export const refusedKind = (): WrongCall => new WrongCall("This kind of entity is not open to the code of dashboards.");

/** Throws if a value names a kind of entities that is not open. */
export function checkKinds(value: unknown): void {
  const isOpen = (one: unknown): boolean => one === null || one === undefined || (typeof one === "string" && (Object.hasOwn(ENTITIES, one) || RELATIVE.includes(one)));
  if (!(Array.isArray(value) ? value : [value]).every(isOpen)) {
    throw refusedKind();
  }
}

/** Rules of relations that name no kinds lead to those that are open. */
function openRules(rules: unknown): Json[] {
  const all = Array.isArray(rules) && rules.length > 0 ? rules : [{}];
  return all.map((rule) => {
    const kinds = object(rule)["entityTypes"];
    return { ...object(rule), entityTypes: Array.isArray(kinds) && kinds.length > 0 ? kinds : NAMES };
  });
}

function walk(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(walk);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const made = Object.fromEntries(Object.entries(value).map(([name, part]) => {
    if (APART.includes(name)) {
      return [name, part];
    }
    if (NAMING.test(name)) {
      checkKinds(part);
    }
    if (name === "entityFilter" && !FILTERS.includes(String(object(part)["type"]))) {
      throw refusedKind();
    }
    return [name, walk(part)];
  }));
  if (made["type"] !== "relationsQuery") {
    return made;
  }
  if (made["negate"] !== undefined && made["negate"] !== null && made["negate"] !== false) {
    throw refusedKind();
  }
  return { ...made, filters: openRules(made["filters"]) };
}

/** Returns the body of a query or relation as it may be sent. Throws if it is about kinds of entities that are not open. */
export function openBody(body: unknown): Json {
  // What is checked is what is sent: objects that only become texts on the way are texts here.
  return object(walk(JSON.parse(JSON.stringify(body ?? null))));
}

/** The same for a query of relations, whose rules stand beside its parameters. */
export function openRelations(body: unknown): Json {
  const made = openBody(body);
  return { ...made, filters: openRules(made["filters"]) };
}

/** The same for an alarm, which names more than it is about. */
export function openAlarm(body: unknown): Json {
  const made = object(JSON.parse(JSON.stringify(body ?? null)));
  if (made["originator"] !== undefined && made["originator"] !== null) {
    openBody({ originator: made["originator"] });
  }
  return made;
}
