// Brings several widgets into line. Where the result would lie on other widgets, the edit that takes it refuses.

import type { Place } from "../layout";

export const ALIGNMENTS = [
  { id: "left", label: "Align left" },
  { id: "right", label: "Align right" },
  { id: "top", label: "Align at the top" },
  { id: "bottom", label: "Align at the bottom" },
  { id: "width", label: "Same width" },
  { id: "height", label: "Same height" },
  { id: "columns", label: "Distribute across" },
  { id: "rows", label: "Distribute down" },
] as const;
export type Alignment = (typeof ALIGNMENTS)[number]["id"];

/** Spreads lengths evenly over a stretch; rounding errors don't add up. */
function spread(places: [string, Place][], start: "col" | "row", size: "sizeX" | "sizeY"): Map<string, Place> {
  const sorted = [...places].sort(([, a], [, b]) => a[start] - b[start]);
  const first = sorted[0]?.[1][start] ?? 0;
  const end = Math.max(...sorted.map(([, place]) => place[start] + place[size]));
  const gap = (end - first - sorted.reduce((sum, [, place]) => sum + place[size], 0)) / Math.max(1, sorted.length - 1);
  let next = first;
  return new Map(
    sorted.map(([id, place]) => {
      const moved = { ...place, [start]: Math.round(next) };
      next += place[size] + gap;
      return [id, moved];
    }),
  );
}

/** Returns the places after an alignment; the first widget gives the measure. */
export function aligned(places: ReadonlyMap<string, Place>, how: Alignment): Map<string, Place> {
  const all = [...places];
  const first = all[0]?.[1];
  if (first === undefined || all.length < 2) {
    return new Map(places);
  }
  const each = (change: (place: Place) => Partial<Place>): Map<string, Place> => new Map(all.map(([id, place]) => [id, { ...place, ...change(place) }]));
  const right = Math.max(...all.map(([, place]) => place.col + place.sizeX));
  const bottom = Math.max(...all.map(([, place]) => place.row + place.sizeY));
  switch (how) {
    case "left":
      return each(() => ({ col: Math.min(...all.map(([, place]) => place.col)) }));
    case "right":
      return each((place) => ({ col: right - place.sizeX }));
    case "top":
      return each(() => ({ row: Math.min(...all.map(([, place]) => place.row)) }));
    case "bottom":
      return each((place) => ({ row: bottom - place.sizeY }));
    case "width":
      return each(() => ({ sizeX: first.sizeX }));
    case "height":
      return each(() => ({ sizeY: first.sizeY }));
    case "columns":
      return spread(all, "col", "sizeX");
    case "rows":
      return spread(all, "row", "sizeY");
  }
}
