// Edits of a dashboard's configuration. Each returns a new document and leaves what it doesn't know as it is; an edit that is not
// possible returns the document it was given.

import type { EntityId } from "@/api/types";
import type { Breakpoint } from "../grid";
import { gridOf, placed, type Place } from "../layout";
import { fqnOf, list, number, object, readDashboard, text, type Json, type Layout } from "../model";

/** Which of the layouts of a state an edit is about. */
export interface LayoutAt {
  state: string;
  layout: "main" | "right";
  /** The width that the layout is for; none for that of all other widths. */
  breakpoint: Breakpoint | undefined;
}

/** A state alone stands for its main layout of all widths. */
export type Where = string | LayoutAt;

const MAIN = "main";

export function whereOf(where: Where): LayoutAt {
  return typeof where === "string" ? { state: where, layout: MAIN, breakpoint: undefined } : where;
}

/** Returns where a layout stands in the document. */
export function layoutPath(where: Where): string[] {
  const { state, layout, breakpoint } = whereOf(where);
  return ["states", state, "layouts", layout, ...(breakpoint === undefined ? [] : ["breakpoints", breakpoint])];
}

/** Returns a part of the document; nothing of what it lacks. */
export function at(document: Json, path: string[]): Json {
  return path.reduce((part, key) => object(part[key]), document);
}

export const newId = (): string => crypto.randomUUID();

/** Returns the document with another value in a place. */
export function set(target: Json, [key, ...rest]: string[], value: unknown): Json {
  if (key === undefined) {
    return object(value);
  }
  return { ...target, [key]: rest.length === 0 ? value : set(object(target[key]), rest, value) };
}

/** Returns an object without some of its fields. */
export function without(target: Json, keys: Iterable<string>): Json {
  const gone = new Set(keys);
  return Object.fromEntries(Object.entries(target).filter(([key]) => !gone.has(key)));
}

/** What old files keep with the grid, and the setting that it is now. */
const OF_TOOLBAR = [
  ["showTitle", "showTitle"],
  ["titleColor", "titleColor"],
  ["showDevicesSelect", "showEntitiesSelect"],
  ["showEntitiesSelect", "showEntitiesSelect"],
  ["showDashboardTimewindow", "showDashboardTimewindow"],
  ["showDashboardExport", "showDashboardExport"],
] as const;

/** Brings old forms, such as a list of widgets without states, into the present one, which can be edited. */
export function editable(configuration: unknown): Json {
  const given = object(configuration);
  const model = readDashboard(given);
  let document = given;
  if (Array.isArray(given["widgets"])) {
    const ids = [...model.widgets.keys()];
    document = { ...document, widgets: Object.fromEntries(list(given["widgets"]).map((widget, n) => [ids[n] ?? newId(), widget])) };
  }
  if (Object.keys(object(given["states"])).length === 0) {
    const widgets = Object.fromEntries(
      (model.states[0]?.main.places ?? []).map(({ id, sizeX, sizeY, row, col }) => [id, { sizeX, sizeY, ...(row === undefined ? {} : { row }), ...(col === undefined ? {} : { col }) }]),
    );
    const gridSettings = Object.keys(object(given["gridSettings"])).length > 0 ? given["gridSettings"] : { columns: 24, margin: 10, backgroundColor: "#eeeeee" };
    document = { ...document, states: { default: { name: "Default", root: true, layouts: { [MAIN]: { widgets, gridSettings } } } } };
  }
  const { deviceAliases: _old, gridSettings, ...rest } = document;
  const grid = object(gridSettings);
  const toolbar = Object.fromEntries(OF_TOOLBAR.flatMap(([old, name]) => (grid[old] === undefined ? [] : [[name, grid[old]]])));
  return {
    ...rest,
    widgets: object(document["widgets"]),
    entityAliases: Object.fromEntries([...model.aliases].map(([id, alias]) => [id, { ...object(object(document["entityAliases"])[id]), ...alias }])),
    ...(Object.keys(toolbar).length === 0 ? {} : { settings: { ...toolbar, ...object(document["settings"]) } }),
  };
}

const placesPath = (where: Where): string[] => [...layoutPath(where), "widgets"];

function rawPlaces(document: Json, where: Where): Json {
  return at(document, placesPath(where));
}

/** Returns a layout as it is read. */
export function layoutAt(document: Json, where: Where): Layout | undefined {
  const { state, layout, breakpoint } = whereOf(where);
  const found = readDashboard(document).states.find((one) => one.id === state)?.[layout];
  return breakpoint === undefined ? found : found?.breakpoints.get(breakpoint);
}

/** Returns the cells of each widget of a layout, and how many columns there are. */
export function placesOf(document: Json, where: Where): { places: Map<string, Place>; columns: number } {
  const layout = layoutAt(document, where);
  if (layout === undefined) {
    return { places: new Map(), columns: 24 };
  }
  const { columns } = gridOf(layout, 0);
  const cells = placed(layout.places, columns);
  return { places: new Map(cells.map(({ id, col, row, sizeX, sizeY }) => [id, { col, row, sizeX, sizeY }])), columns };
}

