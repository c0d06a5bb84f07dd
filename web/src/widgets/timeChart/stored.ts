// What several settings of a chart are made of: switches, dashes, numbers that may come from elsewhere.

import { list, number, object, text } from "@/dashboard/json";

/** A number, or where it comes from. */
export interface ValueSource {
  type: "constant" | "latestKey" | "entity";
  value: number | undefined;
  key: string;
  alias: string;
}

export const flag = (value: unknown, otherwise: boolean): boolean => (typeof value === "boolean" ? value : otherwise);

export function valueSource(value: unknown): ValueSource | undefined {
  const plain = number(value);
  if (plain !== undefined) {
    return { type: "constant", value: plain, key: "", alias: "" };
  }
  const stored = object(value);
  const type = (["constant", "latestKey", "entity"] as const).find((one) => one === stored["type"]);
  return type === undefined ? undefined : { type, value: number(stored["value"]), key: text(stored[type === "entity" ? "entityKey" : "latestKey"]) ?? "", alias: text(stored["entityAlias"]) ?? "" };
}

export function dashOf(type: unknown, width: number): number[] | undefined {
  const own = list(type).flatMap((one) => number(one) ?? []);
  return own.length > 0 ? own : type === "dashed" ? [width * 4, width * 3] : type === "dotted" ? [width, width * 2] : undefined;
}
