import { expect, test } from "vitest";
import { cardStyle, fontStyle, safeStyle, titleStyle } from "./look";
import { plainWords } from "./words";

test("a card has its own look, and nothing that reaches beyond it", () => {
  expect(cardStyle("system.time_series_chart", { padding: "0px", margin: "4px", borderRadius: "8px", dropShadow: false, backgroundColor: "#123456", color: "rgba(0, 0, 0, 0.87)" }, { padding: "12px" })).toEqual({
    background: "#123456",
    colorScheme: "dark",
    color: "rgba(255, 255, 255, 0.87)",
    padding: "12px",
    margin: "4px",
    height: "calc(100% - 2 * 4px)",
    borderRadius: "8px",
    boxShadow: "none",
  });
  expect(safeStyle({ position: "fixed", inset: 0, "z-index": 9999, "font-weight": 700, background: "u\\72l(https://example.org/x)", border: "image-set('//evil' 1x)", color: "red; position: fixed" })).toEqual({ fontWeight: "700" });
  expect(cardStyle("system.cards.value_card", { backgroundColor: "#fff", padding: "0; position: fixed" }, {})).toEqual({});
  expect(cardStyle("system.cards.value_card", { backgroundColor: "rgba(0, 0, 0, 0)" }, { background: { type: "color", color: "#fff" } }), "the white within follows the theme").toEqual({ padding: "24px" });
  expect(cardStyle("system.cards.value_card", { backgroundColor: "rgba(0, 0, 0, 0)" }, {})).toEqual({ background: "rgba(0, 0, 0, 0)" });
  expect(fontStyle({ size: 18, sizeUnit: "px", weight: "500", lineHeight: "24px", style: "normal" })).toEqual({ fontSize: "18px", fontWeight: "500", lineHeight: "24px" });
  expect(titleStyle({ titleColor: "#ff0000", titleFont: null })).toEqual({ color: "#ff0000" });
  expect(titleStyle({ titleColor: "rgba(0, 0, 0, 0.54)" }), "the soft black of light themes follows the theme, too").toEqual({});
});

test("a newer widget keeps free within its card what it usually does", () => {
  const paddingOf = (fqn: string, config: object, settings: object): unknown => cardStyle(fqn, { ...config }, { ...settings }).padding;
  const newer = { background: { type: "color", color: "#fff" } };
  expect(paddingOf("system.air_quality_index_card", { padding: "0px" }, newer)).toBe("24px");
  expect(paddingOf("system.horizontal_pm10_card_with_background", { padding: "0px" }, newer)).toBe("0px 24px");
  expect(paddingOf("system.humidity_chart_card", { padding: "4px" }, newer)).toBe("calc(4px + 12px)");
  expect(paddingOf("system.range_chart", {}, { ...newer, padding: "3px" })).toBe("3px");
  expect(paddingOf("system.alarm_count", { padding: "0" }, {})).toBe("12px");
  expect(cardStyle("system.pie", { padding: "0px", backgroundColor: "rgba(0, 0, 0, 0)" }, {}), "its ground is white within").toEqual({ padding: "12px" });
  expect(paddingOf("system.cards.simple_card", { padding: "8px" }, {})).toBe("8px");
});

test("keys of translations are read as words", () => {
  expect(plainWords("{i18n:api-usage.queue-stats}: ${entityName}")).toBe("Queue stats: ${entityName}");
  expect(plainWords("{i18n:widgets.transport-messages.title}")).toBe("Transport messages");
  expect(plainWords("Plain {x}")).toBe("Plain {x}");
});
