import { expect, test } from "vitest";
import { automaticDashboard, groupDashboard, type Group } from "./automatic";
import { chartGroups, coordinatesIn, kindOf, lookOf, type KnownKey } from "./automatic/keys";
import { actionsOf } from "./actions";
import { arrange } from "./layout";
import { readDashboard, type Dashboard } from "./model";
import { requestOf } from "./source";

const key = (name: string, sample: unknown, scope?: KnownKey["scope"], count = 1): KnownKey => ({ name, sample, count, ...(scope === undefined ? {} : { scope }) });
const DEVICE = { entityType: "DEVICE", id: "7" };
const MAY = { mayWrite: true };
const kinds = (dashboard: Dashboard, state = 0): string[] => (dashboard.states[state]?.main.places ?? []).map(({ id }) => dashboard.widgets.get(id)?.fqn.replace("system.", "") ?? "");
const of = (dashboard: Dashboard, fqn: string) => [...dashboard.widgets.values()].filter((widget) => widget.fqn === `system.${fqn}`);

function expectTidy(dashboard: Dashboard): void {
  for (const state of dashboard.states) {
    for (const width of [1_210, 400]) {
      const { rects } = arrange(state.main, width, 800);
      const overlaps = rects.flatMap((a, n) => rects.slice(n + 1).filter((b) => a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height));
      expect(overlaps, `${state.id} at ${width}`).toEqual([]);
      expect(rects.every(({ left, width: own, height }) => left >= 0 && left + own <= width && height > 60 && height < 700)).toBe(true);
    }
  }
}

test("each key of a device is shown as what it is, and nothing overlaps", () => {
  const keys = [
    key("temperature", 21.5), key("supplyTemperature", 40), key("humidity", 55), key("rotations", 1_450), key("door", "open"), key("running", true),
    key("trace", "x".repeat(200)), key("latitude", 48.1), key("longitude", 11.5),
    key("light", false, "SHARED_SCOPE"), key("limit", 80, "SHARED_SCOPE"), key("serial", "A1", "CLIENT_SCOPE"), key("active", true, "SERVER_SCOPE"),
  ];
  const dashboard = readDashboard(automaticDashboard(DEVICE, keys, MAY));
  expectTidy(dashboard);
  const titled = (fqn: string): string[] => of(dashboard, fqn).map(({ title }) => title);
  expect(titled("single_switch")).toEqual(["light"]);
  expect(titled("cards.value_card")).toEqual(["rotations", "supplyTemperature", "temperature", "limit", "door"]);
  expect(titled("digital_gauges.gauge_justgage")).toEqual(["humidity"]);
  expect(titled("status_widget")).toEqual(["running"]);
  expect(titled("time_series_chart").sort()).toEqual(["humidity", "rotations", "supplyTemperature, temperature"]);
  expect(of(dashboard, "cards.attributes_card").map(({ datasources }) => datasources[0]?.dataKeys.map(({ name }) => name))).toEqual([["trace"], ["serial"]]);
  expect(of(dashboard, "map")[0]?.datasources[0]?.dataKeys.map(({ name, type }) => `${type} ${name}`)).toEqual(["timeseries latitude", "timeseries longitude"]);
  expect(of(dashboard, "alarm_widgets.alarms_table")).toHaveLength(1);
  const temperature = of(dashboard, "cards.value_card").find(({ title }) => title === "temperature");
  expect(temperature?.datasources[0]?.dataKeys[0]).toMatchObject({ units: "°C", decimals: 1 });
  expect(of(dashboard, "single_switch")[0]?.settings).toMatchObject({ initialState: { getAttribute: { key: "light", scope: "SHARED_SCOPE" } }, onUpdateState: { action: "SET_ATTRIBUTE", setAttribute: { key: "light", scope: "SHARED_SCOPE" } } });
});

