// Functions that a dashboard has for its values: they run in the sandbox, and their results replace the values.

import { useEffect, useState } from "react";
import { text, type DataKey } from "@/dashboard/model";
import { latestOf, type EntityValues, type Point, type SourceValues } from "@/dashboard/source";
import { callInSandbox } from "@/sandbox/calls";

const NAMES = ["time", "value", "prevValue", "timePrev", "prevOrigValue"];
/** The newest points of each key that functions see. */
const MOST = 5_000;

export function bodyOf(value: unknown): string | undefined {
  return text(value) ?? text((value as { body?: unknown } | null | undefined)?.body);
}

function functionOf(key: DataKey): string | undefined {
  return key.raw["usePostProcessing"] === false ? undefined : bodyOf(key.raw["postFuncBody"]);
}

/** Turns a value into a number if its text is exactly that of the number. */
export function numeric(value: string): unknown {
  return String(Number(value)) === value ? Number(value) : value;
}

async function processed(body: string, points: Point[]): Promise<Point[]> {
  const recent = points.slice(-MOST);
  const values = recent.map((point) => numeric(point.value));
  // Each call gets the result of the one before it, so that they run in one chain.
  const results = await callInSandbox({ body, names: NAMES, calls: recent.map(({ ts }, n) => [ts, values[n], 0, recent[n - 1]?.ts ?? 0, values[n - 1] ?? 0]), chained: 2 });
  return recent.map((point, n) => {
    const { value, error } = results[n] ?? {};
    const result = error === undefined ? value : undefined;
    return result === undefined || result === null ? point : { ts: point.ts, value: typeof result === "object" ? JSON.stringify(result) : String(result) };
  });
}

async function processEntity(entity: EntityValues, keys: DataKey[]): Promise<EntityValues> {
  const latest = new Map(entity.latest);
  const points = new Map(entity.points);
  for (const key of keys) {
    const body = functionOf(key);
    if (body !== undefined) {
      const known = latestOf(entity, key);
      const [made] = known === undefined ? [] : await processed(body, [known]);
      if (made !== undefined) {
        latest.set(`${key.type === "attribute" ? "ATTRIBUTE" : key.type === "timeseries" ? "TIME_SERIES" : "ENTITY_FIELD"}/${key.name}`, made);
      }
      points.set(key.name, await processed(body, entity.points.get(key.name) ?? []));
    }
  }
  return { ...entity, latest, points };
}

/** Returns the values after the functions of their keys; those without a function pass at once. */
export function usePostProcessed(values: SourceValues[]): SourceValues[] {
  const keysOf = ({ source }: SourceValues): DataKey[] => [...source.dataKeys, ...source.latestKeys];
  const needed = values.some((one) => keysOf(one).some((key) => functionOf(key) !== undefined));
  const [made, setMade] = useState<SourceValues[]>([]);
  useEffect(() => {
    let current = true;
    if (needed) {
      const all = values.map(async (one) => ({ ...one, entities: await Promise.all(one.entities.map((entity) => processEntity(entity, keysOf(one)))) }));
      void Promise.all(all).then((done) => current && setMade(done));
    }
    return () => {
      current = false;
    };
  }, [values, needed]);
  return needed && made.length === values.length ? made : values;
}
