// Widgets show stored values, and code of dashboards runs where it can reach nothing.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

const TOKEN = "A1_TEST_TOKEN";
const KEY = { name: "level", type: "timeseries", label: "Level", color: "#f44336", units: "%", decimals: 1, settings: {} };
const STEALING = "window.top.hacked = 1; return localStorage.length;";

function widget(fqn: string, title: string, dataKeys: object[] = [KEY], more: object = {}, source: object = { type: "entity", entityAliasId: "a1" }): object {
  return { typeFullFqn: fqn, sizeX: 6, sizeY: 5, config: { title, showTitle: true, settings: {}, ...more, datasources: [{ ...source, dataKeys }] } };
}

const widgets: Record<string, object> = {
  dial: widget("system.analogue_gauges.radial_gauge_canvas_gauges", "Dial"),
  ring: widget("system.digital_gauges.simple_gauge_justgage", "Ring"),
  compass: widget("system.analogue_gauges.analogue_compass", "Compass"),
  tank: widget("system.vertical_cylinder_tank", "Tank"),
  battery: widget("system.battery_level", "Battery"),
  signal: widget("system.signal_strength", "Signal"),
  pie: widget("system.pie", "Pie", [KEY, { ...KEY, name: "other", label: "<img src=x onerror=top.hacked=1>" }]),
  radar: widget("system.radar", "Radar"),
  bars: widget("system.bars", "Bars"),
  count: widget("system.entity_count", "Count", [{ name: "count", type: "count" }], {}, { type: "entityCount", entityAliasId: "a1" }),
  course: widget("system.cards.aggregated_value_card", "Course"),
  made: widget("system.cards.value_card", "Made", [{ ...KEY, usePostProcessing: true, postFuncBody: "return value * 2;" }]),
  caught: widget("system.cards.value_card", "Caught", [{ ...KEY, usePostProcessing: true, postFuncBody: STEALING }]),
  endless: widget("system.cards.value_card", "Endless", [{ ...KEY, usePostProcessing: true, postFuncBody: "while (true) {}" }]),
  own: widget("tenant.own", "Own"),
  two: { typeFullFqn: "system.cards.entities_table", config: { title: "Two", settings: {}, datasources: ["a1", "a2"].map((entityAliasId) => ({ type: "entity", entityAliasId, dataKeys: [KEY] })) } },
};

const alias = (id: string, name: string): object => ({ id, alias: id, filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: name, resolveMultiple: true } });
const places = Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: (n % 4) * 6, row: Math.floor(n / 4) * 5, sizeX: 6, sizeY: 5 }]));
const configuration = {
  widgets,
  states: { default: { name: "All", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } },
  entityAliases: { a1: alias("a1", "Test Device A1"), a2: alias("a2", "Test Device A2") },
  timewindow: { selectedTab: 0, realtime: { timewindowMs: 300_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } },
};

const OWN = {
  descriptor: {
    templateHtml: "<p id='shown'></p><p id='reached'></p>",
    controllerScript: `self.onDataUpdated = function () { document.getElementById("shown").textContent = ctx.data[0] ? ctx.data[0].data[0][1] : ""; };
      self.onInit = function () {
        let reached = "nothing";
        try { top.hacked = 1; reached = top.localStorage.length; } catch (error) {}
        document.getElementById("reached").textContent = reached;
        fetch("/api/auth/user").then(() => { document.getElementById("reached").textContent = "network"; }, () => undefined);
      };`,
  },
};

test("each widget shows what is stored, and foreign code stays in its sandbox", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1900 });
  await program.send(TOKEN, { level: 40, other: 20 });
  await program.send(TOKEN, { level: 42.5 });
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Widgets", configuration });
  await page.route("**/api/widgetType?*", (route) => route.fulfill({ json: OWN }));
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  for (const name of ["Dial", "Ring", "Compass", "Tank", "Battery", "Signal"]) {
    await expect(region(name).locator("svg"), name).toHaveAttribute("data-value", "42.5 %");
  }
  for (const name of ["Radar", "Bars"]) {
    await expect(region(name).getByRole("img", { name: "Level 42.5 %" }), name).toBeVisible();
  }
  await expect(region("Pie")).toContainText("<img src=x onerror=top.hacked=1> 20 %");
  await expect(region("Count").locator("[data-value]")).toHaveText("1");
  await expect(region("Course").locator("[data-value]")).toHaveText("42.5 %");
  await expect(region("Two")).toContainText("Test Device A1");
  await expect(region("Two")).toContainText("Test Device A2");
  await expect(region("Made").locator("[data-value]")).toHaveText("85 %");
  await expect(region("Endless").locator("[data-value]")).toHaveText("42.5 %");
  await expect(region("Caught").locator("[data-value]")).toHaveText("42.5 %");
  const own = page.frameLocator('iframe[title="Own"]');
  await expect(own.locator("#shown")).toHaveText("42.5");
  await program.send(TOKEN, { level: 50 });
  await expect(own.locator("#shown")).toHaveText("50");
  // The function that never ends is asked only once, so that it holds up nobody.
  await expect(region("Made").locator("[data-value]")).toHaveText("100 %");
  await expect(own.locator("#reached")).toHaveText("nothing");
  await expect(region("Tank").locator("svg")).toHaveAttribute("data-share", "0.5");
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  await page.screenshot({ path: "test-results/screens/widgets.png" });

  const saving = page.waitForEvent("download");
  await region("Pie").hover();
  await region("Pie").getByRole("button", { name: "Save what Pie shows" }).click();
  await page.getByRole("menuitem", { name: "CSV" }).click();
  expect((await saving).suggestedFilename()).toBe("Pie.csv");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await region("Pie").getByRole("button", { name: "Save what Pie shows" }).click();
  await page.getByRole("menuitem", { name: "Copy the values" }).click();
  await expect(page.getByText("copied")).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^Entity\tKey\tTime\tValue\n\S/);
});