test("an attribute in several scopes is one line of a list and one column; its shared one is what is switched", () => {
  const scopes = [key("mode", "auto", "CLIENT_SCOPE"), key("mode", "auto", "SERVER_SCOPE"), key("light", true, "CLIENT_SCOPE"), key("light", true, "SHARED_SCOPE"), key("limit", 8, "SERVER_SCOPE"), key("limit", 8, "SHARED_SCOPE")];
  const listed = (dashboard: Dashboard): unknown => of(dashboard, "cards.attributes_card").map(({ datasources }) => datasources[0]?.dataKeys.map(({ name }) => name));
  const device = readDashboard(automaticDashboard(DEVICE, scopes, MAY));
  expect(listed(device)).toEqual([["light", "mode"]]);
  expect(of(device, "single_switch").map(({ title }) => title)).toEqual(["light"]);
  expect(of(device, "cards.value_card").map(({ title }) => title)).toEqual(["limit"]);
  expect(listed(readDashboard(automaticDashboard(DEVICE, scopes, { mayWrite: false })))).toEqual([["light", "mode"]]);
  const [table] = of(readDashboard(groupDashboard({ ...GROUP, keys: scopes }, MAY)), "cards.entities_table");
  expect(table?.datasources[0]?.dataKeys.map(({ name }) => name)).toEqual(["active", "light", "limit", "mode"]);
  const placed = readDashboard(automaticDashboard(DEVICE, [key("latitude", 1, "SERVER_SCOPE"), key("longitude", 2, "SERVER_SCOPE"), key("latitude", 1, "CLIENT_SCOPE")], MAY));
  expect(listed(placed), "what is on the map").toEqual([]);
});

test("who may not write attributes gets no switches, but sees them", () => {
  const dashboard = readDashboard(automaticDashboard(DEVICE, [key("light", true, "SHARED_SCOPE")], { mayWrite: false }));
  expect(kinds(dashboard)).toEqual(["cards.attributes_card", "alarm_widgets.alarms_table"]);
});

test("a thousand keys make a page that a person can read", () => {
  const keys = Array.from({ length: 1_000 }, (_, n) => key(`k${n}`, n % 2 === 0 ? n : `text ${n}`, n % 5 === 0 ? "SHARED_SCOPE" : undefined));
  const dashboard = readDashboard(automaticDashboard(DEVICE, keys, MAY));
  expectTidy(dashboard);
  expect(dashboard.widgets.size).toBeLessThan(110);
});

const GROUP: Group = {
  name: "Pumps",
  filter: { type: "deviceType", deviceTypes: ["Pumps"] },
  entityType: "DEVICE",
  keys: [key("pressure", 3, undefined, 37), key("rare", 1, undefined, 1), key("mode", "auto", undefined, 20), key("latitude", 48, "SERVER_SCOPE", 30), key("longitude", 11, "SERVER_SCOPE", 30)],
  first: Array.from({ length: 10 }, (_, n) => `d${n}`),
  total: 37,
};

test("a group has counts, a table whose rows open one of it, the course of the first ones, a map and alarms", () => {
  const dashboard = readDashboard(groupDashboard(GROUP, MAY));
  expectTidy(dashboard);
  expect(kinds(dashboard)).toEqual(["entity_count", "entity_count", "alarm_count", "cards.entities_table", "map", "time_series_chart", "time_series_chart", "alarm_widgets.alarms_table"]);
  const [table] = of(dashboard, "cards.entities_table");
  expect(table?.datasources[0]?.dataKeys.map(({ name }) => name)).toEqual(["active", "pressure", "mode", "rare"]);
  expect(actionsOf(table?.config ?? {}, "rowClick")[0]).toMatchObject({ type: "openDashboardState", stateId: "entity", setEntity: true });
  const [chart] = of(dashboard, "time_series_chart");
  expect(chart?.title).toBe("pressure: the first 10 by name");
  expect([...dashboard.aliases.values()].find(({ id }) => id === chart?.datasources[0]?.aliasId)).toMatchObject({ alias: "The first 10 by name", filter: { type: "entityList", entityList: GROUP.first } });
  const online = of(dashboard, "entity_count")[1]?.datasources[0];
  const request = online === undefined ? undefined : requestOf(online, dashboard, {}, undefined);
  expect(request).toMatchObject({ filter: { deviceTypes: ["Pumps"] }, keyFilters: [{ key: { key: "active" }, predicate: { operation: "EQUAL", value: { defaultValue: true } } }] });
  // The opened one is drawn as its own automatic dashboard would be.
  const opened = dashboard.states[1];
  expect(opened).toMatchObject({ id: "entity", name: "${entityName}" });
  const card = dashboard.widgets.get(opened?.main.places[0]?.id ?? "");
  const source = card?.datasources[0];
  expect(source === undefined ? undefined : requestOf(source, dashboard, { entityId: { entityType: "DEVICE", id: "d3" } }, undefined)?.filter).toEqual({ type: "singleEntity", singleEntity: { entityType: "DEVICE", id: "d3" } });
});

