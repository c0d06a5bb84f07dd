// What values of a chart are measured against: thresholds, bands of colour, states.

import { list, number, object, text } from "@/dashboard/json";
import { chosen, safeColor } from "../color";
import { dashOf, flag, valueSource, type ValueSource } from "./stored";

export interface Threshold {
  source: ValueSource;
  axis: string;
  units: string | undefined;
  /** The unit that a value from elsewhere has, if it is to be converted. */
  storedUnits: string | undefined;
  decimals: number | undefined;
  color: string | undefined;
  dash: number[] | undefined;
  width: number;
  start: string;
  startSize: number;
  end: string;
  endSize: number;
  label: boolean;
  position: string;
  labelColor: string | undefined;
  labelBackground: string | undefined;
}

export interface Band {
  from: number | undefined;
  to: number | undefined;
  color: string;
}

export interface ChartState {
  label: string;
  value: number;
  from: number | undefined;
  to: number | undefined;
  exactly: string | undefined;
}

export function readThreshold(value: unknown): Threshold[] {
  const stored = object(value);
  const source = valueSource(stored["type"] === undefined && stored["value"] !== undefined ? stored["value"] : stored);
  const width = Math.min(20, Math.max(0.5, number(stored["lineWidth"]) ?? 1));
  return source === undefined
    ? []
    : [
        {
          source,
          axis: text(stored["yAxisId"]) ?? "default",
          units: text(stored["units"]) ?? text(object(stored["units"])["from"]),
          storedUnits: text(stored["storedUnits"]),
          decimals: number(stored["decimals"]),
          color: chosen(stored["lineColor"]),
          dash: dashOf(stored["lineType"], width),
          width,
          start: text(stored["startSymbol"]) ?? "none",
          startSize: number(stored["startSymbolSize"]) ?? 5,
          end: text(stored["endSymbol"]) ?? "arrow",
          endSize: number(stored["endSymbolSize"]) ?? 5,
          label: flag(stored["showLabel"], true),
          position: text(stored["labelPosition"]) ?? "end",
          labelColor: chosen(stored["labelColor"]),
          labelBackground: stored["enableLabelBackground"] === true ? (chosen(stored["labelBackground"]) ?? "theme") : undefined,
        },
      ];
}

/** Reads bands of colour, lowest first; they don't overlap. */
export function readBands(value: unknown): Band[] {
  const read = list(value).flatMap((one): Band[] => {
    const band = object(one);
    const [from, to, color] = [number(band["from"]), number(band["to"]), safeColor(band["color"])];
    return color === undefined || (from === undefined && to === undefined) ? [] : [{ from, to, color }];
  });
  return read.sort((a, b) => (a.from ?? -Infinity) - (b.from ?? -Infinity));
}

export function readStates(value: unknown): ChartState[] {
  return list(value).flatMap((one): ChartState[] => {
    const state = object(one);
    const shown = number(state["value"]);
    const isRange = state["sourceType"] === "range";
    const exactly = state["sourceValue"];
    return shown === undefined
      ? []
      : [{ label: text(state["label"]) ?? String(shown), value: shown, from: isRange ? number(state["sourceRangeFrom"]) : undefined, to: isRange ? number(state["sourceRangeTo"]) : undefined, exactly: isRange || exactly === undefined || exactly === null ? undefined : String(exactly) }];
  });
}
