import { expect, test } from "vitest";
import { layoutFor } from "../grid";
import { phoneOrder } from "../layout";
import { object, readDashboard } from "../model";
import { aligned } from "./align";
import { changeKind, missingIn } from "./aliasForms";
import { editable, layoutAt, movePlaces, pasteReferences, placesOf, reference, removeWidgets } from "./document";
import { addBreakpoint, addRight, changePlace, duplicateState, orderOnPhone, removeBreakpoint, removeRight, resizeOnPhone, setSplit } from "./layouts";

const place = (col: number, row: number, sizeX = 4, sizeY = 3) => ({ col, row, sizeX, sizeY });
const DOCUMENT = editable({
  widgets: { a: { config: { title: "A" } }, b: { config: { title: "B" } }, c: { config: { title: "C" } } },
  states: { one: { root: true, layouts: { main: { widgets: { a: place(0, 0), b: place(6, 1), c: place(12, 7) }, gridSettings: { columns: 24 } } } } },
});
const main = (document: object) => layoutAt(object(document), "one")?.places ?? [];

test("a width has a layout of its own, which changes alone and goes again", () => {
  const own = addBreakpoint(DOCUMENT, "one", "xs");
  const at = { state: "one", layout: "main", breakpoint: "xs" } as const;
  const moved = movePlaces(own, at, new Map([["a", place(0, 10)]]));
  expect(placesOf(moved, at).places.get("a")?.row).toBe(10);
  expect(placesOf(moved, "one").places.get("a")?.row).toBe(0);
  const [state] = readDashboard(moved).states;
  if (state === undefined) {
    throw new Error("there is no state");
  }
  expect(layoutFor(state, 500)).toMatchObject({ own: true });
  expect(layoutFor(state, 700)).toMatchObject({ own: false });
  expect(readDashboard(removeBreakpoint(moved, "one", "xs")).states[0]?.main.breakpoints.size).toBe(0);
});

test("a state is divided, and both parts know how", () => {
  const divided = setSplit(addRight(DOCUMENT, "one"), "one", { type: "fixed", fixedWidth: 300, fixedLayout: "right" });
  const [state] = readDashboard(divided).states;
  expect(state?.split).toEqual({ kind: "fixed", layout: "right", width: 300 });
  const text = reference(divided, "one", "d1", ["a"]);
  const right = { state: "one", layout: "right", breakpoint: undefined } as const;
  const { document, ids } = pasteReferences(divided, right, "d1", text);
  expect(ids).toEqual(["a"]);
  expect(pasteReferences(divided, right, "another dashboard", text).ids).toEqual([]);
  expect(pasteReferences(document, right, "d1", text).ids, "it is there already").toEqual([]);
  const removed = removeWidgets(document, "one", ["a"]);
  expect(object(removed["widgets"]), "the right part shows it still").toHaveProperty("a");
  expect(object(removeRight(removed, "one")["widgets"])).not.toHaveProperty("a");
});

test("the list of phones has an order, heights, and leaves widgets out", () => {
  const order = (document: object): string[] => phoneOrder(main(document)).map(({ id }) => id);
  expect(order(DOCUMENT)).toEqual(["a", "b", "c"]);
  const moved = orderOnPhone(DOCUMENT, "one", "c", "a");
  expect(order(moved)).toEqual(["c", "a", "b"]);
  expect(order(orderOnPhone(moved, "one", "c", undefined))).toEqual(["a", "b", "c"]);
  expect(order(changePlace(moved, "one", "a", { mobileHide: true }))).toEqual(["c", "b"]);
  expect(main(resizeOnPhone(DOCUMENT, "one", "a", 2)).find(({ id }) => id === "a")?.mobileHeight).toBe(5);
  expect(placesOf(moved, "one").places, "the grid stays").toEqual(placesOf(DOCUMENT, "one").places);
});

test("widgets come into line", () => {
  const { places } = placesOf(DOCUMENT, "one");
  expect([...aligned(places, "top").values()].map(({ row }) => row)).toEqual([0, 0, 0]);
  expect([...aligned(places, "right").values()].map(({ col }) => col)).toEqual([12, 12, 12]);
  expect([...aligned(places, "rows").values()].map(({ row }) => row)).toEqual([0, 4, 7]);
});

test("a copied state shows the same widgets", () => {
  const { document, state } = duplicateState(DOCUMENT, "one");
  expect(readDashboard(document).states.map(({ id, root }) => [id, root])).toEqual([["one", true], [state, false]]);
  expect(placesOf(document, state).places.size).toBe(3);
});

test("filters of aliases keep what both kinds have, and say what they lack", () => {
  const list = changeKind({ type: "entityName", entityType: "ASSET", entityNameFilter: "x" }, "entityList");
  expect(list).toEqual({ type: "entityList", entityType: "ASSET", entityList: [], resolveMultiple: true });
  expect(missingIn(list)).toBeDefined();
  expect(missingIn({ type: "relationsQuery", rootStateEntity: true })).toBeUndefined();
  expect(missingIn({ type: "singleEntity", singleEntity: { entityType: "CURRENT_CUSTOMER" } })).toBeUndefined();
});

test("an old file keeps what it says of the toolbar and its devices", () => {
  const old = editable({ deviceAliases: { 1: { alias: "One", deviceFilter: { useFilter: true, deviceNameFilter: "Pu" } } }, gridSettings: { showDevicesSelect: false, columns: 12 }, widgets: [] });
  expect(readDashboard(old).settings.showEntitiesSelect).toBe(false);
  expect(old).not.toHaveProperty("deviceAliases");
  expect(readDashboard(old).aliases.get("1")?.filter).toMatchObject({ type: "entityName", entityNameFilter: "Pu", resolveMultiple: false });
  expect(readDashboard(old).states[0]?.main.grid.columns).toBe(12);
});
