// Keys of which a widget shows not the latest value but what the values of its window come to, and how that compares with an earlier window.

import { number, object, text, type DataKey, type Json } from "./model";
import { intervalBefore, moved } from "./time/calendar";
import { aggregationOf, boundsOf, MOST_LENGTH, type Aggregation, type TimeWindow } from "./timeWindow";

/** What stands in the place of a value that a window without a fixed beginning can't have. */
export const NOT_SUPPORTED = "NOT_SUPPORTED";

/** Returns how the values of a key come together; not at all for most keys. */
export function aggregationIn(key: DataKey): Exclude<Aggregation, "NONE"> | undefined {
  const kind = key.type === "timeseries" && key.raw["type"] !== "function" ? aggregationOf(key.raw["aggregationType"]) : undefined;
  return kind === "NONE" ? undefined : kind;
}

/** Returns under which name the value of such a key is kept among the latest ones. */
export function aggregateName(key: DataKey): string {
  const compared = key.raw["comparisonEnabled"] === true ? `|${String(key.raw["timeForComparison"])}|${String(key.raw["comparisonCustomIntervalValue"])}|${String(key.raw["comparisonResultType"])}` : "";
  return `AGGREGATE/${key.name}|${String(key.raw["aggregationType"])}${compared}`;
}

/** Returns the window that settings compare one with: the one before it, that of a day to a year ago, or a distance of their own. */
export function windowBefore(window: TimeWindow, settings: Json, now: number): [number, number] {
  const [start, end] = boundsOf(window, now);
  const kind = text(settings["timeForComparison"]) ?? "previousInterval";
  const { zone } = window;
  const back = (months: number, days: number): [number, number] => {
    const from = moved(start, zone, -months, -days);
    return [from, from + (end - start)];
  };
  switch (kind) {
    case "days":
      return back(0, 1);
    case "weeks":
      return back(0, 7);
    case "months":
      return back(1, 0);
    case "years":
      return back(12, 0);
    case "customInterval": {
      const distance = Math.min(MOST_LENGTH, number(settings["comparisonCustomIntervalValue"]) ?? 7_200_000);
      return [start - distance, end - distance];
    }
    default:
      return window.quick === undefined ? [start - (end - start), start] : intervalBefore(window.quick, now, zone);
  }
}

export interface AggregateAsked {
  id: number;
  key: string;
  agg: string;
  previousStartTs?: number;
  previousEndTs?: number;
}

/** An average is kept up with the number of its values, which is asked for under an id that is greater by this. */
export const COUNT_ID = 10_000;

/** Returns the part of an ENTITY_DATA command that asks for aggregated keys; none where the window has no beginning that stays. */
export function aggregateCommand(keys: DataKey[], window: TimeWindow, now: number): Record<string, unknown> {
  const asked = keys.flatMap((key, id): AggregateAsked[] => {
    const agg = aggregationIn(key);
    if (agg === undefined) {
      return [];
    }
    const [previousStartTs, previousEndTs] = windowBefore(window, key.raw, now);
    const one: AggregateAsked = { id, key: key.name, agg, ...(key.raw["comparisonEnabled"] === true ? { previousStartTs, previousEndTs } : {}) };
    return agg === "AVG" && window.realtime ? [one, { id: id + COUNT_ID, key: key.name, agg: "COUNT" }] : [one];
  });
  if (asked.length === 0 || (window.realtime && window.quick === undefined)) {
    return {};
  }
  const [startTs, endTs] = boundsOf(window, now);
  return window.realtime ? { aggTsCmd: { keys: asked, startTs, timeWindow: endTs - startTs } } : { aggHistoryCmd: { keys: asked, startTs, endTs } };
}

/** What is known of an aggregated key. */
export interface Aggregate {
  ts: number;
  current: number | undefined;
  previous: number | undefined;
  count: number;
}

function readNumber(value: unknown): number | undefined {
  const read = text(object(value)["value"]);
  return read === undefined ? undefined : number(read);
}

/** Takes in what the server says of the keys, by the ids that they were asked with. */
export function readAggregates(answer: unknown, known: ReadonlyMap<number, Aggregate> | undefined): Map<number, Aggregate> {
  const all = new Map(known);
  const answers = object(answer);
  for (const [name, value] of Object.entries(answers)) {
    const id = Number(name);
    if (id < COUNT_ID) {
      const { current, previous } = object(value);
      const count = readNumber(object(answers[String(id + COUNT_ID)])["current"]) ?? 1;
      all.set(id, { ts: number(object(current)["ts"]) ?? 0, current: readNumber(current), previous: readNumber(previous), count });
    }
  }
  return all;
}

/** Returns an aggregate after one more value. */
export function withValue(before: Aggregate, kind: Aggregation, ts: number, value: number): Aggregate {
  const { current, count } = before;
  const known = current ?? (kind === "SUM" || kind === "COUNT" ? 0 : undefined);
  const next =
    known === undefined
      ? value
      : { MIN: Math.min(known, value), MAX: Math.max(known, value), SUM: known + value, COUNT: known + 1, AVG: known + (value - known) / (count + 1), NONE: value }[kind];
  return { ...before, ts, current: next, count: current === undefined ? 1 : count + 1 };
}

/** Returns what is shown of an aggregate: itself, the earlier one, or what has changed since. */
export function shownAggregate({ current, previous }: Aggregate, key: DataKey): number | undefined {
  if (key.raw["comparisonEnabled"] !== true) {
    return current;
  }
  switch (key.raw["comparisonResultType"]) {
    case "DELTA_ABSOLUTE":
      return current === undefined || previous === undefined ? undefined : current - previous;
    case "DELTA_PERCENT":
      return current === undefined || previous === undefined ? undefined : previous === 0 ? 100 : ((current - previous) / previous) * 100;
    default:
      return previous;
  }
}
