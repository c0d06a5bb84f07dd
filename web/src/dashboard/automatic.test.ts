import { expect, test } from "vitest";
import { automaticDashboard } from "./automatic";
import { arrange } from "./layout";
import { readDashboard } from "./model";

test("numbers get a chart, all keys a card, and nothing overlaps", () => {
  const keys = Object.fromEntries([..."abcdefg"].map((key, n) => [key, n < 3 ? String(n) : `text ${n}`]));
  const dashboard = readDashboard(automaticDashboard({ entityType: "DEVICE", id: "7" }, keys));
  const types = [...dashboard.widgets.values()].map((widget) => widget.fqn);
  expect(types.filter((fqn) => fqn === "system.time_series_chart")).toHaveLength(3);
  expect(types.filter((fqn) => fqn === "system.cards.value_card")).toHaveLength(7);
  const [state] = dashboard.states;
  const rects = state === undefined ? [] : arrange(state.main, 1_210, 800).rects;
  expect(new Set(rects.map(({ left, top }) => `${left} ${top}`)).size).toBe(10);
});