const overlap = (a: Place, b: Place): boolean => a.col < b.col + b.sizeX && b.col < a.col + a.sizeX && a.row < b.row + b.sizeY && b.row < a.row + a.sizeY;

/** Whether widgets can lie there: within the columns, and on no other widget. */
export function fits(document: Json, state: Where, moved: ReadonlyMap<string, Place>): boolean {
  const { places, columns } = placesOf(document, state);
  const after = new Map([...places, ...moved]);
  return [...moved].every(
    ([id, place]) =>
      place.col >= 0 && place.row >= 0 && place.sizeX >= 1 && place.sizeY >= 1 && place.col + place.sizeX <= columns && [...after].every(([other, there]) => other === id || !overlap(place, there)),
  );
}

/** Moves or resizes widgets. Nothing else moves: where they don't fit, nothing happens. */
export function movePlaces(document: Json, state: Where, moved: ReadonlyMap<string, Place>): Json {
  if (moved.size === 0 || !fits(document, state, moved)) {
    return document;
  }
  const places = rawPlaces(document, state);
  const next = Object.fromEntries([...moved].map(([id, place]) => [id, { ...object(places[id]), ...place }]));
  return set(document, placesPath(state), { ...places, ...next });
}

/** Returns the first free cells of a size, row by row. */
function free(document: Json, state: Where, sizeX: number, sizeY: number): Place {
  const { places, columns } = placesOf(document, state);
  const taken = [...places.values()];
  const width = Math.min(sizeX, columns);
  for (let row = 0; ; row++) {
    for (let col = 0; col + width <= columns; col++) {
      const place = { col, row, sizeX: width, sizeY };
      if (!taken.some((other) => overlap(place, other))) {
        return place;
      }
    }
  }
}

/** Sizes of kinds and types are those on a grid of so many columns. */
const USUAL_COLUMNS = 24;

/** Returns a size on the grid of a layout for one on a grid of so many columns: as large a part of it. */
export function sizeOn(document: Json, state: Where, { sizeX, sizeY }: { sizeX: number; sizeY: number }, from = USUAL_COLUMNS): { sizeX: number; sizeY: number } {
  const { columns } = placesOf(document, state);
  const scaled = (cells: number): number => Math.max(1, Math.round((cells * columns) / from));
  return { sizeX: Math.min(columns, scaled(sizeX)), sizeY: scaled(sizeY) };
}

/** Adds a widget at the first free place. */
export function addWidget(document: Json, state: Where, widget: Json, size: { sizeX: number; sizeY: number }, id: string = newId()): Json {
  const place = free(document, state, size.sizeX, size.sizeY);
  const named = set(document, ["widgets", id], { ...widget, id, sizeX: place.sizeX, sizeY: place.sizeY });
  return set(named, placesPath(state), { ...rawPlaces(document, state), [id]: place });
}

/** Takes widgets out of a state; those that no other state shows are gone. */
export function removeWidgets(document: Json, state: Where, ids: Iterable<string>): Json {
  const gone = [...ids];
  const next = set(document, placesPath(state), without(rawPlaces(document, state), gone));
  return dropUnused(next);
}

export function changeWidget(document: Json, id: string, widget: Json): Json {
  return set(document, ["widgets", id], widget);
}

/** Widgets with what they need, as text for the clipboard. */
export function cut(document: Json, state: Where, ids: Iterable<string>): string {
  const { places, columns } = placesOf(document, state);
  const widgets = [...ids].flatMap((id) => {
    const widget = object(document["widgets"])[id];
    const place = places.get(id);
    return widget === undefined || place === undefined ? [] : [{ widget, place }];
  });
  const used = JSON.stringify(widgets);
  const aliases = Object.fromEntries(Object.entries(object(document["entityAliases"])).filter(([id]) => used.includes(JSON.stringify(id))));
  const filters = Object.fromEntries(Object.entries(object(document["filters"])).filter(([id]) => used.includes(JSON.stringify(id))));
  return JSON.stringify({ fieldlineWidgets: widgets, columns, entityAliases: aliases, filters });
}

/** Adds the widgets of a clipboard at free places; returns their ids. Aliases come along, and those of the same id are shared. */
export function paste(document: Json, state: Where, clipboard: string): { document: Json; ids: string[] } {
  let piece: Json = {};
  try {
    piece = object(JSON.parse(clipboard));
  } catch {
    // Other text is no piece of a dashboard.
  }
  const ids: string[] = [];
  const joined = (part: string): Json => ({ ...object(piece[part]), ...object(document[part]) });
  const filters = joined("filters");
  let next: Json = { ...document, entityAliases: joined("entityAliases"), ...(Object.keys(filters).length > 0 ? { filters } : {}) };
  // Pieces that don't say how many columns they come from keep their sizes.
  const from = number(piece["columns"]) ?? placesOf(document, state).columns;
  for (const one of list(piece["fieldlineWidgets"])) {
    const { widget, place } = object(one);
    const size = object(place);
    const id = newId();
    next = addWidget(next, state, object(widget), sizeOn(document, state, { sizeX: Number(size["sizeX"]) || 8, sizeY: Number(size["sizeY"]) || 5 }, from), id);
    ids.push(id);
  }
  return ids.length === 0 ? { document, ids } : { document: next, ids };
}