test("assets have no connection to count, and what belongs to one is shown below its own values", () => {
  const assets = readDashboard(groupDashboard({ ...GROUP, entityType: "ASSET", filter: { type: "assetType", assetTypes: ["Pumps"] } }, MAY));
  expect(kinds(assets).filter((fqn) => fqn === "entity_count")).toHaveLength(1);
  expect(assets.filters.size).toBe(0);
  const house = readDashboard(automaticDashboard({ entityType: "ASSET", id: "1" }, [key("area", 120, "SERVER_SCOPE")], MAY, GROUP));
  expect(kinds(house).slice(0, 3)).toEqual(["cards.attributes_card", "alarm_widgets.alarms_table", "entity_count"]);
  expect(house.states.map(({ id }) => id)).toEqual(["default", "entity"]);
  expectTidy(house);
});

test("units come from names that leave no doubt", () => {
  const units = (name: string, sample: unknown = 20): string | undefined => lookOf({ name, sample }).units;
  expect(["temperature", "supplyTemp", "humidity", "battery_voltage", "rssi", "power_kw", "tempF", "co2"].map((name) => units(name))).toEqual(["°C", "°C", "%", "V", "dBm", "kW", "°F", "ppm"]);
  expect(["pressure", "power", "temperatureCount", "currentSpeed", "bar", "phaseA"].map((name) => units(name))).toEqual(Array.from({ length: 6 }, () => undefined));
  expect(units("battery", 3_700)).toBeUndefined();
  expect(lookOf({ name: "leak", sample: 0.0004 }).decimals).toBe(5);
  expect([1, "1.5", " ", "", "true", false, "on", { a: 1 }].map((sample) => kindOf({ name: "x", sample, count: 1 }))).toEqual(["number", "number", "text", "text", "boolean", "boolean", "text", "text"]);
});

test("a chart has what one scale can show, and six lines at most", () => {
  const names = (keys: KnownKey[]): string[] => chartGroups(keys).map((group) => group.map(({ name }) => name).join(" "));
  expect(names([key("small", 2), key("big", 90_000), key("temperature", 20), key("middling", 30), key("tempOut", -3)])).toEqual(["temperature tempOut", "small middling", "big"]);
  expect(chartGroups(Array.from({ length: 14 }, (_, n) => key(`temp${n}`, n))).map((group) => group.length)).toEqual([6, 6, 2]);
});

test("a place is a pair of numbers, of telemetry first; places on a picture are none", () => {
  const place = coordinatesIn([key("latitude", 1, "SERVER_SCOPE"), key("longitude", 2, "SERVER_SCOPE"), key("lat", 3), key("lon", 4)]);
  expect([place?.x.name, place?.y.name]).toEqual(["lat", "lon"]);
  expect(coordinatesIn([key("xPos", 0.5), key("yPos", 0.5)])).toBeUndefined();
  expect(coordinatesIn([key("latitude", 1), key("longitude", "east")])).toBeUndefined();
});
