import { expect, test } from "vitest";
import { arrange } from "./layout";
import { readGrid } from "./grid";
import { fqnOf, readDashboard, type Layout } from "./model";
import { readStatePath, resolveAlias, writeStatePath } from "./state";
import { boundsOf, quickInterval, readTimeWindow } from "./timeWindow";

const old = readDashboard({
  deviceAliases: { a: { alias: "One", deviceId: "7" } },
  widgets: [{ isSystemType: true, bundleAlias: "charts", typeAlias: "timeseries", row: 0, col: 4, sizeX: 8, sizeY: 4, config: { title: "T", datasources: [{ deviceAliasId: "a", dataKeys: [{ name: "t", type: "timeseries" }] }] } }],
});

test("an old file opens with one state, its widgets and its devices", () => {
  const [state] = old.states;
  expect(state).toMatchObject({ id: "default", root: true });
  expect(state?.main.places[0]).toMatchObject({ row: 0, col: 4, sizeX: 8, sizeY: 4 });
  expect(old.aliases.get("a")?.filter).toEqual({ type: "singleEntity", singleEntity: { entityType: "DEVICE", id: "7" }, resolveMultiple: false });
  expect([...old.widgets.values()][0]).toMatchObject({ fqn: "system.charts.basic_timeseries", datasources: [{ type: "entity", aliasId: "a" }] });
  expect(fqnOf({ typeFullFqn: "tenant.x" })).toBe("tenant.x");
});

test("a source of a widget without data is none", () => {
  const key = { name: "f(x)", type: "function" };
  const widget = (fqn: string, source: object): object => ({ typeFullFqn: `system.${fqn}`, type: "latest", config: { datasources: [source] } });
  const { widgets } = readDashboard({
    widgets: {
      fixed: widget("cards.html_card", { type: "static", name: "function", dataKeys: [key] }),
      text: widget("cards.markdown_card", { type: "entity", name: "", dataKeys: [] }),
      keyed: widget("cards.markdown_card", { type: "entity", dataKeys: [{ name: "t", type: "timeseries" }] }),
      value: widget("cards.value_card", { type: "entity", name: "", dataKeys: [] }),
    },
  });
  expect([...widgets].map(([id, { datasources }]) => [id, datasources.length])).toEqual([["fixed", 0], ["text", 0], ["keyed", 1], ["value", 1]]);
});

test("garbage opens as an empty dashboard", () => {
  for (const garbage of [null, 7, [], { widgets: 3, states: "x", entityAliases: [1] }]) {
    expect(readDashboard(garbage).states).toHaveLength(1);
  }
});

const place = (id: string, col: number | undefined, row: number | undefined, more: object = {}) => ({
  id, col, row, sizeX: 6, sizeY: 3, mobileOrder: undefined, mobileHeight: undefined, mobileHide: false, desktopHide: false, ...more,
});
const layout = (places: Layout["places"], grid: object = {}): Layout => ({
  places,
  grid: { ...readGrid({}), ...grid },
  breakpoints: new Map(),
});

test("cells are square, gaps stay, and a widget without a free place takes the first one", () => {
  const { rects, height } = arrange(layout([place("a", 6, 2), place("b", undefined, undefined), place("c", 6, 3)]), 1210, 800);
  const by = Object.fromEntries(rects.map((rect) => [rect.id, rect]));
  expect(by["a"]).toEqual({ id: "a", left: 310, top: 110, width: 290, height: 140 });
  expect(by["c"]).toMatchObject({ left: 10, top: 10 });
  expect(by["b"]).toMatchObject({ left: 610, top: 10 });
  expect(height).toBe(5 * 50 + 10);
});

test("a filled page has rows as high as fit", () => {
  const { rects, height } = arrange(layout([place("a", 0, 0, { sizeY: 10 })], { autoFillHeight: true }), 1210, 510);
  expect(rects[0]?.height).toBe(490);
  expect(height).toBe(510);
});

test("a phone shows one column in its own order", () => {
  const { rects } = arrange(layout([place("a", 0, 0), place("b", 6, 0, { mobileOrder: 1 }), place("c", 0, 5, { mobileHide: true })]), 400, 700);
  expect(rects.map(({ id, top, height }) => [id, top, height])).toEqual([["b", 10, 230], ["a", 250, 230]]);
});

test("the state in the address bar is read back, however often it is encoded", () => {
  const dashboard = readDashboard({ states: { main: { root: true }, room: {} } });
  const path = [{ id: "main", params: {} }, { id: "room", params: { entityId: { entityType: "ASSET", id: "5" }, entityName: "Räume" } }];
  const written = writeStatePath(path, dashboard) ?? "";
  expect(readStatePath(written, dashboard)).toEqual(path);
  expect(readStatePath(encodeURIComponent(written), dashboard)).toEqual(path);
  expect(readStatePath("%%%", dashboard)).toEqual([{ id: "main", params: {} }]);
  expect(writeStatePath([{ id: "main", params: {} }], dashboard)).toBeUndefined();
});

test("an alias of the state's entity waits for one", () => {
  const filter = { type: "stateEntity", stateEntityParamName: "room" };
  expect(resolveAlias(filter, {})).toBeUndefined();
  const entity = { entityType: "ASSET", id: "5" };
  expect(resolveAlias(filter, { room: { entityId: entity } })).toEqual({ type: "singleEntity", singleEntity: entity });
  expect(resolveAlias({ type: "relationsQuery", rootStateEntity: true }, { entityId: entity })).toMatchObject({ rootEntity: entity });
});

test("windows are read, and calendar intervals begin where the calendar does", () => {
  expect(readTimeWindow(undefined)).toMatchObject({ realtime: true, length: 3_600_000, aggregation: "AVG" });
  const fixed = readTimeWindow({ selectedTab: 1, history: { historyType: 1, fixedTimewindow: { startTimeMs: 10, endTimeMs: 30 } } });
  expect(boundsOf(fixed, 99)).toEqual([10, 30]);
  const now = new Date(2026, 10, 24, 10, 20).getTime();
  expect(quickInterval("CURRENT_DAY", now)).toEqual([new Date(2026, 10, 24).getTime(), new Date(2026, 10, 25).getTime()]);
  expect(quickInterval("PREVIOUS_MONTH", now)).toEqual([new Date(2026, 9, 1).getTime(), new Date(2026, 10, 1).getTime()]);
  expect(quickInterval("CURRENT_WEEK_ISO_SO_FAR", now)).toEqual([new Date(2026, 10, 23).getTime(), now]);
  expect(quickInterval("YESTERDAY", now)).toEqual([new Date(2026, 10, 23).getTime(), new Date(2026, 10, 24).getTime()]);
});
