import { expect, test } from "vitest";
import { WIDGET_KINDS, type WidgetKind } from "./catalog";
import { drawnAs, fittingKinds } from "./drawnAs";
import { formOfType } from "./typeForm";
import { FURTHER_KINDS } from "./furtherKinds";

const ALL = [...WIDGET_KINDS, ...FURTHER_KINDS];
const kind = (fqn: string): WidgetKind => {
  const found = ALL.find((one) => one.fqn === fqn);
  if (found === undefined) {
    throw new Error(fqn);
  }
  return found;
};
const widget = (type: string, keys: object[], source: object = { type: "entity", entityAliasId: "a" }) => ({ typeFullFqn: "system.x", type, strange: 1, config: { settings: { own: 1 }, datasources: [{ ...source, dataKeys: keys }] } });

test("only kinds that fit the data are offered", () => {
  const types = (type: string, keys: object[], source?: object): string[] => [...new Set(fittingKinds(ALL, widget(type, keys, source)).map((one) => one.type))];
  expect(types("latest", [{ name: "t", type: "timeseries" }])).toEqual(["latest", "timeseries"]);
  expect(types("latest", [{ name: "t", type: "attribute" }]), "an attribute has no course").toEqual(["latest"]);
  expect(types("latest", [{ name: "count", type: "count" }], { type: "entityCount" })).toEqual(["latest"]);
  expect(types("rpc", [])).toEqual(["rpc"]);
  expect(types("alarm", [])).toEqual(["alarm"]);
  expect(types("static", [])).toEqual(["static"]);
});

test("another kind keeps what is set, and has what it needs", () => {
  const next = drawnAs(widget("latest", [{ name: "t", type: "timeseries" }]), kind("system.digital_gauges.gauge_justgage"));
  expect(next).toMatchObject({ strange: 1, typeFullFqn: "system.digital_gauges.gauge_justgage", config: { settings: { own: 1, maxValue: 100 }, datasources: [{ type: "entity", dataKeys: [{ name: "t" }] }] } });
  expect(drawnAs(widget("latest", [{ name: "t", type: "timeseries" }]), kind("system.entity_count"))).toMatchObject({ config: { datasources: [{ type: "entityCount", entityAliasId: "a", dataKeys: [{ type: "count" }] }] } });
});

test("a tenant's type has the form that it declares", () => {
  const form = formOfType({ settingsForm: [{ id: "speed", name: "Speed", type: "number" }], dataKeySettingsForm: [{ id: "bold", name: "Bold", type: "switch", default: true }] });
  expect(form).toMatchObject({ settings: [{ name: "speed", type: "number" }], keys: [{ name: "bold", type: "boolean" }], newKey: { settings: { bold: true } } });
  expect(formOfType({})).toBeUndefined();
});
