// The course of values before somebody looked: lines begin with what is stored.

import { useEffect, useMemo, useState } from "react";
import { api } from "@/api/client";
import type { EntityId } from "@/api/types";
import { RECENT, type LatestValue, type LatestValues } from "@/live/latest";

/** So many keys are asked for at once. */
const KEYS = 20;
/** What is older is no recent course, milliseconds. */
const BACK_MS = 7 * 86_400_000;

type Stored = Record<string, LatestValue[]>;

const isNumber = (value: unknown): boolean => (typeof value === "number" || (typeof value === "string" && value.trim() !== "")) && Number.isFinite(Number(value));

/** Returns the paths that ask for the last points of keys. A name may hold the comma that would part it from the next. */
export function coursePaths(id: EntityId, keys: readonly string[], now: number): string[] {
  const groups = Array.from({ length: Math.ceil(keys.length / KEYS) }, (_, n) => keys.slice(n * KEYS, (n + 1) * KEYS));
  return groups.map((group) => {
    const query = new URLSearchParams([...group.map((key) => ["key", key]), ["startTs", String(now - BACK_MS)], ["endTs", String(now)], ["limit", String(RECENT)]]);
    return `/api/plugins/telemetry/${id.entityType}/${id.id}/values/timeseries?${query.toString()}`;
  });
}

/** Rows that are scrolled past are not asked for, milliseconds. */
const STILL_MS = 150;

/** Asks once for the stored course of each number that comes into view, and returns what is told of the keys in view. Without it a line begins with what comes. */
export function useStoredCourse(id: EntityId, values: LatestValues): (inView: string[]) => void {
  const [keys, setKeys] = useState<string[]>([]);
  const asked = useMemo(() => ({ values, keys: new Set<string>() }), [values]).keys;
  useEffect(() => {
    const timer = setTimeout(() => {
      const wanted = keys.filter((key) => !asked.has(key) && isNumber(values.value(key)?.value));
      wanted.forEach((key) => asked.add(key));
      for (const path of coursePaths(id, wanted, Date.now())) {
        void api.get<Stored>(path).then(
          (stored) => Object.entries(stored).forEach(([key, points]) => values.precede(key, points)),
          () => undefined,
        );
      }
    }, STILL_MS);
    return () => clearTimeout(timer);
  }, [keys, values, asked, id.entityType, id.id]);
  return setKeys;
}
