// How old what is shown is.

import type { EntityValues, Point } from "./source";

/** Returns when the newest value of entities came; nothing if none ever did. Fields of entities are no values. */
export function newestOf(entities: readonly EntityValues[]): number | undefined {
  let newest = 0;
  const look = (point: Point | undefined): void => {
    newest = Math.max(newest, point?.ts ?? 0);
  };
  for (const { latest, points } of entities) {
    latest.forEach((point, place) => place.startsWith("ENTITY_FIELD/") || look(point));
    points.forEach((all) => look(all.at(-1)));
  }
  return newest > 0 ? newest : undefined;
}
