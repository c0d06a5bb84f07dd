// Points of several keys as rows: one for each moment at which any of them has a value.

import type { DataKey } from "@/dashboard/model";
import type { EntityValues } from "@/dashboard/source";

export interface Moment {
  entity: EntityValues;
  ts: number;
  values: ReadonlyMap<string, string>;
}

/** Returns the moments of an entity's points, in no order. Without empty lines, those at which no key has anything to show are left out. */
export function moments(entity: EntityValues, keys: readonly DataKey[], hideEmpty: boolean): Moment[] {
  const byTime = new Map<number, Map<string, string>>();
  for (const { name } of keys) {
    entity.points.get(name)?.forEach(({ ts, value }) => byTime.set(ts, (byTime.get(ts) ?? new Map<string, string>()).set(name, value)));
  }
  return [...byTime].map(([ts, values]) => ({ entity, ts, values })).filter(({ values }) => !hideEmpty || [...values.values()].some((value) => value !== ""));
}
