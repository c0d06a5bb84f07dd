import { expect, test } from "vitest";
import { namedIcons, pathOf } from "../../scripts/iconPacks.mjs";
import { isMissing, partOf } from "./drawings";
import { ICON_NAMES } from "./names";

test("an icon becomes one path, whatever shapes it is made of", () => {
  expect(pathOf('<path fill="currentColor" d="M1 1h2"/>')).toBe("M1 1h2");
  expect(pathOf('<path d="M1 1h2"/><path d="m3 4 5 6z"/><circle cx="12" cy="4" r="2"/>')).toBe("M1 1h2M3 4l 5 6zM10 4a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z");
  expect(pathOf('<path fill-rule="evenodd" d="M0 0"/><path fill-opacity=".3" d="M9 9"/>')).toBe("EM0 0");
  expect(pathOf('<g transform="scale(2)"><path d="M0 0"/></g>')).toBeUndefined();
});

test("names that are proposed, and those that dashboards have by default, are in the sets", () => {
  const names = new Set(namedIcons().map(([name]) => name));
  const usual = ["query_builder", "mdi:water-percent", "mdi:windsock", "bubble_chart", "info_outline", "360"];
  expect([...ICON_NAMES, ...usual].filter((name) => !names.has(name))).toEqual([]);
});

test("a name is looked for in the last part that doesn't begin behind it", () => {
  const parts = [["360", "a"], ["home", "b"], ["mdi:gauge", "c"]] as const;
  expect(["360", "abc", "home", "mdi:fan", "mdi:gauge", "zoom", "1"].map((name) => partOf(name, parts))).toEqual(["a", "a", "b", "b", "c", "c", undefined]);
});

test("a name is missing once its part has come without it", () => {
  expect(isMissing("home", "a", undefined)).toBe(false);
  expect(isMissing("home", "a", { home: "M0 0" })).toBe(false);
  expect(isMissing("hoem", "a", { home: "M0 0" })).toBe(true);
  expect(isMissing("1", undefined, undefined)).toBe(true);
  expect(isMissing("", undefined, undefined)).toBe(false);
});
