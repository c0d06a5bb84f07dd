import { expect, test } from "vitest";
import { cardStyle, fontStyle, safeStyle, titleStyle } from "./look";
import { plainWords } from "./words";

test("a card has its own look, and nothing that reaches beyond it", () => {
  expect(cardStyle({ padding: "0px", margin: "4px", borderRadius: "8px", dropShadow: false, backgroundColor: "#123456", color: "rgba(0, 0, 0, 0.87)" }, { padding: "12px" })).toEqual({
    background: "#123456",
    padding: "calc(0px + 12px)",
    margin: "4px",
    height: "calc(100% - 2 * 4px)",
    borderRadius: "8px",
    boxShadow: "none",
  });
  expect(safeStyle({ position: "fixed", inset: 0, "z-index": 9999, "font-weight": 700, background: "u\\72l(https://example.org/x)", border: "image-set('//evil' 1x)", color: "red; position: fixed" })).toEqual({ fontWeight: "700" });
  expect(cardStyle({ backgroundColor: "#fff", padding: "0; position: fixed" }, {})).toEqual({});
  expect(cardStyle({ backgroundColor: "rgba(0, 0, 0, 0)" }, { background: { type: "color", color: "#fff" } }), "the white within follows the theme").toEqual({});
  expect(cardStyle({ backgroundColor: "rgba(0, 0, 0, 0)" }, {})).toEqual({ background: "rgba(0, 0, 0, 0)" });
  expect(fontStyle({ size: 18, sizeUnit: "px", weight: "500", lineHeight: "24px", style: "normal" })).toEqual({ fontSize: "18px", fontWeight: "500", lineHeight: "24px" });
  expect(titleStyle({ titleColor: "#ff0000", titleFont: null })).toEqual({ color: "#ff0000" });
});

test("keys of translations are read as words", () => {
  expect(plainWords("{i18n:api-usage.queue-stats}: ${entityName}")).toBe("Queue stats: ${entityName}");
  expect(plainWords("Plain {x}")).toBe("Plain {x}");
});
