// Charts show where values are missing if their settings say so, and connect what comes from ThingsBoard as it does.

import type { Locator } from "@playwright/test";
import { expect, logIn, test } from "./program";

const MINUTE = 60_000;
const START = Date.UTC(2026, 2, 20, 8);

/** Counts pixels of the line's color in a part of the width of a chart's drawing. */
function inked(chart: Locator, from: number, to: number): Promise<number> {
  return chart.locator("canvas").evaluate((canvas, [left, right]) => {
    const { width, height } = canvas as HTMLCanvasElement;
    const { data } = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(Math.round(width * (left ?? 0)), 0, Math.round(width * ((right ?? 0) - (left ?? 0))), height) ?? { data: [] };
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      count += (data[at] ?? 0) > 200 && (data[at + 1] ?? 255) < 60 && (data[at + 2] ?? 255) < 60 && (data[at + 3] ?? 0) > 100 ? 1 : 0;
    }
    return count;
  }, [from, to] as const);
}

test("a chart is open where values are missing, and connected where nothing is said", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1000 });
  const present = Array.from({ length: 61 }, (_, n) => n).filter((n) => n <= 20 || n >= 40 || n === 30);
  const answer = await fetch(`${program.url}/api/v1/A1_TEST_TOKEN/telemetry`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(present.map((n) => ({ ts: START + n * MINUTE, values: { patchy: 20 } }))) });
  expect(answer.status).toBe(200);
  const chart = (title: string, settings: object, key: object = {}): object => ({
    typeFullFqn: "system.time_series_chart", type: "timeseries",
    config: { title, showTitle: true, settings: { showLegend: false, ...settings }, datasources: [{ type: "entity", entityAliasId: "a1", dataKeys: [{ name: "patchy", type: "timeseries", label: "Patchy", color: "#ff0000", settings: { lineSettings: key } }] }] },
  });
  const widgets = {
    Connected: chart("Connected", {}),
    Open: chart("Open", { lineGaps: "usual" }, { fillAreaSettings: { type: "opacity", opacity: 0.9 } }),
    Steps: chart("Steps", { lineGaps: "usual" }, { step: true, stepType: "middle" }),
    Long: chart("Long", { lineGaps: "after", lineGapSeconds: 3_600 }),
  };
  const configuration = {
    widgets,
    states: { default: { name: "Gaps", root: true, layouts: { main: { widgets: Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: (n % 2) * 12, row: Math.floor(n / 2) * 6, sizeX: 12, sizeY: 6 }])), gridSettings: { columns: 24 } } } } },
    entityAliases: { a1: { id: "a1", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: false } } },
    timewindow: { selectedTab: 1, history: { historyType: 1, fixedTimewindow: { startTimeMs: START, endTimeMs: START + 60 * MINUTE }, interval: MINUTE }, aggregation: { type: "NONE", limit: 10_000 }, timezone: "UTC" },
  };
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Gaps", configuration });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}`);
  const region = (name: string): Locator => page.getByRole("region", { name, exact: true });
  const gaps = { Connected: "0", Open: "2", Steps: "2", Long: "0" };
  for (const [name, count] of Object.entries(gaps)) {
    await expect(region(name).locator("[data-points]"), name).toHaveAttribute("data-gaps", count);
    // Between the values, in the first of the two gaps.
    await expect.poll(() => inked(region(name), 0.1, 0.25), name).toBeGreaterThan(20);
    const inside = await inked(region(name), 0.42, 0.48);
    count === "0" ? expect(inside, name).toBeGreaterThan(20) : expect(inside, name).toBe(0);
  }
  // A value with gaps on both sides is a point.
  expect(await inked(region("Open"), 0.48, 0.58)).toBeGreaterThan(5);
  await page.screenshot({ path: "test-results/screens/gaps.png" });

  await page.goto(`${program.url}/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: /^Connected: / }).click();
  await page.getByRole("combobox", { name: "Where values are missing, the line is" }).click();
  await page.getByRole("option", { name: "Open after a time without a value" }).click();
  await page.getByLabel("Without a value for longer than (seconds)").fill("120");
  await expect(region("Connected").locator("[data-points]")).toHaveAttribute("data-gaps", "2");
});
