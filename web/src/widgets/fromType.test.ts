import { expect, test } from "vitest";
import { onPlant, widgetOfSymbol, widgetOfType } from "./fromType";

const type = (descriptor: object, isSystem = true) => ({ fqn: "cards.some", name: "Some card", isSystem, descriptor: { type: "latest", sizeX: 5, sizeY: 3, ...descriptor } });

test("a widget begins with its type's own configuration, and without its invented values", () => {
  const defaultConfig = JSON.stringify({
    title: "Level",
    showTitle: false,
    settings: { shape: "tank" },
    units: "%",
    datasources: [{ type: "function", name: "function", dataKeys: [{ name: "f(x)", type: "function", funcBody: "return 1;" }] }, { type: "function" }],
    actions: { elementClick: [{ name: "more" }] },
  });
  expect(widgetOfType(type({ defaultConfig }))).toEqual({
    size: { sizeX: 5, sizeY: 3 },
    widget: {
      typeFullFqn: "system.cards.some",
      type: "latest",
      sizeX: 5,
      sizeY: 3,
      config: { title: "Level", showTitle: false, settings: { shape: "tank" }, units: "%", datasources: [{ type: "entity", name: "", dataKeys: [] }], actions: { elementClick: [{ name: "more" }] } },
    },
  });
});

test("keys that a type names itself stay, and so does the scope of who owns it", () => {
  const keys = [{ name: "level", type: "timeseries", label: "Level" }];
  const { widget } = widgetOfType(type({ defaultConfig: { datasources: [{ type: "entity", dataKeys: keys }] } }, false));
  expect(widget).toMatchObject({ typeFullFqn: "tenant.cards.some", config: { title: "Some card", datasources: [{ type: "entity", dataKeys: keys }] } });
});

test("controls have a target, and alarms a source and a filter", () => {
  expect(widgetOfType(type({ type: "rpc", defaultConfig: '{"targetDeviceAliasIds":["a"]}' })).widget["config"]).toMatchObject({ datasources: [], targetDevice: { type: "entity", entityAliasId: "a" } });
  expect(widgetOfType(type({ type: "rpc", defaultConfig: '{"targetDevice":{"type":"device"}}' })).widget["config"]).toMatchObject({ targetDevice: { type: "entity" } });
  const alarms = widgetOfType(type({ type: "alarm", defaultConfig: JSON.stringify({ alarmSearchStatus: "ACTIVE", alarmSource: { type: "function", dataKeys: [{ name: "severity", type: "function", funcBody: "x" }] } }) }));
  expect(alarms.widget["config"]).toMatchObject({
    alarmSource: { type: "entity", dataKeys: [{ name: "severity", type: "alarm", funcBody: null }] },
    alarmFilterConfig: { statusList: ["ACTIVE"], searchPropagatedAlarms: true },
  });
  expect(widgetOfType(type({ type: "alarm" })).widget["config"]).toMatchObject({ alarmSource: { type: "entity", dataKeys: [] }, alarmFilterConfig: { statusList: [] } });
});

test("what can't be read is left out, and sizes are whole cells", () => {
  expect(widgetOfType(type({ sizeX: 2.5, sizeY: 0, defaultConfig: "{broken" }))).toMatchObject({ size: { sizeX: 2, sizeY: 1 }, widget: { config: { title: "Some card", settings: {} } } });
  expect(widgetOfType({ fqn: "x", name: "X", isSystem: false, descriptor: {} })).toMatchObject({ size: { sizeX: 8, sizeY: 6 }, widget: { type: "latest" } });
});

test("a symbol is placed by its link, as large as it says", () => {
  const made = widgetOfSymbol({ title: "pump.svg", link: "/api/images/tenant/pump.svg" }, { title: "Pump", widgetSizeX: 2, widgetSizeY: 4 });
  expect(made).toMatchObject({ size: { sizeX: 2, sizeY: 4 }, widget: { typeFullFqn: "system.scada_symbol", type: "rpc", config: { title: "Pump", settings: { scadaSymbolUrl: "tb-image;/api/images/tenant/pump.svg" } } } });
  expect(onPlant(made, true).widget["config"]).toMatchObject({ preserveAspectRatio: true, margin: "0", settings: { scadaSymbolUrl: "tb-image;/api/images/tenant/pump.svg", background: { type: "color" } } });
});
