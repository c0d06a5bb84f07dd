// The value that a widget of one value shows, with what its settings say about it.

import { wasSent } from "@/dashboard/emptiness";
import { latestOf, type EntityValues, type Point, type SourceValues } from "@/dashboard/source";
import { number, text, type DataKey, type Json, type Widget } from "@/dashboard/model";
import { shownValue } from "./text";

export interface Reading {
  entity: EntityValues;
  key: DataKey;
  point: Point | undefined;
}

/** Returns each key of each entity with its latest value. */
export function readings(sources: SourceValues[]): Reading[] {
  return sources.flatMap(({ source, entities }) =>
    entities.flatMap((entity) => source.dataKeys.filter((key) => !key.hidden).map((key) => ({ entity, key, point: latestOf(entity, key) }))),
  );
}

export interface Single {
  key: DataKey | undefined;
  entity: EntityValues | undefined;
  point: Point | undefined;
  value: number;
  text: string;
  label: string;
}

/** Returns the first value of a widget; `value` is not a number if there is none. */
export function singleOf(widget: Widget, sources: SourceValues[]): Single {
  const reading = readings(sources)[0];
  const key = reading?.key ?? widget.datasources[0]?.dataKeys[0];
  const point = wasSent(reading?.point) ? reading?.point : undefined;
  const numeric = point === undefined || point.value.trim() === "" ? NaN : Number(point.value);
  return { key, entity: reading?.entity, point, value: numeric, text: point === undefined || key === undefined ? "–" : shownValue(point.value, key), label: key?.label ?? "" };
}

/** Returns the limits of a scale; an empty one becomes that from 0 to 100. */
export function scaleOf(settings: Json): [number, number] {
  const low = number(settings["tickMin"]) ?? number(settings["minValue"]) ?? 0;
  const high = number(settings["tickMax"]) ?? number(settings["maxValue"]) ?? 100;
  return high > low ? [low, high] : [0, 100];
}

/** Returns how far along its scale a value is, from 0 to 1. */
export function shareOf(value: number, [low, high]: [number, number]): number {
  return Number.isFinite(value) ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0;
}

/** What comes of the points of a window when they are drawn together. */
export function aggregate(points: readonly Point[], kind: string): number | undefined {
  const values = points.map((point) => Number(point.value)).filter(Number.isFinite);
  const total = values.reduce((sum, value) => sum + value, 0);
  const results: Record<string, () => number | undefined> = {
    AVG: () => (values.length === 0 ? undefined : total / values.length),
    MIN: () => (values.length === 0 ? undefined : values.reduce((a, b) => Math.min(a, b))),
    MAX: () => (values.length === 0 ? undefined : values.reduce((a, b) => Math.max(a, b))),
    SUM: () => total,
    COUNT: () => values.length,
    NONE: () => values.at(-1),
  };
  return results[kind]?.();
}

export function labelOf(settings: Json, otherwise: string): string {
  return text(settings["label"]) ?? otherwise;
}
