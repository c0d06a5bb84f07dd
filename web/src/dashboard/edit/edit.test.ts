import { expect, test } from "vitest";
import { object, readDashboard, type Json } from "../model";
import { addState, addWidget, aliasFor, changeState, cut, editable, movePlaces, paste, placesOf, removeState, removeWidgets, sizeOn } from "./document";
import { merge } from "./merge";

const DOCUMENT = editable({
  unknown: { kept: true },
  widgets: { a: { config: { title: "A", strange: 1 } }, b: { config: { title: "B" } } },
  states: {
    one: { name: "One", root: true, more: 1, layouts: { main: { widgets: { a: { col: 0, row: 0, sizeX: 4, sizeY: 3, mobileOrder: 7 }, b: { col: 4, row: 0, sizeX: 4, sizeY: 3 } }, gridSettings: { columns: 12 } } } },
  },
});

test("a widget goes where there is room, and nowhere else", () => {
  const at = (col: number, row: number) => new Map([["a", { col, row, sizeX: 4, sizeY: 3 }]]);
  expect(movePlaces(DOCUMENT, "one", at(3, 1)), "on another").toBe(DOCUMENT);
  expect(movePlaces(DOCUMENT, "one", at(-1, 0)), "outside").toBe(DOCUMENT);
  expect(movePlaces(DOCUMENT, "one", at(9, 0)), "beyond the columns").toBe(DOCUMENT);
  const moved = movePlaces(DOCUMENT, "one", at(8, 5));
  expect(placesOf(moved, "one").places.get("a")).toEqual({ col: 8, row: 5, sizeX: 4, sizeY: 3 });
  expect(JSON.stringify(moved)).toContain('"mobileOrder":7');
  expect(placesOf(moved, "one").places.get("b")).toEqual(placesOf(DOCUMENT, "one").places.get("b"));
  const both = new Map([
    ["a", { col: 4, row: 0, sizeX: 4, sizeY: 3 }],
    ["b", { col: 0, row: 0, sizeX: 4, sizeY: 3 }],
  ]);
  expect(placesOf(movePlaces(DOCUMENT, "one", both), "one").places.get("a")?.col, "two change places").toBe(4);
});

test("what an edit doesn't know stays as it is", () => {
  const edited = addWidget(DOCUMENT, "one", { config: {} }, { sizeX: 6, sizeY: 2 }, "c");
  expect(placesOf(edited, "one").places.get("c")).toEqual({ col: 0, row: 3, sizeX: 6, sizeY: 2 });
  const removed = removeWidgets(edited, "one", ["b", "c"]);
  expect(Object.keys(object(removed["widgets"]))).toEqual(["a"]);
  expect(removed["unknown"]).toEqual({ kept: true });
  expect(JSON.stringify(removed)).toContain('"strange":1');
  expect(JSON.stringify(removed)).toContain('"more":1');
});

test("a copy brings its alias along, into another dashboard too", () => {
  const device = { entityType: "DEVICE", id: "d" };
  const { document, alias } = aliasFor(DOCUMENT, device, "Boiler");
  expect(aliasFor(document, device, "Boiler").alias, "one alias for one entity").toBe(alias);
  const widget = { config: { datasources: [{ entityAliasId: alias }] } };
  const full = addWidget(document, "one", widget, { sizeX: 4, sizeY: 3 }, "c");
  const other = editable({});
  const { document: pasted, ids } = paste(other, "default", cut(full, "one", ["c", "a"]));
  expect(ids).toHaveLength(2);
  expect(readDashboard(pasted).aliases.get(alias)?.alias).toBe("Boiler");
  expect(paste(other, "default", "not JSON").document).toBe(other);
});

test("an old file with a list of widgets becomes one that can be edited", () => {
  const old = editable({ widgets: [{ bundleAlias: "charts", typeAlias: "timeseries", isSystemType: true, row: 2, col: 3, sizeX: 5, sizeY: 4, config: {} }] });
  const [[id, place]] = [...placesOf(old, "default").places] as [[string, unknown]];
  expect(place).toEqual({ col: 3, row: 2, sizeX: 5, sizeY: 4 });
  expect(Object.keys(object(old["widgets"]))).toEqual([id]);
});

