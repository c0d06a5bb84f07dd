// Edits of what a state has besides the cells of its widgets: a second layout, layouts for some widths, the list on phones.

import type { Breakpoint } from "../grid";
import { phoneOrder, rowsOnPhone } from "../layout";
import { object, text, type Json } from "../model";
import { at, dropUnused, layoutAt, layoutPath, set, without, type LayoutAt, type Where } from "./document";

const EMPTY_GRID: Json = { columns: 24, margin: 10, outerMargin: true, backgroundColor: "#eeeeee" };

/** Gives a width a layout of its own, which begins as a copy of the usual one. */
export function addBreakpoint(document: Json, state: string, breakpoint: Breakpoint): Json {
  const usual = at(document, layoutPath(state));
  return set(document, layoutPath({ state, layout: "main", breakpoint }), { widgets: object(usual["widgets"]), gridSettings: object(usual["gridSettings"]) });
}

/** Takes a layout of one width away; the usual one is shown there again. */
export function removeBreakpoint(document: Json, state: string, breakpoint: Breakpoint): Json {
  const path = [...layoutPath(state), "breakpoints"];
  return dropUnused(set(document, path, without(at(document, path), [breakpoint])));
}

/** Divides a state in two. */
export function addRight(document: Json, state: string): Json {
  const made = set(document, layoutPath({ state, layout: "right", breakpoint: undefined }), { widgets: {}, gridSettings: EMPTY_GRID });
  return setSplit(made, state, { type: "percentage", leftWidthPercentage: 50 });
}

/** Takes the right part away, with the widgets that only it shows. */
export function removeRight(document: Json, state: string): Json {
  const path = ["states", state, "layouts"];
  return dropUnused(set(document, path, without(at(document, path), ["right"])));
}

/** Says how two layouts share the width; both keep it, as ThingsBoard writes it. */
export function setSplit(document: Json, state: string, layoutDimension: Json): Json {
  return (["main", "right"] as const).reduce((next, layout) => {
    const path = [...layoutPath({ state, layout, breakpoint: undefined }), "gridSettings"];
    return set(next, path, { ...at(next, path), layoutType: "divider", layoutDimension });
  }, document);
}

/** Copies a state with its layouts; both states show the same widgets. */
export function duplicateState(document: Json, state: string): { document: Json; state: string } {
  const states = object(document["states"]);
  let copy = `${state}_copy`;
  for (let n = 2; copy in states; n++) {
    copy = `${state}_copy_${n}`;
  }
  const stored = object(states[state]);
  const made = { ...(JSON.parse(JSON.stringify(stored)) as Json), name: `${text(stored["name"]) ?? state} (2)`, root: false };
  return { document: set(document, ["states", copy], made), state: copy };
}

/** Changes fields of a widget's place, such as whether phones show it. */
export function changePlace(document: Json, where: Where, id: string, change: Json): Json {
  const path = [...layoutPath(where), "widgets", id];
  return set(document, path, { ...at(document, path), ...change });
}

/** Puts a widget before another one in the list on phones; last if there is none. Widgets that the list had no order for get one. */
export function orderOnPhone(document: Json, where: Where, id: string, before: string | undefined): Json {
  const layout = layoutAt(document, where);
  const order = phoneOrder(layout?.places ?? []).map((place) => place.id).filter((one) => one !== id);
  const position = before === undefined ? order.length : Math.max(0, order.indexOf(before));
  order.splice(position, 0, id);
  return order.reduce((next, one, n) => changePlace(next, where, one, { mobileOrder: n }), document);
}

/** Makes a widget so many rows higher in the list on phones, or lower. */
export function resizeOnPhone(document: Json, where: Where, id: string, by: number): Json {
  const layout = layoutAt(document, where);
  const place = layout?.places.find((one) => one.id === id);
  return layout === undefined || place === undefined ? document : changePlace(document, where, id, { mobileHeight: Math.max(1, rowsOnPhone(place, layout.grid) + by) });
}

export function changeSettings(document: Json, change: Json): Json {
  return { ...document, settings: { ...object(document["settings"]), ...change } };
}

export function setFilter(document: Json, id: string, filter: Json): Json {
  return set(document, ["filters", id], { ...filter, id });
}

export function removeFilter(document: Json, id: string): Json {
  return { ...document, filters: without(object(document["filters"]), [id]) };
}

/** Returns how many widgets use an alias or a filter. */
export function usesOf(document: Json, id: string): number {
  return Object.values(object(document["widgets"])).filter((widget) => JSON.stringify(widget).includes(JSON.stringify(id))).length;
}

/** Whether a layout is still there, such as after undoing what made it. */
export function exists(document: Json, { state, layout, breakpoint }: LayoutAt): boolean {
  return layoutAt(document, { state, layout, breakpoint }) !== undefined;
}
