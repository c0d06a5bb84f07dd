// Places and shapes of things, read from values without trust.

import { latestOf, type EntityValues } from "@/dashboard/source";
import type { DataKey } from "@/dashboard/model";
import type { MapLayer } from "./layer";

/** Latitude and longitude; on a picture the shares of its width and height from the left top. */
export type Place = [number, number];
/** Rings of a polygon, or lines: nested as they are stored. */
export type Nested = Place | Nested[];

export interface Circle {
  center: Place;
  /** Metres; on a picture a share of its width. */
  radius: number;
}

function numberOf(entity: EntityValues, keys: DataKey[]): number | undefined {
  for (const key of keys) {
    const value = latestOf(entity, key)?.value;
    // An empty text is no place, and neither is null, which clearing leaves behind.
    const read = value === undefined || value.trim() === "" ? NaN : Number(value);
    if (Number.isFinite(read)) {
      return read;
    }
  }
  return undefined;
}

/** Whether a place can be drawn: on the globe, or anywhere near a picture. */
export function isPlace(place: Place, kind: "geo" | "image"): boolean {
  const x = place[0];
  const y = place[1];
  return Number.isFinite(x) && Number.isFinite(y) && (kind === "image" || (Math.abs(x) <= 90 && Math.abs(y) <= 540));
}

/** Returns the place of an entity; none if it has none, or no valid one. */
export function placeOf(layer: Pick<MapLayer, "x" | "y">, entity: EntityValues, kind: "geo" | "image"): Place | undefined {
  const x = numberOf(entity, layer.x);
  const y = x === undefined ? undefined : numberOf(entity, layer.y);
  if (x === undefined || y === undefined) {
    return undefined;
  }
  const place: Place = [x, y];
  return isPlace(place, kind) ? place : undefined;
}

function parsed(value: string | undefined): unknown {
  try {
    return value === undefined ? undefined : (JSON.parse(value) as unknown);
  } catch {
    return undefined;
  }
}

function isPair(value: unknown): value is [number, number] {
  return Array.isArray(value) && value.length === 2 && value.every((one) => typeof one === "number" && Number.isFinite(one));
}

function nested(value: unknown, depth = 0): Nested | undefined {
  if (isPair(value)) {
    return [value[0], value[1]];
  }
  if (!Array.isArray(value) || depth > 4) {
    return undefined;
  }
  const parts = value.flatMap((one): Nested[] => {
    const read = nested(one, depth + 1);
    return read === undefined ? [] : [read];
  });
  return parts.length === 0 ? undefined : parts;
}

/** Reads the corners of a polygon or the points of a line; two corners alone stand for a rectangle if it is to be closed. */
export function readLine(value: string | undefined, closed: boolean): Nested[] | undefined {
  const read = nested(parsed(value));
  if (read === undefined || isPair(read)) {
    return undefined;
  }
  const [a, b, ...more] = read as Nested[];
  if (closed && isPair(a) && isPair(b) && more.length === 0) {
    return [a, [a[0], b[1]], b, [b[0], a[1]]];
  }
  return read as Nested[];
}

export function readCircle(value: string | undefined): Circle | undefined {
  const read = parsed(value) as { latitude?: unknown; longitude?: unknown; radius?: unknown } | null | undefined;
  const { latitude, longitude, radius } = typeof read === "object" && read !== null ? read : {};
  return typeof latitude === "number" && typeof longitude === "number" && typeof radius === "number" && radius > 0
    ? { center: [latitude, longitude], radius }
    : undefined;
}

/** Returns all places of a shape, one after another. */
export function flat(shape: Nested): Place[] {
  return isPair(shape) ? [shape] : (shape as Nested[]).flatMap(flat);
}

/** Corners one after another, nested as in the shape that they are of. */
export type Nest<T> = T | Nest<T>[];

export interface Ring {
  places: Place[];
  /** Whether it is cut out of the area around it. */
  isHole: boolean;
  /** Whether its last corner was the first one again, which is left out of its places. */
  repeats: boolean;
}

/** Makes a shape of the same nesting: each ring or line becomes what `change` makes of it; what is left without corners goes. */
export function mapRings<T>(shape: Nested[], change: (places: Place[], n: number, isHole: boolean) => T[], counter = { n: 0 }, isHole = false): Nest<T>[] {
  const pairs = shape.filter(isPair);
  if (pairs.length > 0) {
    return change(pairs, counter.n++, isHole);
  }
  return (shape as Nested[][]).flatMap((part, at): Nest<T>[] => {
    const made = mapRings(part, change, counter, at > 0 && part.some(isPair));
    return made.length === 0 ? [] : [made];
  });
}

