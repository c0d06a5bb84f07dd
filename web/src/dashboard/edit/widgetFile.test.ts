import { expect, test } from "vitest";
import { object, readDashboard, type Json } from "../model";
import { editable, placesOf, set } from "./document";
import { copyStyle, pasteStyle } from "./style";
import { exportWidget, importWidget } from "./widgetFile";

const alias = (id: string, name: string, prefix: string): Json => ({ id, alias: name, filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: prefix, resolveMultiple: true } });
const FILTER = { id: "filter-hot", filter: "Hot", keyFilters: [{ key: { type: "TIME_SERIES", key: "t" } }], editable: true };
const widget = (title: string, more: Json = {}): Json => ({
  typeFullFqn: "system.cards.value_card",
  type: "latest",
  config: { title, datasources: [{ type: "entity", entityAliasId: "alias-pumps", filterId: "filter-hot", dataKeys: [] }], settings: { valueColor: "red", layout: "square", layer: { alias: "alias-valves" } }, ...more },
});
const state = (widgets: Json, columns: number): Json => ({ one: { name: "One", root: true, layouts: { main: { widgets, gridSettings: { columns } } } } });
const FROM = editable({
  widgets: { w: widget("Value", { targetDevice: { type: "entity", entityAliasId: "alias-valves" } }) },
  entityAliases: { "alias-pumps": alias("alias-pumps", "Pumps", "Pump"), "alias-valves": alias("alias-valves", "Valves", "Valve") },
  filters: { "filter-hot": FILTER },
  states: state({ w: { col: 0, row: 0, sizeX: 6, sizeY: 4 } }, 12),
});

test("a widget is a file as ThingsBoard writes them", () => {
  const file = exportWidget(FROM, "one", "w");
  const { id: _id, ...filter } = FILTER;
  expect(file).toMatchObject({
    aliasesInfo: { datasourceAliases: { 0: { alias: "Pumps", filter: { entityNameFilter: "Pump" } } }, targetDeviceAlias: { alias: "Valves" } },
    filtersInfo: { datasourceFilters: { 0: filter } },
    originalSize: { sizeX: 6, sizeY: 4 },
    originalColumns: 12,
  });
  expect(file["widget"]).toEqual(object(FROM["widgets"])["w"]);
});

test("a file becomes a widget: what is here already is shared, and another thing of the same name is told apart", () => {
  const here = editable({ widgets: {}, entityAliases: { x1: alias("x1", "Pumps", "Pump"), x2: alias("x2", "Valves", "Other") }, states: state({}, 24) });
  const { fieldlineParts: _parts, ...ofThingsBoard } = exportWidget(FROM, "one", "w");
  for (const file of [exportWidget(FROM, "one", "w"), ofThingsBoard]) {
    const { document, id } = importWidget(here, "one", JSON.parse(JSON.stringify(file)));
    const model = readDashboard(document);
    const config = model.widgets.get(id)?.config ?? {};
    const source = object((config["datasources"] as unknown[])[0]);
    expect(source["entityAliasId"]).toBe("x1");
    expect(object(object(document["filters"])[String(source["filterId"])])["filter"]).toBe("Hot");
    const target = String(object(config["targetDevice"])["entityAliasId"]);
    expect(model.aliases.get(target)?.alias).toBe("Valves 2");
    expect(model.aliases.size).toBe(3);
    expect(placesOf(document, "one").places.get(id)).toMatchObject({ sizeX: 12, sizeY: 8 });
  }
  // What the settings name comes along in files of our own.
  const own = importWidget(here, "one", exportWidget(FROM, "one", "w"));
  const named = String(object(object(object(object(object(own.document["widgets"])[own.id])["config"])["settings"])["layer"])["alias"]);
  expect(readDashboard(own.document).aliases.get(named)?.alias).toBe("Valves 2");
});

test("an alarm widget has one source, and other files are refused", () => {
  const alarms = set(FROM, ["widgets", "w"], { typeFullFqn: "system.alarm_widgets.alarms_table", type: "alarm", config: { alarmSource: { type: "entity", entityAliasId: "alias-pumps" } } });
  const file = exportWidget(alarms, "one", "w");
  expect(file).toMatchObject({ aliasesInfo: { datasourceAliases: { 0: { alias: "Pumps" } } } });
  const { document, id } = importWidget(editable({ widgets: {}, states: state({}, 24) }), "one", file);
  const source = object(object(object(object(document["widgets"])[id])["config"])["alarmSource"]);
  expect(readDashboard(document).aliases.get(String(source["entityAliasId"]))?.alias).toBe("Pumps");
  for (const other of [[], {}, { widget: { config: { title: "No type" } } }, { configuration: {} }, { widget: { typeFullFqn: "system.cards.value_card", type: "latest" } }]) {
    expect(() => importWidget(FROM, "one", other)).toThrow("no widget");
  }
});

test("a look is taken over without what is shown", () => {
  const document = set(set(FROM, ["widgets", "a"], widget("A", { backgroundColor: "blue", padding: "4px" })), ["widgets", "b"], { ...widget("B", { backgroundColor: "green", titleColor: "red" }), typeFullFqn: "system.cards.other" });
  const dressed = set(document, ["widgets", "w", "config", "settings"], { valueColor: "black", labelFont: { size: 9 }, layout: "vertical" });
  const next = pasteStyle(dressed, ["w", "b"], copyStyle(dressed, "a"));
  const config = (id: string): Json => object(object(object(next["widgets"])[id])["config"]);
  expect(config("w")).toMatchObject({ title: "Value", backgroundColor: "blue", padding: "4px", settings: { valueColor: "red", layout: "vertical" } });
  expect(config("w")["settings"]).not.toHaveProperty("labelFont");
  // Another type has another inside.
  expect(config("b")).toMatchObject({ title: "B", backgroundColor: "blue", settings: object(object(object(dressed["widgets"])["b"])["config"])["settings"] });
  expect(config("b")).not.toHaveProperty("titleColor");
  // How much is shown is no look, and the colors of ranges are one.
  const table = set(dressed, ["widgets", "a", "config", "settings"], { defaultPageSize: 5, rangeColors: [{ color: "red" }], iconSize: 9 });
  expect(object(object(object(object(pasteStyle(set(table, ["widgets", "w", "config", "settings"], { defaultPageSize: 50, rangeColors: [] }), ["w"], copyStyle(table, "a"))["widgets"])["w"])["config"])["settings"])).toEqual({ defaultPageSize: 50, rangeColors: [{ color: "red" }], iconSize: 9 });
  expect(pasteStyle(dressed, ["w"], "plain text")).toBe(dressed);
  expect(pasteStyle(dressed, ["w"], '{"fieldlineWidgets":[]}')).toBe(dressed);
});
