// Joins what two people have changed in the same document since both of them opened it.

import { object, type Json } from "@/dashboard/json";
import { alike } from "./diff";

export interface Merge<T = Json> {
  merged: T;
  /** What both have changed in different ways, as paths such as `widgets/4f0c`; there mine is taken. */
  conflicts: string[];
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Merges two forms of a document that began as the same one. `whole` tells of parts that make sense only as a whole. */
export function mergeParts(base: unknown, mine: unknown, theirs: unknown, whole: RegExp): Merge {
  const conflicts: string[] = [];
  const join = (path: string, before: unknown, a: unknown, b: unknown): unknown => {
    if (alike(a, before) || alike(a, b)) {
      return b;
    }
    if (alike(b, before)) {
      return a;
    }
    if (whole.test(path) || !isObject(a) || !isObject(b)) {
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
