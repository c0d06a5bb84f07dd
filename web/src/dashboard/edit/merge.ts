// Joins what two people have changed in the same dashboard since both of them opened it.

import { object, type Json } from "../model";

export interface Merge {
  merged: Json;
  /** What both have changed in different ways, as paths such as `widgets/4f0c`; there mine is taken. */
  conflicts: string[];
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Parts that make sense only as a whole: a widget, its place, an alias, a filter. */
const WHOLE = /^(widgets\/[^/]+|states\/[^/]+\/layouts\/\w+\/(breakpoints\/\w+\/)?widgets\/[^/]+|entityAliases\/[^/]+|filters\/[^/]+|timewindow)$/;

/** Merges two forms of a configuration that began as the same one. */
export function merge(base: unknown, mine: unknown, theirs: unknown): Merge {
  const conflicts: string[] = [];
  const join = (path: string, before: unknown, a: unknown, b: unknown): unknown => {
    if (same(a, before) || same(a, b)) {
      return b;
    }
    if (same(b, before)) {
      return a;
    }
    if (WHOLE.test(path) || !isObject(a) || !isObject(b)) {
      conflicts.push(path);
      return a;
    }
    const joined: Json = {};
    for (const key of new Set([...Object.keys(b), ...Object.keys(a)])) {
      const value = join(path === "" ? key : `${path}/${key}`, object(before)[key], a[key], b[key]);
      if (value !== undefined) {
        joined[key] = value;
      }
    }
    return joined;
  };
  return { merged: object(join("", base, mine, theirs)), conflicts };
}
