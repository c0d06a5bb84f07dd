// The limits and ticks of a chart's axes.

import type { DataKey } from "@/dashboard/model";
import { latestOf, type SourceValues } from "@/dashboard/source";
import type { Axis } from "./axes";
import type { ChartSettings } from "./settings";
import type { ValueSource } from "./stored";
import type { Threshold } from "./thresholds";
import { shownValue } from "../text";
import { converterOf } from "../units";
import { datePattern, type TimeUnit } from "../dates";
import { text } from "@/dashboard/json";
import type { Mark } from "./marks";

function latestNumbers(sources: readonly SourceValues[], role: string, fits: (key: DataKey, source: SourceValues) => boolean): number[] {
  for (const one of sources) {
    for (const key of [...one.source.latestKeys, ...one.source.dataKeys]) {
      const point = (one.role ?? "shown") === role && fits(key, one) ? one.entities.map((entity) => latestOf(entity, key)).find((found) => found !== undefined) : undefined;
      if (point !== undefined) {
        return numbersOf(point.value);
      }
    }
  }
  return [];
}

/** Reads a number, or several of a JSON list. */
function numbersOf(value: string): number[] {
  try {
    const read: unknown = JSON.parse(value);
    return (Array.isArray(read) ? read : [read]).map(Number).filter(Number.isFinite);
  } catch {
    return [];
  }
}

/** Returns the numbers that settings mean; none as long as they aren't known. */
export function numbersFrom(source: ValueSource, sources: readonly SourceValues[]): number[] {
  if (source.type === "constant") {
    return source.value === undefined ? [] : [source.value];
  }
  return source.type === "latestKey" ? latestNumbers(sources, "shown", (key) => key.name === source.key || key.label === source.key) : latestNumbers(sources, "beside", (key, { source: own }) => key.name === source.key && own.name === source.alias);
}

/** Returns the thresholds whose values are known. */
export function marksOf(thresholds: readonly Threshold[], sources: readonly SourceValues[]): Mark[] {
  return thresholds.flatMap((threshold) => {
    const { source, units, storedUnits, decimals } = threshold;
    const convert = (storedUnits === undefined || units === undefined ? undefined : converterOf(storedUnits, units)) ?? ((value: number) => value);
    return numbersFrom(source, sources).map(convert).map((value) => ({ threshold, value, text: shownValue(String(Number(value.toPrecision(12))), { units, decimals }) }));
  });
}

export interface Limits {
  min: number | undefined;
  max: number | undefined;
}

export function limitsOf(axis: Axis, sources: readonly SourceValues[]): Limits {
  const one = (source: ValueSource | undefined): number | undefined => (source === undefined ? undefined : numbersFrom(source, sources)[0]);
  return { min: one(axis.min), max: one(axis.max) };
}

/** Returns the ends of an axis, so that all values and thresholds have room unless its limits say otherwise. */
export function rangeOf(low: number | null, high: number | null, limits: Limits, marks: readonly number[], fromZero: boolean): [number, number] {
  const values = [...(low === null || high === null ? [] : [low, high]), ...marks, ...(fromZero && low !== null ? [0] : [])];
  const [least, most] = values.length === 0 ? [0, 1] : [Math.min(...values), Math.max(...values)];
  const span = most - least;
  const room = span > 0 ? span * 0.06 : Math.max(1, Math.abs(most)) * 0.1;
  const bottom = limits.min ?? (fromZero && least === 0 ? 0 : least - room);
  const top = limits.max ?? (fromZero && most === 0 ? 0 : most + room);
  return top > bottom ? [bottom, top] : limits.max === undefined ? [bottom, bottom + 1] : [top - 1, top];
}

/** Returns the ticks of an axis of states. */
export function stateRange(settings: ChartSettings): [number, number] {
  const values = settings.states.map(({ value }) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(1, high - low) * 0.15;
  return [low - room, high + room];
}

const TICKS: Record<TimeUnit, string> = { millisecond: "HH:mm:ss SSS", second: "HH:mm:ss", minute: "HH:mm", hour: "HH:mm", day: "MMM dd", month: "MMM", year: "yyyy" };
const DAY = 86_400;

/** Returns the words of ticks that lie so many seconds apart; the first one of a day says which day it is. */
export function timeTicks(seconds: readonly number[], distance: number, formats: Record<string, unknown>, zone: string | undefined): string[] {
  const unit: TimeUnit = distance < 1 ? "millisecond" : distance < 60 ? "second" : distance < 3_600 ? "minute" : distance < DAY ? "hour" : distance < 28 * DAY ? "day" : distance < 365 * DAY ? "month" : "year";
  return seconds.map((at) => {
    const ts = Math.round(at * 1_000);
    const isMidnight = distance < DAY && datePattern(ts, "HH:mm:ss", zone) === "00:00:00";
    const isNewYear = unit === "month" && datePattern(ts, "M", zone) === "1";
    const shown: TimeUnit = isMidnight ? "day" : isNewYear ? "year" : unit;
    return datePattern(ts, text(formats[shown]) ?? TICKS[shown], zone);
  });
}
