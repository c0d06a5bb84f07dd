import { expect, test } from "vitest";
import { behaviorParts, propertyBeginnings, propertyFields, withBehavior, withProperties } from "./symbolForm";

const METADATA = {
  behavior: [
    { id: "run", name: "{i18n:scada.symbol.running}", type: "value", valueType: "BOOLEAN", defaultGetValueSettings: { action: "GET_ATTRIBUTE", getAttribute: { key: "run", scope: null }, own: 1 } },
    { id: "press", name: "Press", type: "widgetAction", defaultWidgetActionSettings: { type: "doNothing" } },
    { name: "without an id", type: "value" },
  ],
  properties: [
    { id: "show", name: "Show", type: "switch", default: true },
    { id: "font", name: "Label", subLabel: "Font", type: "font", group: "Look", disableOnProperty: "show", default: { size: 12 } },
    { id: "mode", name: "Mode", type: "select", group: "Look", default: 1, items: [{ value: 1, label: "One" }] },
    { id: "part", name: "Part", type: "fieldset", properties: [{ id: "color", name: "Color", type: "color", default: "#000" }] },
    { id: "note", type: "htmlSection" },
  ],
};

test("behaviours are told by what the symbol begins with", () => {
  const parts = behaviorParts(METADATA);
  expect(parts.map(({ id, title }) => [id, title])).toEqual([["run", "Running"], ["press", "Press"]]);
  const [run] = parts;
  if (run === undefined) {
    throw new Error("no behaviour");
  }
  const settings = { scadaSymbolUrl: "x", scadaSymbolObjectSettings: { own: 2, behavior: { other: 1 } } };
  const changed = withBehavior(settings, run, (before) => ({ own: { ...(before["own"] as object), action: "DO_NOTHING" } }));
  expect(changed).toEqual({ scadaSymbolUrl: "x", scadaSymbolObjectSettings: { own: 2, behavior: { other: 1, run: { action: "DO_NOTHING", getAttribute: { key: "run", scope: null }, own: 1 } } } });
});

test("properties have a field each, below the heading of their group", () => {
  const fields = propertyFields(METADATA.properties);
  expect(fields.filter(({ type }) => type === "heading").map(({ label }) => label)).toEqual(["Look", "Label: Font", "Part"]);
  expect(fields.map(({ name }) => name)).toEqual(expect.arrayContaining(["show", "font.size", "mode", "part.color"]));
  const size = fields.find(({ name }) => name === "font.size");
  expect([size?.when?.({ show: true }), size?.when?.({ show: false })]).toEqual([true, false]);
  expect(fields.find(({ name }) => name === "mode")?.choicesOf?.({})).toEqual([{ value: 1, label: "One" }]);
  const begin = propertyBeginnings(METADATA.properties);
  expect(begin).toEqual({ show: true, font: { size: 12 }, mode: 1, part: { color: "#000" } });
  expect(withProperties({ scadaSymbolObjectSettings: { properties: { mode: 2, gone: 3 } } }, begin, (before) => ({ ...before, show: false }))).toEqual({
    scadaSymbolObjectSettings: { properties: { show: false, font: { size: 12 }, mode: 2, part: { color: "#000" }, gone: 3 } },
  });
});

test("lists begin with what they say of their whole, groups with what their parts say", () => {
  const color = { id: "color", type: "color", default: "#000" };
  expect(
    propertyBeginnings([
      { id: "names", type: "array", arrayItemType: "text", default: ["a", "b"] },
      { id: "lines", type: "array", arrayItemType: "fieldset", properties: [color], default: [{ color: "#fff" }] },
      { id: "none", type: "array", default: null },
      { id: "look", type: "fieldset", properties: [color, { id: "size", type: "number", default: 1 }], default: { size: 2, more: true } },
    ]),
  ).toEqual({ names: ["a", "b"], lines: [{ color: "#fff" }], none: [], look: { color: "#000", size: 1 } });
});
