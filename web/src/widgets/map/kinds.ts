// Which types of widgets are maps of today, by their names.

export const nameOf = (fqn: string): string => fqn.replace(/^system\./, "");

/** Whether a type keeps its layers in its settings; older ones have sources, and settings for all of them. */
export function hasLayers(fqn: string): boolean {
  return /^system\.(image_|trip_|route_)?map$/.test(fqn);
}

/** Whether a type draws trips besides what has one place. */
export function hasTrips(fqn: string): boolean {
  return /^(trip|route)_map$/.test(nameOf(fqn));
}