test("states come and go, and the first one stays", () => {
  const { document, state } = addState(DOCUMENT, "Room 1");
  expect(state).toBe("room_1");
  const full = addWidget(document, state, {}, { sizeX: 1, sizeY: 1 }, "c");
  expect(object(removeState(full, state)["widgets"])).not.toHaveProperty("c");
  expect(removeState(full, "one")).toBe(full);
  const root = changeState(full, state, { root: true });
  expect(readDashboard(root).states.map((one) => one.root)).toEqual([false, true]);
});

test("two people's changes of different widgets are joined, and those of the same one are told", () => {
  const change = (document: Json, id: string, title: string): Json => ({ ...document, widgets: { ...object(document["widgets"]), [id]: { config: { title } } } });
  const mine = change(DOCUMENT, "a", "mine");
  const joined = merge(DOCUMENT, mine, addWidget(change(DOCUMENT, "b", "theirs"), "one", {}, { sizeX: 1, sizeY: 1 }, "new"));
  expect(joined.conflicts).toEqual([]);
  const model = readDashboard(joined.merged);
  expect([model.widgets.get("a")?.title, model.widgets.get("b")?.title]).toEqual(["mine", "theirs"]);
  expect(placesOf(joined.merged, "one").places.has("new")).toBe(true);
  const both = merge(DOCUMENT, mine, change(DOCUMENT, "a", "theirs"));
  expect(both.conflicts).toEqual(["widgets/a"]);
  expect(readDashboard(both.merged).widgets.get("a")?.title).toBe("mine");
  const gone = merge(DOCUMENT, mine, removeWidgets(DOCUMENT, "one", ["b"]));
  expect(gone.conflicts).toEqual([]);
  expect(readDashboard(gone.merged).widgets.has("b")).toBe(false);
});

test("a widget that the other has deleted and that is kept has its places again", () => {
  const mine = { ...DOCUMENT, widgets: { ...object(DOCUMENT["widgets"]), b: { config: { title: "mine" } } } };
  const { merged, conflicts } = merge(DOCUMENT, mine, removeWidgets(DOCUMENT, "one", ["b"]));
  expect(conflicts).toEqual(["widgets/b"]);
  expect(readDashboard(merged).widgets.get("b")?.title).toBe("mine");
  expect(placesOf(merged, "one").places.get("b")).toEqual(placesOf(DOCUMENT, "one").places.get("b"));
  // What nobody has changed stays deleted.
  expect(merge(DOCUMENT, DOCUMENT, removeWidgets(DOCUMENT, "one", ["b"])).merged).toEqual(removeWidgets(DOCUMENT, "one", ["b"]));
});

test("sizes are as large a part of a grid of other columns", () => {
  const grid = (columns: number): Json => editable({ widgets: {}, states: { s: { root: true, layouts: { main: { widgets: {}, gridSettings: { columns } } } } } });
  expect(sizeOn(grid(24), "s", { sizeX: 5, sizeY: 4 })).toEqual({ sizeX: 5, sizeY: 4 });
  expect(sizeOn(grid(48), "s", { sizeX: 5, sizeY: 4 })).toEqual({ sizeX: 10, sizeY: 8 });
  expect(sizeOn(grid(12), "s", { sizeX: 1, sizeY: 1 })).toEqual({ sizeX: 1, sizeY: 1 });
  const from = addWidget(grid(24), "s", { config: {} }, { sizeX: 6, sizeY: 4 }, "w");
  const there = paste(grid(120), "s", cut(from, "s", ["w"]));
  expect(placesOf(there.document, "s").places.get(there.ids[0] ?? "")).toMatchObject({ sizeX: 30, sizeY: 20 });
});
