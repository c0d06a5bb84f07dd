// Functions that a dashboard has for its values: they run in the sandbox, and their results replace the values.

import { useEffect, useRef, useState } from "react";
import { bodyOf } from "@/dashboard/actions";
import { aggregateName, aggregationIn } from "@/dashboard/aggregated";
import type { DataKey } from "@/dashboard/model";
import { COUNT, LATEST_TYPES, latestOf, type EntityValues, type Point, type SourceValues } from "@/dashboard/source";
import { callInSandbox } from "@/sandbox/calls";

const NAMES = ["time", "value", "prevValue", "timePrev", "prevOrigValue"];
/** The newest points of each key that functions see. */
const MOST = 5_000;

function functionOf(key: DataKey): string | undefined {
  return key.raw["usePostProcessing"] === false || key.raw["type"] === "function" ? undefined : bodyOf(key.raw["postFuncBody"]);
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

/** Returns where the latest value of a key is kept, which is where widgets look for it. */
function placeOf(key: DataKey): string {
  return aggregationIn(key) !== undefined ? aggregateName(key) : key.type === "other" ? COUNT : `${LATEST_TYPES[key.type]}/${key.name}`;
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
        latest.set(placeOf(key), made);
      }
      // Points are those of series; an attribute of the same name has none.
      if (key.type === "timeseries" && aggregationIn(key) === undefined) {
        points.set(key.name, await processed(body, entity.points.get(key.name) ?? []));
      }
    }
  }
  return { ...entity, latest, points };
}

/** Returns the values after the functions of their keys; those without a function pass at once. */
export function usePostProcessed(values: SourceValues[]): SourceValues[] {
  const keysOf = ({ source }: SourceValues): DataKey[] => [...source.dataKeys, ...source.latestKeys];
  const needed = values.some((one) => keysOf(one).some((key) => functionOf(key) !== undefined));
  const [made, setMade] = useState<SourceValues[]>([]);
  const turn = useRef({ begun: 0, shown: 0 });
  useEffect(() => {
    if (needed) {
      const mine = ++turn.current.begun;
      const all = values.map(async (one) => ({ ...one, entities: await Promise.all(one.entities.map((entity) => processEntity(entity, keysOf(one)))) }));
      // A slow answer is shown unless a later one was first: values that change all the time would else never show.
      void Promise.all(all).then((done) => {
        if (mine > turn.current.shown) {
          turn.current.shown = mine;
          setMade(done);
        }
      });
    }
  }, [values, needed]);
  return needed && made.length === values.length ? made : values;
}