test("counts have the colors, sizes and arrangement of their settings", async ({ page, program }) => {
  const count = { type: "entityCount", entityAliasId: "a1" };
  const keys = [{ name: "count", type: "count" }];
  const looks = {
    plain: widget("system.entity_count", "Plain", keys, {}, count),
    full: widget(
      "system.entity_count",
      "Full",
      keys,
      { settings: {
        layout: "row",
        label: "Things",
        labelColor: { type: "constant", color: "#884400" },
        icon: "mdi:gauge",
        iconSize: 24,
        iconColor: { type: "range", color: "#000000", rangeList: { range: [{ from: null, to: 1, color: "#ffff00" }, { from: 1, to: null, color: "#00ffff" }] } },
        iconBackgroundSize: 44,
        iconBackgroundColor: { type: "function", color: "#000000", colorFunction: "return value === 1 ? '#123456' : '#654321';" },
        valueColor: { type: "gradient", color: "#000000", gradient: { minValue: 0, maxValue: 1, gradient: ["#ffffff", "#0000ff"] } },
        showChevron: true,
        chevronColor: "#666699",
      } },
      count,
    ),
    bare: widget("system.alarm_count", "Bare", keys, { settings: { showIconBackground: false, showLabel: false, autoScale: false, iconColor: { type: "constant", color: "#aa00aa" } } }, { type: "alarmCount", entityAliasId: "a1" }),
    calm: widget("system.alarm_count", "Calm", keys, {}, { type: "alarmCount", entityAliasId: "a2" }),
  };
  const placed = Object.fromEntries(Object.keys(looks).map((id, n) => [id, { col: (n % 2) * 6, row: Math.floor(n / 2) * 3, sizeX: 6, sizeY: 3 }]));
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Counts",
    configuration: { ...configuration, widgets: looks, states: { default: { name: "All", root: true, layouts: { main: { widgets: placed, gridSettings: { columns: 24 } } } } } },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const ground = (name: string) => region(name).locator("[data-ground]");
  await expect(region("Full").locator("[data-value]")).toHaveText("1");
  await expect(ground("Full")).toHaveCSS("color", "rgb(0, 255, 255)");
  await expect(ground("Full")).toHaveCSS("background-color", "rgb(18, 52, 86)");
  await expect(ground("Full")).toHaveCSS("min-width", "44px");
  await expect(ground("Full").locator("svg")).toHaveAttribute("width", "24px");
  await expect(region("Full").locator("[data-label]")).toHaveCSS("color", "rgb(136, 68, 0)");
  await expect(region("Full").locator("[data-value]")).toHaveCSS("color", /^(color\(srgb 0 0 1\)|rgb\(0, 0, 255\))$/);
  await expect(region("Full").locator("[data-chevron]")).toHaveCSS("color", "rgb(102, 102, 153)");
  // In a row label and value are side by side; otherwise one is below the other.
  const top = async (name: string, part: string): Promise<number> => Math.round((await region(name).locator(part).boundingBox())?.y ?? 0);
  expect(await top("Full", "[data-label]")).toBeGreaterThan(await top("Full", "[data-value]"));
  expect(await top("Plain", "[data-label]")).toBeLessThan(await top("Plain", "[data-value]"));
  await expect(ground("Plain")).toHaveCSS("background-color", "rgb(241, 141, 23)");
  await expect(ground("Calm")).toHaveCSS("background-color", "rgb(0, 105, 92)");
  await expect(ground("Bare")).toHaveCSS("color", "rgb(170, 0, 170)");
  await expect(ground("Bare")).toHaveCSS("background-color", "rgba(0, 0, 0, 0)");
  await expect(region("Bare").locator("[data-label], [data-chevron]")).toHaveCount(0);
  await expect(region("Full").locator("[data-label]")).toHaveText("Things");
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/counts.png" });
});
