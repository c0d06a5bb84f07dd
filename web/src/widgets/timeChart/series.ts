// The lines and bars of a chart: one for each key of each entity, with its points in order of time.

import type { DataKey, Widget } from "@/dashboard/model";
import { latestOf, type EntityValues, type Point, type SourceValues } from "@/dashboard/source";
import { t } from "@/i18n";
import { PALETTE, paletteColor, safeColor, type Scheme } from "../color";
import { isFlot, keyFromFlot } from "./flot";
import { keyLook, type KeyLook } from "./keyLook";
import type { ChartSettings } from "./settings";
import type { ChartState } from "./thresholds";

export interface Series {
  /** Stays the same while the chart changes, so that what is hidden stays hidden. */
  id: string;
  label: string;
  color: string;
  look: KeyLook;
  key: DataKey;
  entity: EntityValues;
  /** By how much an earlier time was moved; none for the present one. */
  shift: number | undefined;
  /** Where this is the least or greatest value of each interval of another series: of which one. */
  edge?: { of: string; which: "least" | "greatest" } | undefined;
  times: number[];
  values: (number | null)[];
}

/** Returns the state that a stored value stands for. */
export function stateOf(states: ChartState[], value: string): ChartState | undefined {
  const asNumber = value.trim() === "" ? NaN : Number(value);
  return states.find(({ exactly, from, to }) => (exactly !== undefined ? exactly === value || (Number.isFinite(asNumber) && Number(exactly) === asNumber) : (from !== undefined || to !== undefined) && Number.isFinite(asNumber) && asNumber >= (from ?? -Infinity) && asNumber < (to ?? Infinity)));
}

const BOOLEANS: Record<string, number> = { true: 1, false: 0 };

/** Returns the height at which a value is drawn; none for words that are no state. */
export function heightOf(value: string, states: ChartState[]): number | null {
  const state = stateOf(states, value);
  if (state !== undefined) {
    return state.value;
  }
  const read = value.trim() === "" ? NaN : (BOOLEANS[value] ?? Number(value));
  return Number.isFinite(read) && states.length === 0 ? read : null;
}

/** Holds a state from the left edge to the right one, or to now. */
export function prolonged(points: readonly Point[], from: number, to: number): Point[] {
  const inside = points.filter((point) => point.ts >= from);
  const before = points.findLast((point) => point.ts < from);
  const all = before === undefined || inside[0]?.ts === from ? inside : [{ ts: from, value: before.value }, ...inside];
  const last = all.at(-1);
  return last === undefined || last.ts >= to ? all : [...all, { ts: to, value: last.value }];
}

interface Place {
  settings: ChartSettings;
  widget: Widget;
  bounds: [number, number];
  now: number;
  /** That of the ground, light where nothing is said. */
  scheme?: Scheme;
}

const EDGES = { least: "{label}, least", greatest: "{label}, greatest" } as const;

function oneSeries(entity: EntityValues, stored: DataKey, values: SourceValues, n: number, many: boolean, { settings, widget, bounds, now, scheme = "light" }: Place): Series {
  const key = isFlot(widget.fqn) ? keyFromFlot(stored, widget) : stored;
  const look = keyLook(key, widget.settings, settings.kind);
  const compared = values.role === "compared";
  const which = values.role === "least" || values.role === "greatest" ? values.role : undefined;
  const shift = compared ? (values.shift ?? 0) : undefined;
  const raw = entity.points.get(key.name) ?? [];
  const points = settings.kind === "state" ? prolonged(raw, bounds[0] - (shift ?? 0), Math.min(bounds[1], now) - (shift ?? 0)) : raw;
  const own = paletteColor((n === 0 ? safeColor(key.color) : PALETTE[n % PALETTE.length]) ?? PALETTE[0] ?? "#2196f3", scheme);
  const name = many ? `${entity.name}: ${key.label}` : key.label;
  const id = `${entity.id.id} ${key.name} ${key.label}`;
  return {
    id: compared ? `${id} earlier` : which === undefined ? id : `${id} ${which}`,
    edge: which === undefined ? undefined : { of: id, which },
    label: compared ? (look.comparedLabel ?? t("{label}, earlier", { label: name })) : which === undefined ? name : t(EDGES[which], { label: name }),
    color: compared ? (look.comparedColor ?? own) : own,
    look: compared ? { ...look, line: { ...look.line, dash: look.comparedColor === undefined ? [4, 4] : look.line.dash } } : look,
    key,
    entity,
    shift,
    times: points.map((point) => point.ts + (shift ?? 0)),
    values: points.map((point) => heightOf(point.value, settings.states)),
  };
}

/** Gives series of the same entity, key and label names of their own: the second has a 2 behind it, and so on. */
function withOwnIds(series: Series[]): Series[] {
  const seen = new Map<string, number>();
  return series.map((one) => {
    const n = (seen.get(one.id) ?? 0) + 1;
    seen.set(one.id, n);
    return n === 1 ? one : { ...one, id: `${one.id} ${n}`, edge: one.edge && { ...one.edge, of: `${one.edge.of} ${n}` } };
  });
}

const isDrawn = ({ role }: SourceValues): boolean => role !== "beside";

/** Returns one series for each key of each entity; those of earlier times come after them, and the edges of bands last. */
export function seriesOf(sources: readonly SourceValues[], place: Place): Series[] {
  return withOwnIds(
    sources.filter(isDrawn).flatMap((values) => {
      const many = sources.filter((one) => isDrawn(one) && one.role === values.role).flatMap((one) => one.entities).length > 1;
      return values.entities.flatMap((entity, n) => values.source.dataKeys.filter((key) => key.type === "timeseries" && !key.hidden).map((key) => oneSeries(entity, key, values, n, many, place)));
    }),
  );
}

/** Returns the latest values that stand beside the points of an entity, by their labels. */
export function latestBeside(entity: EntityValues, keys: readonly DataKey[]): Record<string, string> {
  return Object.fromEntries(keys.flatMap((key) => {
    const point = latestOf(entity, key);
    return point === undefined ? [] : [[key.label, point.value]];
  }));
}

export interface Figures {
  min: number;
  max: number;
  avg: number;
  total: number;
  latest: number;
}

/** Returns what comes of the points of a series within bounds; nothing if there are none. */
export function figuresOf({ times, values, shift }: Pick<Series, "times" | "values" | "shift">, [from, to]: [number, number]): Figures | undefined {
  let [min, max, total, count, latest] = [Infinity, -Infinity, 0, 0, NaN];
  for (let n = 0; n < times.length; n++) {
    const [ts, value] = [times[n] ?? 0, values[n] ?? null];
    if (value !== null && ts >= from && (ts <= to || shift === undefined)) {
      min = Math.min(min, value);
      max = Math.max(max, value);
      total += value;
      count++;
      latest = value;
    }
  }
  return count === 0 ? undefined : { min, max, total, avg: total / count, latest };
}
