import { expect, test } from "vitest";
import { list, object, type Json } from "../model";
import { addKey, addSource, aliasSource, changeKey, changeSource, COURSES, keysIn, moved, moveKey, moveSource, nameCourse, nameKey, removeKey, removeSource, retypeSource, sourcesIn } from "./sources";

const KEY: Json = { name: "t", type: "timeseries", label: "t", strange: 1 };
const SOURCE: Json = { type: "entity", entityAliasId: "a", dataKeys: [KEY, { name: "u", type: "attribute" }], strange: { kept: true } };
const WIDGET: Json = { type: "timeseries", strange: 2, config: { strange: 3, datasources: [SOURCE, { type: "device", deviceId: "d", dataKeys: [] }] } };

test("sources are added, moved and removed, and nothing else of the widget changes", () => {
  const more = changeSource(WIDGET, 2, () => ({ type: "function", dataKeys: [] }));
  expect(sourcesIn(more).map(({ type }) => type)).toEqual(["entity", "device", "function"]);
  const other = moveSource(more, 2, 0);
  expect(sourcesIn(other).map(({ type }) => type)).toEqual(["function", "entity", "device"]);
  expect(sourcesIn(removeSource(other, 0))).toEqual(sourcesIn(WIDGET));
  expect(other).toMatchObject({ strange: 2, config: { strange: 3 } });
  expect(sourcesIn(other)[1]).toBe(SOURCE);
  expect(moved([1, 2], 1, 2)).toEqual([1, 2]);
});

test("a source is added behind one that is shown before it is stored", () => {
  const begin = (): Json => ({ type: "entity", dataKeys: [] });
  expect(sourcesIn(addSource({ type: "latest", config: {} }, 1, begin))).toEqual([begin(), begin()]);
  expect(sourcesIn(addSource(WIDGET, 2, begin))).toEqual([...sourcesIn(WIDGET), begin()]);
  expect(sourcesIn(addSource({ type: "latest", config: {} }, 0, begin))).toEqual([begin()]);
});

test("keys are added, changed, moved and removed in either list", () => {
  const renamed = changeKey(SOURCE, "dataKeys", 0, (key) => nameKey(key, "temperature"));
  expect(keysIn(renamed, "dataKeys")[0]).toEqual({ name: "temperature", type: "timeseries", label: "temperature", strange: 1 });
  expect(nameKey({ name: "t", label: "Own" }, "u")["label"]).toBe("Own");
  expect(keysIn(moveKey(SOURCE, "dataKeys", 1, 0), "dataKeys").map(({ name }) => name)).toEqual(["u", "t"]);
  const beside = addKey(SOURCE, "latestDataKeys", { name: "v" });
  expect(keysIn(beside, "latestDataKeys")).toEqual([{ name: "v" }]);
  expect(keysIn(removeKey(beside, "latestDataKeys", 0), "latestDataKeys")).toEqual([]);
  expect(beside["strange"]).toEqual({ kept: true });
  expect(changeKey(SOURCE, "dataKeys", 7, () => ({}))).toBe(SOURCE);
});

test("alarms have one source, and controls a target that older files name otherwise", () => {
  const alarms: Json = { type: "alarm", config: { alarmSource: SOURCE, datasources: [{ old: true }] } };
  expect(object(object(changeSource(alarms, 0, (before) => ({ ...before, filterId: "f" }))["config"])["alarmSource"])).toEqual({ ...SOURCE, filterId: "f" });
  expect(list(object(changeSource(alarms, 0, () => ({}))["config"])["datasources"])).toEqual([{ old: true }]);
  const control: Json = { type: "rpc", config: { targetDeviceAliasIds: ["a"], title: "Pump" } };
  expect(sourcesIn(control)).toEqual([{ type: "entity", entityAliasId: "a" }]);
  expect(changeSource(control, 0, (target) => ({ ...target, type: "device", deviceId: "d" }))["config"]).toEqual({ title: "Pump", targetDevice: { type: "device", entityAliasId: "a", deviceId: "d" } });
});

test("a source that becomes another kind has keys that fit it", () => {
  expect(retypeSource(SOURCE, "device")).toEqual({ ...SOURCE, type: "device" });
  const made = retypeSource(SOURCE, "function");
  expect(keysIn(made, "dataKeys")).toMatchObject([{ name: "Sin", type: "function", funcBody: COURSES["Sin"] }]);
  expect(made).toMatchObject({ entityAliasId: "a", strange: { kept: true } });
  expect(retypeSource(SOURCE, "alarmCount")).toMatchObject({ dataKeys: [{ type: "count" }], alarmFilterConfig: { statusList: ["ACTIVE"] } });
  const counted = retypeSource({ type: "entityCount", dataKeys: [{ type: "count", name: "count", label: "Pumps" }] }, "alarmCount");
  expect(keysIn(counted, "dataKeys")[0]).toMatchObject({ label: "Pumps" });
  expect(keysIn(retypeSource(made, "entity"), "dataKeys")).toEqual([]);
});

test("a course brings its function along, unless somebody has written one", () => {
  expect(nameCourse({ name: "Sin", label: "Sin", funcBody: COURSES["Sin"] }, "Random")).toMatchObject({ name: "Random", label: "Random", funcBody: COURSES["Random"] });
  expect(nameCourse({ name: "Sin", funcBody: "return 1;" }, "Random")["funcBody"]).toBe("return 1;");
  expect(nameCourse({ name: "Sin", funcBody: { body: "return 1;", modules: {} } }, "Cos")["funcBody"]).toEqual({ body: "return 1;", modules: {} });
  expect(nameCourse({ name: "" }, "own")).toEqual({ name: "own", label: "own" });
});

test("what old files call an alias doesn't come back", () => {
  expect(aliasSource({ type: "entityCount", deviceAliasId: "old" }, "new")).toEqual({ type: "entityCount", entityAliasId: "new" });
  expect(aliasSource({ deviceAliasId: "old" }, undefined)).toEqual({ type: "entity", entityAliasId: undefined });
});
