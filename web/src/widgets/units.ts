// Units that settings name for several systems: values are shown in that of the reader.

import { aggregateName, aggregationIn } from "@/dashboard/aggregated";
import { object, text } from "@/dashboard/json";
import type { DataKey } from "@/dashboard/model";
import type { EntityValues, Point, SourceValues } from "@/dashboard/source";

export type UnitSystem = "METRIC" | "IMPERIAL" | "HYBRID";

/** Units of one measure: how many of the first one each is, and where its zero lies. */
type Measure = Record<string, number | [number, number]>;

const MEASURES: readonly Measure[] = [
  { K: 1, "°C": [1, 273.15], "°F": [5 / 9, 459.67 * (5 / 9)], "°R": 5 / 9 },
  { m: 1, nm: 1e-9, μm: 1e-6, mm: 1e-3, cm: 0.01, dm: 0.1, km: 1_000, in: 0.0254, ft: 0.3048, yd: 0.9144, mi: 1_609.344, nmi: 1_852 },
  { kg: 1, μg: 1e-9, mg: 1e-6, g: 1e-3, t: 1_000, oz: 0.028349523125, lb: 0.45359237, st: 6.35029318, "short tons": 907.18474 },
  { "m/s": 1, "km/h": 1 / 3.6, "ft/s": 0.3048, "ft/min": 0.00508, mph: 0.44704, kt: 1_852 / 3_600, kn: 1_852 / 3_600 },
  { Pa: 1, hPa: 100, kPa: 1_000, MPa: 1e6, bar: 1e5, mbar: 100, psi: 6_894.757293168, atm: 101_325, Torr: 133.322368421, mmHg: 133.322387415, inHg: 3_386.388640341 },
  { "m³": 1, mL: 1e-6, L: 1e-3, hL: 0.1, "mm³": 1e-9, "cm³": 1e-6, "km³": 1e9, "in³": 1.6387064e-5, "ft³": 0.028316846592, "yd³": 0.764554857984, "fl-oz": 2.95735295625e-5, pt: 4.73176473e-4, qt: 9.46352946e-4, gal: 3.785411784e-3 },
  { "m²": 1, "mm²": 1e-6, "cm²": 1e-4, "km²": 1e6, ha: 1e4, "in²": 6.4516e-4, "ft²": 0.09290304, "yd²": 0.83612736, ac: 4_046.8564224, "mi²": 2_589_988.110336 },
  { "m³/s": 1, "m³/h": 1 / 3_600, "L/s": 1e-3, "L/min": 1 / 60_000, "L/h": 1 / 3.6e6, "ft³/s": 0.028316846592, "ft³/min": 0.028316846592 / 60, "gal/min": 3.785411784e-3 / 60, GPM: 3.785411784e-3 / 60, "gal/h": 3.785411784e-3 / 3_600 },
  { J: 1, kJ: 1_000, MJ: 1e6, GJ: 1e9, Wh: 3_600, kWh: 3.6e6, MWh: 3.6e9, cal: 4.184, kcal: 4_184, BTU: 1_055.05585262, therm: 105_505_585.262 },
  { W: 1, mW: 1e-3, kW: 1_000, MW: 1e6, GW: 1e9, hp: 745.699871582, PS: 735.49875, "BTU/h": 0.29307107017 },
  { "km/L": 1, "km/l": 1, mpg: 0.425143707 },
];

/** Units that can be converted to others. */
export const KNOWN_UNITS: readonly string[] = MEASURES.flatMap((measure) => Object.keys(measure));

/** Returns how values of a unit become those of another; nothing if they don't measure the same. */
export function converterOf(from: string, to: string): ((value: number) => number) | undefined {
  const measure = MEASURES.find((one) => from in one && to in one);
  if (measure === undefined || from === to) {
    return undefined;
  }
  const parts = (unit: string): [number, number] => {
    const stored = measure[unit] ?? 1;
    return typeof stored === "number" ? [stored, 0] : stored;
  };
  const [[a, zeroA], [b, zeroB]] = [parts(from), parts(to)];
  return (value) => (value * a + zeroA - zeroB) / b;
}