/** Where widgets lie, as text for the clipboard: pasted into another layout they are the same widgets there. */
export function reference(document: Json, state: Where, dashboard: string, ids: Iterable<string>): string {
  const { places } = placesOf(document, state);
  return JSON.stringify({ fieldlineReferences: [...ids].flatMap((id) => (places.has(id) ? [{ id, place: places.get(id) }] : [])), dashboard });
}

/** Shows widgets of the dashboard in one more layout; those that it has already stay as they are. */
export function pasteReferences(document: Json, state: Where, dashboard: string, clipboard: string): { document: Json; ids: string[] } {
  let piece: Json = {};
  try {
    piece = object(JSON.parse(clipboard));
  } catch {
    // Other text is no piece of a dashboard.
  }
  const ids: string[] = [];
  let next = document;
  for (const { id, place } of piece["dashboard"] === dashboard ? list(piece["fieldlineReferences"]).map(object) : []) {
    const key = text(id) ?? "";
    if (key in object(document["widgets"]) && !(key in rawPlaces(next, state))) {
      const size = object(place);
      next = set(next, placesPath(state), { ...rawPlaces(next, state), [key]: free(next, state, Number(size["sizeX"]) || 8, Number(size["sizeY"]) || 5) });
      ids.push(key);
    }
  }
  return { document: next, ids };
}

/** Returns the alias that stands for one entity, and makes one if there is none. */
export function aliasFor(document: Json, entity: EntityId, name: string): { document: Json; alias: string } {
  const aliases = object(document["entityAliases"]);
  const known = Object.entries(aliases).find(([, value]) => {
    const filter = object(object(value)["filter"]);
    return filter["type"] === "singleEntity" && object(filter["singleEntity"])["id"] === entity.id;
  });
  if (known !== undefined) {
    return { document, alias: known[0] };
  }
  const names = new Set(Object.values(aliases).map((value) => text(object(value)["alias"])));
  let unique = name;
  for (let n = 2; names.has(unique); n++) {
    unique = `${name} ${n}`;
  }
  const id = newId();
  const filter = { type: "singleEntity", singleEntity: { entityType: entity.entityType, id: entity.id }, resolveMultiple: false };
  return { document: set(document, ["entityAliases", id], { id, alias: unique, filter }), alias: id };
}

export function setAlias(document: Json, id: string, alias: Json): Json {
  return set(document, ["entityAliases", id], { ...alias, id });
}

export function removeAlias(document: Json, id: string): Json {
  return { ...document, entityAliases: without(object(document["entityAliases"]), [id]) };
}

export function addState(document: Json, name: string): { document: Json; state: string } {
  const plain = name.toLowerCase().replace(/\W+/g, "_") || "state";
  const states = object(document["states"]);
  let state = plain;
  for (let n = 2; state in states; n++) {
    state = `${plain}_${n}`;
  }
  const made = { name, root: false, layouts: { [MAIN]: { widgets: {}, gridSettings: { columns: 24, margin: 10, backgroundColor: "#eeeeee" } } } };
  return { document: set(document, ["states", state], made), state };
}

/** Changes the name of a state, or makes it the one that is shown first. */
export function changeState(document: Json, state: string, change: { name?: string; root?: true }): Json {
  const states = Object.entries(object(document["states"])).map(([id, value]): [string, unknown] => [
    id,
    { ...object(value), ...(id === state ? change : change.root === true ? { root: false } : {}) },
  ]);
  return { ...document, states: Object.fromEntries(states) };
}

/** Removes a state with the widgets that only it shows. The first one stays. */
export function removeState(document: Json, state: string): Json {
  const states = object(document["states"]);
  if (object(states[state])["root"] === true || Object.keys(states).length < 2) {
    return document;
  }
  return dropUnused({ ...document, states: without(states, [state]) });
}

/** Takes out widgets that no layout shows any more. */
export function dropUnused(document: Json): Json {
  const shown = JSON.stringify(document["states"]);
  const unused = Object.keys(object(document["widgets"])).filter((id) => !shown.includes(JSON.stringify(id)));
  return unused.length === 0 ? document : { ...document, widgets: without(object(document["widgets"]), unused) };
}

/** Changes settings of the grid of a layout. */
export function changeGrid(document: Json, state: Where, change: Json): Json {
  const path = [...layoutPath(state), "gridSettings"];
  return set(document, path, { ...at(document, path), ...change });
}

export function setTimeWindow(document: Json, window: Json): Json {
  return { ...document, timewindow: { ...object(document["timewindow"]), ...window } };
}

/** Returns what a widget draws, such as `system.time_series_chart`. */
export function typeOf(document: Json, id: string): string {
  return fqnOf(object(object(document["widgets"])[id]));
}
