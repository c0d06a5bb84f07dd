// What the pickers of time offer.

const MINUTE = 60_000;
/** Lengths of time that can be chosen, milliseconds, with what they are called. */
export const LENGTHS: readonly [number, string][] = [
  [MINUTE, "last minute"],
  [5 * MINUTE, "last 5 minutes"],
  [30 * MINUTE, "last 30 minutes"],
  [60 * MINUTE, "last hour"],
  [6 * 60 * MINUTE, "last 6 hours"],
  [24 * 60 * MINUTE, "last day"],
  [7 * 24 * 60 * MINUTE, "last 7 days"],
  [30 * 24 * 60 * MINUTE, "last 30 days"],
];
export const AGGREGATIONS = ["NONE", "AVG", "MIN", "MAX", "SUM", "COUNT"];
