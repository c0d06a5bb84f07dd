// Joins what two people have changed in the same dashboard since both of them opened it.

import { mergeParts, type Merge } from "@/editing/merge";
import { object, type Json } from "../json";

/** Parts that make sense only as a whole: a widget, its place, an alias, a filter. */
const WHOLE = /^(widgets\/[^/]+|states\/[^/]+\/layouts\/\w+\/(breakpoints\/\w+\/)?widgets\/[^/]+|entityAliases\/[^/]+|filters\/[^/]+|timewindow)$/;

const mapped = (parts: unknown, change: (part: Json, name: string) => unknown): Json => Object.fromEntries(Object.entries(object(parts)).map(([name, part]) => [name, change(object(part), name)]));

/** Gives widgets the places in a layout that they have in another form of it, where they have none. */
function placedAs(layout: Json, other: Json, ids: readonly string[]): Json {
  const [places, others] = [object(layout["widgets"]), object(other["widgets"])];
  const missing = ids.filter((id) => places[id] === undefined && others[id] !== undefined);
  const { breakpoints } = layout;
  return {
    ...layout,
    ...(missing.length === 0 ? {} : { widgets: { ...places, ...Object.fromEntries(missing.map((id) => [id, others[id]])) } }),
    ...(Object.keys(object(breakpoints)).length === 0 ? {} : { breakpoints: mapped(breakpoints, (own, name) => placedAs(own, object(object(other["breakpoints"])[name]), ids)) }),
  };
}

/** Merges two forms of a configuration that began as the same one. */
export function merge(base: unknown, mine: unknown, theirs: unknown): Merge {
  const { merged, conflicts } = mergeParts(base, mine, theirs, WHOLE);
  const widgetsOf = (document: unknown): Json => object(object(document)["widgets"]);
  // A widget that the other has deleted is kept where it was changed here; its places went with it, and it would be shown nowhere.
  const kept = Object.keys(widgetsOf(merged)).filter((id) => widgetsOf(base)[id] !== undefined && widgetsOf(theirs)[id] === undefined);
  if (kept.length === 0) {
    return { merged, conflicts };
  }
  const layoutsOf = (id: string): Json => object(object(object(object(mine)["states"])[id])["layouts"]);
  const states = mapped(merged["states"], (state, id) => ({ ...state, layouts: mapped(state["layouts"], (layout, name) => placedAs(layout, object(layoutsOf(id)[name]), kept)) }));
  return { merged: { ...merged, states }, conflicts };
}
