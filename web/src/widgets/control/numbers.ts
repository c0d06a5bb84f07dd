// Numbers that controls set: within limits, on steps, and without the dust of floating point.

import { number, text, type Json } from "@/dashboard/model";
import { shownValue } from "../text";

export interface Limits {
  low: number;
  high: number;
  step: number;
}

/** Returns the number within limits that a value stands for; none if it is no number. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "boolean" ? Number(value) : number(value);
}

const decimalsOf = (value: number): number => Math.min(12, (/\.(\d+)$/.exec(String(value))?.[1] ?? "").length);

/** Moves a value by so many steps; `undefined` if that lies outside of the limits. */
export function stepped(value: number, steps: number, { low, high, step }: Limits): number | undefined {
  const next = Number((value + steps * step).toFixed(Math.max(decimalsOf(step), decimalsOf(value))));
  return next < low || next > high ? undefined : next;
}

/** Returns the value on the nearest step within the limits. */
export function snapped(value: number, { low, high, step }: Limits): number {
  const next = low + Math.round((value - low) / step) * step;
  return Number(Math.min(high, Math.max(low, next)).toFixed(Math.max(decimalsOf(step), decimalsOf(low))));
}

/** Returns the step of a control that has none among its settings, by the decimals that it shows. */
export function stepFor(decimals: number | undefined): number {
  return 10 ** -Math.min(6, Math.max(0, decimals ?? 0));
}

/** Shows the value of a control with the units and decimals of its settings. */
export function shownNumber(value: number | undefined, settings: Json): string {
  const units = settings["valueUnits"];
  const stored = typeof units === "object" && units !== null ? text((units as Json)["from"]) : text(units);
  return value === undefined ? "–" : shownValue(String(value), { units: stored, decimals: number(settings["valueDecimals"]) });
}
