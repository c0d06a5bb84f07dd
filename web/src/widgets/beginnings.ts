// What settings begin with. A type says it once, for what draws it and for its form.

import type { Json } from "@/dashboard/json";

const isMap = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

function over(begin: unknown, stored: unknown): unknown {
  return stored === undefined ? begin : isMap(begin) && isMap(stored) ? begunWith(begin, stored) : stored;
}

/** Returns settings with what they begin with where nothing is stored; what somebody has cleared stays empty. */
export function begunWith(begin: Json, settings: Json): Json {
  return Object.fromEntries([...new Set([...Object.keys(begin), ...Object.keys(settings)])].map((name) => [name, over(begin[name], settings[name])]));
}
