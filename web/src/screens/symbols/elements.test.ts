import { expect, test } from "vitest";
import { elementsIn, isTagName, numbered, withElementTag } from "./elements";

const DRAWING = `<?xml version="1.0"?><!-- <rect/> --><svg xmlns="x" data-a="a > b"><style><![CDATA[ <b> ]]></style><g id='one'><rect  tb:tag="old" x="1"/></g><path d="M0 0"/></svg>`;

test("elements are those of the drawing, with their tags", () => {
  expect(elementsIn(DRAWING)).toEqual([
    { n: 1, name: "style", id: "", tag: "" },
    { n: 2, name: "g", id: "one", tag: "" },
    { n: 3, name: "rect", id: "", tag: "old" },
    { n: 4, name: "path", id: "", tag: "" },
  ]);
  expect(numbered(DRAWING)).toContain(`<svg data-element-n="0" xmlns="x" data-a="a > b">`);
  expect(numbered(DRAWING)).toContain(`<path data-element-n="4" d="M0 0"/>`);
});

test("one element gets a tag, and nothing else changes", () => {
  expect(withElementTag(DRAWING, 3, "new")).toBe(DRAWING.replace(`<rect  tb:tag="old" x="1"/>`, `<rect tb:tag="new" x="1"/>`));
  expect(withElementTag(DRAWING, 3, "")).toBe(DRAWING.replace(`  tb:tag="old"`, ""));
  expect(withElementTag(DRAWING, 4, "line $1")).toBe(DRAWING);
  expect(withElementTag(DRAWING, 4, "line-1")).toContain(`<path tb:tag="line-1" d="M0 0"/>`);
  expect(['a"b', "", "<x>", "a&b", " a"].some(isTagName)).toBe(false);
});
