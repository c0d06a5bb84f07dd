import { expect, test } from "vitest";
import { readDashboard } from "@/dashboard/model";
import { merged, readSymbol } from "./symbol";

const METADATA = {
  title: "Pump",
  stateRenderFunction: "svg.opacity(1);",
  tags: [{ tag: "body", stateRenderFunction: "element.fill('red');", actions: { click: { actionFunction: "ctx.api.callAction(event, 'toggle');" } } }, {}],
  behavior: [
    { id: "running", name: "Running", type: "value", valueType: "BOOLEAN", defaultGetValueSettings: { action: "GET_ATTRIBUTE", getAttribute: { key: "running", scope: null } } },
    { id: "toggle", name: "Toggle", type: "action", valueType: "BOOLEAN" },
    { id: "odd", type: "unheard" },
  ],
  properties: [
    { id: "color", type: "color", default: "#00ff00" },
    { id: "label", type: "text", default: "${entityName}" },
    { id: "look", type: "fieldset", properties: [{ id: "size", type: "number", default: 3 }] },
    { id: "hint", type: "htmlSection" },
  ],
};
const DRAWING = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><tb:metadata xmlns=""><![CDATA[${JSON.stringify(METADATA)}]]></tb:metadata><rect tb:tag="body"/></svg>`;

test("a symbol is its drawing, and what it says about itself under what is stored", () => {
  const symbol = readSymbol(DRAWING, { behavior: { running: { getAttribute: { key: "on" } } }, properties: { look: { size: 5 } } }, () => "Pump 1");
  expect(symbol?.drawing).toBe('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><rect tb:tag="body"/></svg>');
  expect(symbol?.tags).toEqual([{ tag: "body", render: "element.fill('red');", actions: { click: "ctx.api.callAction(event, 'toggle');" } }]);
  expect(symbol?.behaviors.map(({ id, settings }) => [id, settings])).toEqual([
    ["running", { action: "GET_ATTRIBUTE", getAttribute: { key: "on", scope: null } }],
    ["toggle", {}],
  ]);
  expect(symbol?.properties).toEqual({ color: { type: "color", value: "#00ff00" }, label: { type: "text", value: "Pump 1" }, look: { type: "fieldset", value: { size: { type: "number", value: 5 } } } });
});

test("properties begin with their own default, whatever their group says of its whole, and what is stored lies over it", () => {
  const size = { id: "size", type: "number", default: 1 };
  const properties = [
    { id: "look", type: "fieldset", default: { size: 2, deep: { on: true } }, properties: [size, { id: "weight", type: "number", default: 4 }, { id: "deep", type: "fieldset", properties: [{ id: "on", type: "switch" }, size] }] },
    { id: "lines", type: "array", arrayItemType: "fieldset", default: [{ size: 7 }, {}], properties: [size] },
    { id: "emptied", type: "number", default: 5 },
    { id: "tint", type: "color_settings" },
  ];
  const drawing = `<svg><tb:metadata><![CDATA[${JSON.stringify({ properties })}]]></tb:metadata></svg>`;
  const plain = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(plain)
      : typeof value === "object" && value !== null
        ? "type" in value && "value" in value
          ? plain(value.value)
          : Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]))
        : value;
  const read = (stored: object): unknown => plain(readSymbol(drawing, { properties: stored })?.properties);
  expect(read({})).toEqual({ look: { size: 1, weight: 4, deep: { on: false, size: 1 } }, lines: [{ size: 7 }, { size: 1 }], emptied: 5, tint: { type: "constant", color: "#000" } });
  expect(read({ look: { size: 3, deep: { size: 9 } }, lines: [], emptied: null })).toMatchObject({ look: { size: 3, weight: 4, deep: { on: false, size: 9 } }, lines: [], emptied: 0 });
});

test("a drawing without metadata is one that never changes, and other files are none", () => {
  expect(readSymbol("<svg><g/></svg>", {})).toMatchObject({ drawing: "<svg><g/></svg>", tags: [], behaviors: [], properties: {} });
  expect(readSymbol("<html>no</html>", {})).toBeUndefined();
  expect(readSymbol('<svg><tb:metadata><![CDATA[{"broken]]></tb:metadata></svg>', {})?.tags).toEqual([]);
});

test("what is stored lies over what a symbol begins with", () => {
  expect(merged({ a: { b: 1, c: [1] } }, { a: { c: [2] }, d: 4 })).toEqual({ a: { b: 1, c: [2] }, d: 4 });
  expect(merged({ a: 1 }, null)).toEqual({ a: 1 });
});

test("types that were made of drawings are drawn as symbols, and their clicks are actions", () => {
  const settings = { scadaSymbolUrl: "tb-image;/api/images/tenant/pump.svg", scadaSymbolObjectSettings: { behavior: { open: { type: "openDashboardState", targetDashboardStateId: "x" }, toggle: { action: "EXECUTE_RPC" } } } };
  const widget = readDashboard({ widgets: { w: { typeFullFqn: "system.left_motor_pump", type: "rpc", config: { settings } } } }).widgets.get("w");
  expect(widget?.fqn).toBe("system.scada_symbol");
  expect(widget?.config["actions"]).toEqual({ "symbol open": [{ name: "open", type: "openDashboardState", targetDashboardStateId: "x" }] });
});
