// What differs between two forms of a document, told as people think of it: parts that were added, removed or changed, and which fields.

import { list, object, type Json } from "@/dashboard/json";

export interface FieldChange {
  /** Such as `config › title`. */
  path: string;
  before: string | undefined;
  after: string | undefined;
}

export interface PartChange {
  kind: "added" | "removed" | "changed";
  name: string;
  fields: FieldChange[];
}

export interface SectionChange {
  title: string;
  parts: PartChange[];
}

/** A kind of parts that a document has, such as its widgets or its nodes. */
export interface Section {
  title: string;
  parts: (document: Json) => Map<string, { name: string; value: unknown }>;
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Values of one field are told up to this length. */
const LONGEST = 300;

function shown(value: unknown): string | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  const written = typeof value === "string" ? value : JSON.stringify(value);
  return written.length > LONGEST ? `${written.slice(0, LONGEST)}…` : written;
}

/** Two values that mean the same: the order of fields doesn't matter, and missing is like null. */
export function alike(a: unknown, b: unknown): boolean {
  if (a === b || ((a === undefined || a === null) && (b === undefined || b === null))) {
    return true;
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((one, n) => alike(one, b[n]));
  }
  return isObject(a) && isObject(b) && [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => alike(a[key], b[key]));
}

/** What an element of a list is called; its number if it has no name of its own. */
function nameIn(value: unknown, n: number): string {
  const named = object(value);
  const name = [named["label"], named["name"], named["id"]].find((one) => typeof one === "string" && one !== "" && one.length < 60);
  return typeof name === "string" ? name : String(n + 1);
}

/** Returns the fields that differ, at the deepest place where they can be told apart. */
export function fieldsBetween(before: unknown, after: unknown, path = ""): FieldChange[] {
  if (alike(before, after)) {
    return [];
  }
  const under = (key: string): string => (path === "" ? key : `${path} › ${key}`);
  if (isObject(before) && isObject(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => fieldsBetween(before[key], after[key], under(key)));
  }
  if (Array.isArray(before) && Array.isArray(after) && [...before, ...after].some(isObject)) {
    return Array.from({ length: Math.max(before.length, after.length) }, (_, n) => fieldsBetween(before[n], after[n], under(nameIn(after[n] ?? before[n], n)))).flat();
  }
  return [{ path: path === "" ? "·" : path, before: shown(before), after: shown(after) }];
}

/** Compares two forms of a document, section by section; those without changes are left out. */
export function diffOf(before: Json, after: Json, sections: readonly Section[]): SectionChange[] {
  return sections.flatMap(({ title, parts }) => {
    const [old, now] = [parts(before), parts(after)];
    const changes = [...new Set([...old.keys(), ...now.keys()])].flatMap((id): PartChange[] => {
      const [was, is] = [old.get(id), now.get(id)];
      if (was === undefined || is === undefined) {
        return [{ kind: was === undefined ? "added" : "removed", name: (was ?? is)?.name ?? id, fields: [] }];
      }
      const fields = fieldsBetween(was.value, is.value);
      return fields.length === 0 ? [] : [{ kind: "changed", name: is.name, fields }];
    });
    return changes.length === 0 ? [] : [{ title, parts: changes }];
  });
}

/** The parts of an object that is a map of named things. */
export function partsOf(map: unknown, nameOf: (value: Json, id: string) => string): Map<string, { name: string; value: unknown }> {
  return new Map(Object.entries(object(map)).map(([id, value]) => [id, { name: nameOf(object(value), id), value }]));
}

/** A section of the fields that no other section tells of. */
export function restOf(title: string, known: readonly string[]): Section {
  return {
    title,
    parts: (document) => new Map(Object.entries(document).filter(([key]) => !known.includes(key)).map(([key, value]) => [key, { name: key, value: { [key]: value } }])),
  };
}

/** The parts of a list whose elements know what they are called. */
export function listParts(values: unknown, idOf: (value: Json, n: number) => string, nameOf: (value: Json) => string): Map<string, { name: string; value: unknown }> {
  return new Map(list(values).map((value, n) => [idOf(object(value), n), { name: nameOf(object(value)), value }]));
}