/** Returns the system that somebody chose, or that is usual where the browser is. */
export function systemOf(chosen: unknown, language: string): UnitSystem {
  const known = (["METRIC", "IMPERIAL", "HYBRID"] as const).find((one) => one === chosen);
  return known ?? (/-(US|LR|MM)$/i.test(language) ? "IMPERIAL" : /-(GB|UK)$/i.test(language) ? "HYBRID" : "METRIC");
}

export interface Target {
  units: string;
  convert: (value: number) => number;
}

/** Returns in which unit a key is shown in a system; nothing if that is its own. */
export function targetOf(stored: unknown, system: UnitSystem): Target | undefined {
  const units = object(stored);
  const [from, to] = [text(units["from"]), text(units[system])];
  const convert = from === undefined || to === undefined ? undefined : converterOf(from, to);
  return convert === undefined || to === undefined ? undefined : { units: to, convert };
}

const PATHS: Partial<Record<DataKey["type"], string>> = { timeseries: "TIME_SERIES", attribute: "ATTRIBUTE" };

function convertPoint({ ts, value }: Point, convert: (value: number) => number): Point {
  const read = value.trim() === "" ? NaN : Number(value);
  return { ts, value: Number.isFinite(read) ? String(Number(convert(read).toPrecision(12))) : value };
}

const compares = (key: DataKey, result: string): boolean => key.raw["comparisonEnabled"] === true && key.raw["comparisonResultType"] === result;

/** Whether what is shown of a key is not in its unit: a number of values, or percents. */
function isBare(key: DataKey): boolean {
  const kind = aggregationIn(key);
  return kind === "COUNT" || (kind !== undefined && compares(key, "DELTA_PERCENT"));
}

function convertEntity(entity: EntityValues, targets: ReadonlyMap<DataKey, Target>): EntityValues {
  const [latest, points] = [new Map(entity.latest), new Map(entity.points)];
  for (const [key, { convert }] of targets) {
    const isAggregated = aggregationIn(key) !== undefined;
    const path = isAggregated ? aggregateName(key) : `${PATHS[key.type] ?? ""}/${key.name}`;
    const known = entity.latest.get(path);
    const series = entity.points.get(key.name);
    if (known !== undefined) {
      // A difference has no zero that could lie elsewhere.
      latest.set(path, convertPoint(known, isAggregated && compares(key, "DELTA_ABSOLUTE") ? (value) => convert(value) - convert(0) : convert));
    }
    if (series !== undefined) {
      points.set(key.name, series.map((point) => convertPoint(point, convert)));
    }
  }
  return { ...entity, latest, points };
}

/** Shows values in the units of a system, as far as settings name them; the same values where none do. */
export function inSystem(values: SourceValues[], widgetUnits: unknown, system: UnitSystem): SourceValues[] {
  const targets = values.map(({ source }) => new Map([...source.dataKeys, ...source.latestKeys].flatMap((key): [DataKey, Target][] => {
    const own = key.raw["units"];
    const target = targetOf(own === undefined || own === null || own === "" ? widgetUnits : own, system);
    return target === undefined || PATHS[key.type] === undefined || isBare(key) ? [] : [[key, target]];
  })));
  if (targets.every((one) => one.size === 0)) {
    return values;
  }
  return values.map((one, n) => {
    const own = targets[n] ?? new Map<DataKey, Target>();
    const keys = (all: DataKey[]): DataKey[] => all.map((key) => ({ ...key, units: own.get(key)?.units ?? key.units }));
    return { ...one, source: { ...one.source, dataKeys: keys(one.source.dataKeys), latestKeys: keys(one.source.latestKeys) }, entities: one.entities.map((entity) => convertEntity(entity, own)) };
  });
}
