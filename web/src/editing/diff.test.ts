import { expect, test } from "vitest";
import { dashboardDiff } from "@/dashboard/edit/dashboardDiff";
import { alike, fieldsBetween } from "./diff";

const widget = (title: string, color: string) => ({ typeFullFqn: "system.cards.value_card", config: { title, datasources: [{ dataKeys: [{ label: "Temperature", name: "t", color }] }] } });
const dashboard = (widgets: object, places: object, more: object = {}) => ({
  widgets,
  states: { default: { name: "Main", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } },
  ...more,
});

test("a diff tells of parts by their names, and of fields where they differ", () => {
  const before = dashboard({ a: widget("Boiler", "red"), b: widget("Gone", "red") }, { a: { col: 0, row: 0 }, b: { col: 4, row: 0 } }, { entityAliases: { x: { alias: "Pumps", filter: { type: "entityName", entityNameFilter: "P" } } } });
  const after = dashboard({ a: widget("Boiler", "blue"), c: widget("New", "red") }, { a: { col: 3, row: 0 }, c: { col: 4, row: 0 } }, { entityAliases: { x: { alias: "Pumps", filter: { type: "entityName", entityNameFilter: "Pump" } } }, settings: { hideToolbar: true } });
  const changes = dashboardDiff(before, after);
  expect(changes.map(({ title }) => title)).toEqual(["Widgets", "Layouts", "Aliases", "Settings"]);
  expect(changes[0]?.parts).toEqual([
    { kind: "changed", name: "Boiler", fields: [{ path: "config › datasources › 1 › dataKeys › Temperature › color", before: "red", after: "blue" }] },
    { kind: "removed", name: "Gone", fields: [] },
    { kind: "added", name: "New", fields: [] },
  ]);
  expect(changes[1]?.parts[0]?.fields[0]).toEqual({ path: "places › Boiler › col", before: "0", after: "3" });
  expect(changes[2]?.parts[0]).toMatchObject({ name: "Pumps", fields: [{ path: "filter › entityNameFilter" }] });
});

test("what means the same is no difference", () => {
  expect(alike({ a: 1, b: null }, { a: 1 })).toBe(true);
  expect(alike([1, { x: 1 }], [1, { x: 2 }])).toBe(false);
  expect(dashboardDiff(dashboard({ a: widget("A", "red") }, { a: { col: 0, row: 0 } }), dashboard({ a: widget("A", "red") }, { a: { row: 0, col: 0 } }))).toEqual([]);
  expect(fieldsBetween({ list: [1, 2] }, { list: [1, 3] })).toEqual([{ path: "list", before: "[1,2]", after: "[1,3]" }]);
});