/** Returns the rings or lines of a shape, in the order in which `mapRings` meets them. */
export function ringsOf(shape: Nested[], closed: boolean): Ring[] {
  const rings: Ring[] = [];
  mapRings(shape, (places, _n, isHole) => {
    const [first, last] = [places[0], places.at(-1)];
    const repeats = closed && places.length > 3 && first?.[0] === last?.[0] && first?.[1] === last?.[1];
    rings.push({ places: repeats ? places.slice(0, -1) : places, isHole: closed && isHole, repeats });
    return places;
  });
  return rings;
}

/** Puts other corners into the rings of a shape; a ring without any goes. */
export function withRings<T>(shape: Nested[], rings: readonly Ring[], corners: readonly T[][]): Nest<T>[] {
  return mapRings(shape, (_places, n) => {
    const [own, [first]] = [corners[n] ?? [], corners[n] ?? []];
    return rings[n]?.repeats === true && first !== undefined ? [...own, first] : own;
  });
}

export interface Step {
  ts: number;
  place: Place;
}

/** Returns the places of an entity over time, oldest first: the moments at which it told both coordinates. */
export function stepsOf(layer: Pick<MapLayer, "x" | "y">, entity: EntityValues, kind: "geo" | "image"): Step[] {
  const [x, y] = [layer.x[0]?.name ?? "", layer.y[0]?.name ?? ""];
  const others = new Map((entity.points.get(y) ?? []).map(({ ts, value }) => [ts, value]));
  return (entity.points.get(x) ?? []).flatMap(({ ts, value }): Step[] => {
    const place: Place = [Number(value), Number(others.get(ts) ?? NaN)];
    return value.trim() !== "" && isPlace(place, kind) ? [{ ts, place }] : [];
  });
}

/**
 * Returns where something is at a moment: between two steps in a straight line, or, if it is to be where it told to be, at the step before. It
 * is at the end before and after all of them.
 */
export function placeAt(steps: readonly Step[], ts: number, snaps = false): { place: Place; n: number } | undefined {
  const [first, last] = [steps[0], steps.at(-1)];
  if (first === undefined || last === undefined) {
    return undefined;
  }
  if (ts <= first.ts) {
    return { place: first.place, n: 0 };
  }
  let [low, high] = [0, steps.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    [low, high] = (steps[middle]?.ts ?? 0) <= ts ? [middle, high] : [low, middle];
  }
  const [before, after] = [steps[low], steps[high]];
  if (before === undefined || after === undefined || ts >= last.ts || before === after) {
    return { place: last.place, n: steps.length - 1 };
  }
  if (snaps) {
    return { place: before.place, n: low };
  }
  const share = (ts - before.ts) / (after.ts - before.ts || 1);
  return { place: [before.place[0] + share * (after.place[0] - before.place[0]), before.place[1] + share * (after.place[1] - before.place[1])], n: low };
}

/** Returns the direction from one place to another: degrees, clockwise from the top. */
export function bearing([fromX, fromY]: Place, [toX, toY]: Place, kind: "geo" | "image"): number {
  if (kind === "image") {
    return (Math.atan2(toX - fromX, -(toY - fromY)) * 180) / Math.PI;
  }
  const radians = Math.PI / 180;
  const east = (toY - fromY) * radians;
  const y = Math.sin(east) * Math.cos(toX * radians);
  const x = Math.cos(fromX * radians) * Math.sin(toX * radians) - Math.sin(fromX * radians) * Math.cos(toX * radians) * Math.cos(east);
  return (Math.atan2(y, x) / radians + 360) % 360;
}

/** Distance of two markers that stand beside each other, and of the first ones from the place, pixels. */
const BESIDE = 40;

/** Returns how far from their place so many markers are put, in rings around it. */
export function spreadOffsets(count: number): [number, number][] {
  const offsets: [number, number][] = [];
  for (let ring = 1; offsets.length < count; ring++) {
    const most = Math.floor(2 * Math.PI * ring);
    const here = Math.min(most, count - offsets.length);
    for (let n = 0; n < here; n++) {
      const angle = (2 * Math.PI * n) / here - Math.PI / 2;
      offsets.push([Math.cos(angle) * BESIDE * ring, Math.sin(angle) * BESIDE * ring]);
    }
  }
  return offsets;
}
