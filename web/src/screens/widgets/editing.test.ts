import { expect, test } from "vitest";
import { bundleFile } from "./bundle";
import { moved } from "./BundleTab";
import { copyOf, partText, PARTS, withTexts } from "./editing";
import { invented } from "./Preview";

const part = (key: string): (typeof PARTS)[number] => PARTS.find((one) => one.key === key) ?? PARTS[0]!;

test("what is typed goes into the descriptor in the form that is stored, and the rest stays", () => {
  const descriptor = { type: "latest", sizeX: 5, templateHtml: "<b></b>", defaultConfig: '{"a":1}', resources: [{ url: "x" }] };
  expect(partText(descriptor, part("defaultConfig"))).toBe('{\n  "a": 1\n}');
  expect(partText(descriptor, part("settingsForm"))).toBe("[]");
  expect(withTexts(descriptor, { templateHtml: "<i></i>", defaultConfig: '{ "a": 2 }', settingsForm: '[{"id":"x"}]' })).toEqual({
    ...descriptor, templateHtml: "<i></i>", defaultConfig: '{"a":2}', settingsForm: [{ id: "x" }],
  });
  expect(() => withTexts(descriptor, { settingsForm: "{" })).toThrow("Settings form");
});

test("a copy has nothing that names the original", () => {
  expect(copyOf({ id: {}, fqn: "a", version: 3, name: "A", descriptor: { x: 1 } }, "B")).toEqual({ name: "B", descriptor: { x: 1 } });
});

test("invented values are numbers in the order of their times", () => {
  const course = invented(1_000_000, 0);
  expect(course.at(-1)?.ts).toBe(1_000_000);
  expect(course.every(({ value }) => Number.isFinite(Number(value)))).toBe(true);
});

test("a bundle's file has our own types whole, and those of the installation by name; order changes by steps", () => {
  const bundle = { id: { entityType: "WIDGETS_BUNDLE", id: "b" }, createdTime: 1, version: 2, tenantId: { id: "t" }, title: "Mine" };
  const types = [{ id: {}, fqn: "own", name: "Own", system: false }, { id: {}, fqn: "cards.theirs", name: "Theirs", system: true }];
  const file = bundleFile(bundle, types, (one) => one["system"] === true);
  expect(file).toEqual({ widgetsBundle: { title: "Mine" }, widgetTypes: [{ fqn: "own", name: "Own", system: false }], widgetTypeFqns: ["system.cards.theirs"] });
  expect(moved(["a", "b", "c"], 2, -1)).toEqual(["a", "c", "b"]);
  expect(moved(["a", "b"], 0, -1)).toEqual(["a", "b"]);
});
