import { expect, test } from "vitest";
import { brightnessOf, inkColor, PALETTE, paletteColor, schemeOn } from "./color";

test("letters follow the ground that they stand on", () => {
  expect(schemeOn("#bab9b2")).toBe("light");
  expect(schemeOn("rgb(0, 0, 0)")).toBe("dark");
  expect(schemeOn("#000")).toBe("dark");
  expect(schemeOn("rgba(255, 255, 255, 0.2)"), "what lies behind shines through").toBeUndefined();
  expect(schemeOn("papayawhip")).toBeUndefined();
  expect(brightnessOf("#ffffff")).toBeCloseTo(1);
  expect(brightnessOf("#fff8"), "half and more counts").toBeCloseTo(1);
});

test("dark letters get light in the dark theme, and colours that can be read stay", () => {
  expect(inkColor("#666666")).toBe("light-dark(#666666, color-mix(in srgb, #666666 35%, white))");
  expect(inkColor("#f00")).toBe("#f00");
  expect(inkColor("#2196f3")).toBe("#2196f3");
  expect(inkColor("currentColor")).toBe("currentColor");
});

test("the palette follows the scheme of the ground, and colours that somebody has chosen stay", () => {
  expect(PALETTE.map((color) => paletteColor(color, "light"))).toEqual(PALETTE);
  for (const color of PALETTE) {
    expect(brightnessOf(paletteColor(color.toUpperCase(), "dark")), color).toBeGreaterThan(brightnessOf(color) ?? 1);
  }
  expect(paletteColor("#123456", "dark")).toBe("#123456");
});
