import { expect, test } from "vitest";
import { object } from "@/dashboard/json";
import { readSymbol } from "@/widgets/symbol/symbol";
import { completeBehavior, problemOf, readFile, tagCode, tagsIn, withTagCode, writeFile } from "./symbolFile";

const DRAWING = `<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 200" data-note="a > b"><rect tb:tag="body"/><g tb:tag='body'/><text tb:tag="level"/></svg>`;

test("a drawing without metadata begins with some, and gets them as its first part", () => {
  const file = readFile(DRAWING);
  expect(file.metadata).toEqual({ title: "", widgetSizeX: 4, widgetSizeY: 2, tags: [], behavior: [], properties: [] });
  expect(tagsIn(file.drawing)).toEqual(["body", "level"]);
  const written = writeFile({ ...file, metadata: { ...file.metadata, title: "Pump" } });
  expect(written).toMatch(/^<\?xml version="1\.0"\?>\n<svg xmlns:tb="https:\/\/thingsboard\.io\/svg" [^\n]*data-note="a > b"><tb:metadata xmlns=""><!\[CDATA\[\{/);
  // What is read again and written again stays what it is.
  expect(writeFile(readFile(written))).toBe(written);
  expect(readSymbol(written, {})?.title).toBe("Pump");
});

test("no code can end the section that it stands in", () => {
  const code = "if (a[b[0]]>1) { element.text('$& <tb:metadata> </tb:metadata>'); }";
  const written = writeFile({ drawing: DRAWING, metadata: withTagCode({ title: "x" }, "body", { render: code }) });
  expect(written.split("]]>")).toHaveLength(2);
  expect(JSON.parse(/CDATA\[([\s\S]*)\]\]>/.exec(written)?.[1] ?? "")).toMatchObject({ tags: [{ stateRenderFunction: code }] });
});

test("files that are no drawings are refused", () => {
  expect(() => readFile("<html></html>")).toThrow();
  expect(() => writeFile({ drawing: "", metadata: {} })).toThrow();
});

test("code of tags is changed alone", () => {
  const before = { title: "x", tags: [{ tag: "a", note: 1, stateRenderFunction: "one", actions: { click: { actionFunction: "two", more: 2 }, dblclick: { actionFunction: "three" } } }] };
  expect(tagCode(before, "a")).toEqual({ render: "one", click: "two" });
  expect(tagCode(before, "b")).toEqual({ render: "", click: "" });
  expect(withTagCode(before, "a", { click: "" })).toEqual({ title: "x", tags: [{ tag: "a", note: 1, stateRenderFunction: "one", actions: { dblclick: { actionFunction: "three" } } }] });
  expect(withTagCode(before, "a", { render: "", click: "new" })["tags"]).toEqual([{ tag: "a", note: 1, actions: { click: { actionFunction: "new", more: 2 }, dblclick: { actionFunction: "three" } } }]);
  expect(withTagCode(before, "b", { render: "r" })["tags"]).toHaveLength(2);
});

test("behaviors are completed as ThingsBoard has them", () => {
  const value = completeBehavior({ id: "run", name: "Run", type: "value", valueType: "BOOLEAN", hint: "", defaultSetValueSettings: {}, defaultGetValueSettings: { action: "GET_ATTRIBUTE", getAttribute: { key: "on" } } });
  expect(value).toMatchObject({ id: "run", defaultGetValueSettings: { action: "GET_ATTRIBUTE", defaultValue: false, getAttribute: { key: "on", scope: null }, dataToValue: { type: "NONE", compareToValue: true } } });
  expect(Object.keys(value)).not.toContain("hint");
  expect(Object.keys(value)).not.toContain("defaultSetValueSettings");
  expect(object(completeBehavior({ id: "a", type: "action", valueType: "DOUBLE" })["defaultSetValueSettings"])["valueToData"]).toMatchObject({ type: "VALUE" });
  expect(completeBehavior({ id: "w", type: "widgetAction", valueType: "STRING" })).toMatchObject({ type: "widgetAction", defaultWidgetActionSettings: { type: "doNothing" } });
});

test("what can't be saved is told", () => {
  expect(problemOf({ title: "a", behavior: [{ id: "x" }], properties: [{ id: "x" }] })).toBeUndefined();
  expect(problemOf({ behavior: [] })).toContain("title");
  expect(problemOf({ title: "a", behavior: [{ id: "x" }, { id: "x" }] })).toContain("same id");
  expect(problemOf({ title: "a", properties: [{ name: "x" }] })).toContain("needs an id");
});
