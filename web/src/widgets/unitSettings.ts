// Numbers of a widget's settings that are measured in its unit: limits of colours and scales, thresholds. They go with the values.

import { list, number, object, type Json } from "@/dashboard/json";
import type { Widget } from "@/dashboard/model";
import { targetOf, type Target, type UnitSystem } from "./units";

const rounded = (value: number): number => Number(value.toPrecision(12));

/** Converts some numbers of an object; what is no number stays. */
function withConverted(stored: Json, names: readonly string[], { convert }: Target): Json {
  const changed = names.flatMap((name) => {
    const value = number(stored[name]);
    return value === undefined ? [] : [[name, rounded(convert(value))] as const];
  });
  return changed.length === 0 ? stored : { ...stored, ...Object.fromEntries(changed) };
}

/** Converts a number, or an object that says it is a constant one. */
function constantIn(value: unknown, target: Target): unknown {
  const plain = number(value);
  const stored = object(value);
  return plain !== undefined ? rounded(target.convert(plain)) : stored["type"] === "constant" ? withConverted(stored, ["value"], target) : value;
}

/** Scales, and the ends of gradients. */
const LIMITS = ["minValue", "maxValue", "tickMin", "tickMax"];

/** Where a colour begins and ends, and where it lies in a gradient. */
const ENDS = ["from", "to", "source"];

/** Converts what of settings is measured in the unit of the widget: ranges, which are what has a colour and ends, and limits. */
function converted(value: unknown, target: Target): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => converted(one, target));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const inner: Json = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, converted(one, target)]));
  if (!("color" in inner)) {
    return withConverted(inner, LIMITS, target);
  }
  const ends = ENDS.flatMap((name) => (inner[name] === undefined ? [] : [[name, constantIn(inner[name], target)] as const]));
  return { ...withConverted(inner, LIMITS, target), ...Object.fromEntries(ends) };
}

function axisIn(stored: unknown, target: Target | undefined): unknown {
  const axis = object(stored);
  return target === undefined ? stored : { ...axis, units: target.units, min: constantIn(axis["min"], target), max: constantIn(axis["max"], target) };
}

function thresholdIn(stored: unknown, system: UnitSystem): unknown {
  const threshold = object(stored);
  const target = targetOf(threshold["units"], system);
  if (target === undefined) {
    return stored;
  }
  const isConstant = threshold["type"] === undefined || threshold["type"] === "constant";
  // A value that comes from elsewhere is converted when it is there.
  return { ...(isConstant ? withConverted(threshold, ["value"], target) : { ...threshold, storedUnits: object(threshold["units"])["from"] }), units: target.units };
}

/** Returns the thresholds and axes of a chart, which have units of their own; only what is another than before. */
function chartParts(settings: Json, system: UnitSystem, whole: Target | undefined): Json {
  const parts: Json = {
    thresholds: Array.isArray(settings["thresholds"]) ? list(settings["thresholds"]).map((one) => thresholdIn(one, system)) : undefined,
    yAxes: settings["yAxes"] === undefined ? undefined : Object.fromEntries(Object.entries(object(settings["yAxes"])).map(([id, axis]) => [id, axisIn(axis, targetOf(object(axis)["units"], system))])),
    yAxis: settings["yAxis"] === undefined ? undefined : axisIn(settings["yAxis"], whole),
  };
  return Object.fromEntries(Object.entries(parts).filter(([name, part]) => part !== undefined && JSON.stringify(part) !== JSON.stringify(settings[name])));
}

/** Returns a widget whose settings are in the units of a system; the same one where they name no other units. */
export function widgetInSystem(widget: Widget, system: UnitSystem): Widget {
  const { settings, config } = widget;
  const whole = targetOf(config["units"], system);
  const parts = chartParts(settings, system, whole);
  if (whole === undefined) {
    return Object.keys(parts).length === 0 ? widget : { ...widget, settings: { ...settings, ...parts } };
  }
  return { ...widget, settings: { ...(converted(settings, whole) as Json), ...parts }, config: { ...config, units: whole.units } };
}
