// Charts over time show what is stored as their settings say, and people move through time with them.

import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

const TOKEN = "A1_TEST_TOKEN";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const KEY = { name: "temperature", type: "timeseries", label: "Temperature", color: "#2196f3", units: "°C", decimals: 1, settings: {} };
const FIXED = (from: number, to: number, more: object = {}) => ({ selectedTab: 1, history: { historyType: 1, fixedTimewindow: { startTimeMs: from, endTimeMs: to }, interval: MINUTE }, aggregation: { type: "NONE", limit: 10_000 }, timezone: "UTC", ...more });

async function sendAt(program: Program, points: { ts: number; values: object }[]): Promise<void> {
  const answer = await fetch(`${program.url}/api/v1/${TOKEN}/telemetry`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(points) });
  expect(answer.status).toBe(200);
}

async function setAttribute(program: Program, values: object): Promise<void> {
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/tenant/devices?deviceName=Test%20Device%20A1");
  const answer = await fetch(`${program.url}/api/plugins/telemetry/DEVICE/${device.id.id}/attributes/SERVER_SCOPE`, {
    method: "POST",
    headers: { "X-Authorization": `Bearer ${await program.token("TENANT_ADMIN")}`, "Content-Type": "application/json" },
    body: JSON.stringify(values),
  });
  expect(answer.status).toBe(200);
}

function widget(fqn: string, title: string, settings: object, keys: object[] = [KEY], config: object = {}, latest: object[] = []): object {
  return { typeFullFqn: `system.${fqn}`, type: "timeseries", sizeX: 12, sizeY: 6, config: { title, showTitle: true, settings, ...config, datasources: [{ type: "entity", entityAliasId: "a1", dataKeys: keys, latestDataKeys: latest }] } };
}

/** Makes a dashboard of widgets of half its width, and returns its id. */
async function board(program: Program, title: string, widgets: Record<string, object>, timewindow: object): Promise<string> {
  const places = Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: (n % 2) * 12, row: Math.floor(n / 2) * 6, sizeX: 12, sizeY: 6 }]));
  const configuration = {
    widgets,
    states: { default: { name: title, root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } },
    entityAliases: { a1: { id: "a1", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: true } } },
    timewindow,
  };
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title, configuration });
  return made.id.id;
}

/** A stretch of the past that no other test writes to. */
const START = Date.UTC(2026, 2, 10, 8);

test("charts of all kinds show what is stored, with axes, thresholds, states and an earlier time", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1500 });
  const points = Array.from({ length: 241 }, (_, n) => ({ ts: START - 2 * HOUR + n * MINUTE, values: { temperature: 20 + 5 * Math.sin(n / 20), humidity: 50 + (n % 30), ...(n % 40 === 0 ? { door: n % 80 === 0 ? "open" : "shut" } : {}) } }));
  await sendAt(program, points.slice(0, 200));
  await sendAt(program, points.slice(200));
  await setAttribute(program, { upper: 24 });
  const humidity = { ...KEY, name: "humidity", label: "Humidity", color: "#4caf50", units: "%", settings: { yAxisId: "right", type: "bar" } };
  const compared = { ...KEY, settings: { lineSettings: { smooth: true }, comparisonSettings: { showValuesForComparison: true, color: "#ff9800" } } };
  const door = { ...KEY, name: "door", label: "Door", units: "" };
  const id = await board(
    program,
    "Charts",
    {
      axes: widget("time_series_chart", "Axes", {
        yAxes: { default: { id: "default", order: 0, units: "°C", decimals: 0, label: "Warmth", position: "left" }, right: { id: "right", order: 1, units: "%", min: 0, max: 100, position: "right" } },
        thresholds: [{ type: "constant", value: 18, yAxisId: "default", lineColor: "#9c27b0", lineType: "dashed" }, { type: "latestKey", latestKey: "upper", latestKeyType: "attribute", yAxisId: "default", lineColor: "#f44336" }, { type: "entity", entityAlias: "A1", entityKey: "upper", entityKeyType: "attribute", yAxisId: "default" }],
        legendConfig: { position: "top", showMin: true, showMax: true, showAvg: true, showTotal: false, showLatest: true },
      }, [{ ...KEY, settings: { lineSettings: { fillAreaSettings: { type: "gradient" } } } }, humidity]),
      compared: widget("line_chart", "Compared", { comparisonEnabled: true, timeForComparison: "previousInterval" }, [compared]),
      states: widget("state_chart", "States", { states: [{ label: "Open", value: 1, sourceType: "constant", sourceValue: "open" }, { label: "Shut", value: 0, sourceType: "constant", sourceValue: "shut" }] }, [door]),
      bands: widget("temperature_range_chart", "Bands", { rangeColors: [{ to: 18, color: "#234CC7" }, { from: 18, to: 23, color: "#FFA600" }, { from: 23, color: "#D81838" }] }),
      bars: widget("bar_chart_with_labels", "Bars", {}, [KEY, { ...KEY, label: "Again", color: "#795548" }], { useDashboardTimewindow: false, timewindow: FIXED(START, START + 2 * HOUR, { aggregation: { type: "MAX", limit: 500 }, history: { historyType: 1, fixedTimewindow: { startTimeMs: START, endTimeMs: START + 2 * HOUR }, interval: 20 * MINUTE } }) }),
      points: widget("point_chart", "Points", { stack: false }, [{ ...KEY, settings: { dataHiddenByDefault: true } }, { ...KEY, label: "Shown", color: "#009688" }]),
      flot: widget("charts.basic_timeseries", "Flot", { stack: true }, [{ ...KEY, settings: { fillLines: true } }, { ...KEY, name: "humidity", label: "Humidity", color: "#4caf50", settings: { fillLines: true } }]),
    },
    FIXED(START, START + 2 * HOUR),
  );
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const chart = (name: string) => region(name).locator("[data-from]");
  await expect(region("Axes").locator("[data-points]")).toHaveAttribute("data-points", /12[12]/);
  await expect(chart("Axes")).toHaveAttribute("data-marks", "18 24 24");
  const figures = region("Axes").getByRole("row", { name: /Temperature/ });
  const inside = points.filter(({ ts }) => ts >= START && ts < START + 2 * HOUR).map(({ values }) => values.temperature);
  await expect(figures.locator("[data-figure=max]")).toHaveText(`${Number(Math.max(...inside).toFixed(1))} °C`);
  await expect(figures.locator("[data-figure=latest]")).toHaveText(`${Number((inside.at(-1) ?? 0).toFixed(1))} °C`);
  await expect(region("Compared").getByRole("button", { name: "Temperature, earlier" })).toBeVisible();
  // 121 points of now and as many of the two hours before lie on the same moments.
  await expect(region("Compared").locator("[data-points]")).toHaveAttribute("data-points", /12[0-2]/);
  await expect(region("States").locator("[data-points]")).toHaveAttribute("data-states", "Shut Open Shut");
  await expect(region("Bands").getByText("18 – 23")).toBeVisible();
  await expect(region("Bars").locator("[data-points]")).toHaveAttribute("data-points", "6");
  await expect(region("Points").getByRole("button", { name: "Temperature" })).toHaveAttribute("aria-pressed", "false");
  await expect(region("Flot").locator("canvas")).toBeVisible();
  await region("Compared").locator(".u-over").hover({ position: { x: 200, y: 80 } });
  await expect(region("Compared").getByText(/Temperature, earlier \(/)).toBeVisible();
  await page.screenshot({ path: "test-results/screens/charts_light.png" });
  // The system may change the scheme while somebody looks: the palette follows at once.
  const mark = region("Axes").getByRole("button", { name: "Temperature" }).locator("i");
  await expect(mark).toHaveCSS("background-color", "rgb(33, 150, 243)");
  const drawn = (): Promise<string> => region("Axes").locator("canvas").evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  const before = await drawn();
  await page.getByRole("button", { name: "tenant@thingsboard.org" }).click();
  await page.getByRole("menuitemradio", { name: "High contrast" }).click();
  await page.keyboard.press("Escape");
  await expect.poll(drawn).not.toBe(before);
  await page.emulateMedia({ colorScheme: "dark" });
  await expect(mark).toHaveCSS("background-color", "rgb(100, 181, 246)");
  await page.evaluate(() => localStorage.setItem("mantine-color-scheme-value", "dark"));
  await page.reload();
  await expect(region("Flot").locator("canvas")).toBeVisible();
  await expect(chart("Axes")).toHaveAttribute("data-marks", "18 24 24");
  await page.screenshot({ path: "test-results/screens/charts_dark.png" });
});

test("a drag zooms into the past, of the dashboard or of one widget, and can be taken back", async ({ page, program }) => {
  const now = Date.now();
  await sendAt(program, Array.from({ length: 300 }, (_, n) => ({ ts: now - n * 10_000, values: { zoomed: n } })));
  const key = { ...KEY, name: "zoomed", label: "Zoomed", units: "" };
  const live = { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: HOUR, interval: 30_000 }, aggregation: { type: "AVG", limit: 1_000 } };
  const id = await board(program, "Zoom", { shared: widget("time_series_chart", "Shared", {}, [key]), other: widget("line_chart", "Other", {}, [key]), own: widget("line_chart", "Own", {}, [key], { useDashboardTimewindow: false, timewindow: live }) }, live);
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const span = async (name: string): Promise<number> => {
    const chart = region(name).locator("[data-from]");
    return Number(await chart.getAttribute("data-to")) - Number(await chart.getAttribute("data-from"));
  };
  const drag = async (name: string): Promise<void> => {
    const box = await region(name).locator(".u-over").boundingBox();
    if (box === null) {
      throw new Error("the chart isn't there");
    }
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
  };
  await expect(region("Shared").locator("canvas")).toBeVisible();
  expect(await span("Shared")).toBe(HOUR);
  await drag("Shared");
  await expect.poll(() => span("Shared")).toBeLessThan(0.25 * HOUR);
  await expect.poll(() => span("Other")).toBeLessThan(0.25 * HOUR);
  expect(await span("Own")).toBe(HOUR);
  expect(page.url()).toContain("time=20");
  await expect(region("Shared").locator("[data-points]")).not.toHaveAttribute("data-points", "0");
  await page.reload();
  await expect.poll(() => span("Shared")).toBeLessThan(0.25 * HOUR);
  await page.goBack();
  await expect.poll(() => span("Shared")).toBe(HOUR);
  await drag("Shared");
  await page.getByRole("button", { name: "Reset zoom" }).click();
  await expect.poll(() => span("Shared")).toBe(HOUR);
  await page.keyboard.press("-");
  await expect.poll(() => span("Shared")).toBe(2 * HOUR);
  await drag("Own");
  await expect.poll(() => span("Own")).toBeLessThan(0.25 * HOUR);
  expect(await span("Shared")).toBe(2 * HOUR);
  await region("Own").getByRole("button", { name: "Reset zoom" }).click();
  await expect.poll(() => span("Own")).toBe(HOUR);
});

test("any window can be picked, and averages follow values that come", async ({ page, program }) => {
  const start = Math.floor(Date.now() / 600_000) * 600_000;
  await sendAt(program, [{ ts: start - 2 * HOUR, values: { counted: 7 } }, { ts: start - 30 * MINUTE, values: { counted: 10 } }]);
  const key = { ...KEY, name: "counted", label: "Counted", units: "", settings: {} };
  const live = { selectedTab: 0, hideTimezone: true, realtime: { realtimeType: 0, timewindowMs: 24 * HOUR, interval: 24 * HOUR }, aggregation: { type: "AVG", limit: 1_000 } };
  const legend = { legendConfig: { showMin: false, showMax: false, showAvg: false, showTotal: false, showLatest: true } };
  const id = await board(program, "Windows", { chart: widget("time_series_chart", "Chart", legend, [key]) }, live);
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const region = page.getByRole("region", { name: "Chart", exact: true });
  const latest = region.locator("[data-figure=latest]");
  const picker = page.getByRole("button", { name: /^Time:/ });
  await picker.click();
  const form = page.getByRole("dialog", { name: /^Time:/ });
  await expect(form.getByLabel("Time zone")).toHaveCount(0);
  await form.getByText("Past", { exact: true }).click();
  await form.getByText("From … to", { exact: true }).click();
  const local = (ts: number): string => new Date(ts - new Date().getTimezoneOffset() * MINUTE).toISOString().slice(0, 19);
  await form.getByLabel("From", { exact: true }).fill(local(start - 3 * HOUR));
  await form.getByLabel("To", { exact: true }).fill(local(start - HOUR));
  await form.getByRole("button", { name: "Show" }).click();
  await expect(latest).toHaveText("7");
  expect(new URL(page.url()).searchParams.get("time")).toBe(`${new Date(start - 3 * HOUR).toISOString()}/${new Date(start - HOUR).toISOString()}`);
  await picker.click();
  await form.getByText("Live", { exact: true }).click();
  await form.getByRole("combobox", { name: "Aggregation" }).click();
  await page.getByRole("option", { name: "Sum" }).click();
  await page.screenshot({ path: "test-results/screens/time_window.png" });
  await form.getByRole("button", { name: "Cancel" }).click();
  await expect(latest).toHaveText("7");
  await page.goBack();
  // One group holds both values and the ones that come now.
  await program.send(TOKEN, { counted: 40 });
  await program.send(TOKEN, { counted: 23 });
  await expect(region.locator("[data-points]")).toHaveAttribute("data-points", /^[12]$/);
  const shown = async (): Promise<boolean> => ["20", "31.5", "24.3", "23"].includes((await latest.textContent()) ?? "");
  await expect.poll(shown).toBe(true);
});

test("cards show values, what a window comes to and how that compares, as they are laid out", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1500 });
  const day = 24 * HOUR;
  const start = Date.UTC(2026, 2, 20);
  await sendAt(program, [...[10, 20].map((value, n) => ({ ts: start - day + n * HOUR, values: { flow: value } })), ...[20, 25, 45].map((value, n) => ({ ts: start + n * HOUR, values: { flow: value } }))]);
  await program.send(TOKEN, { warmth: 20 });
  const flow = { ...KEY, name: "flow", label: "Flow", units: "L" };
  const warmth = { ...KEY, name: "warmth", label: "Warmth", units: { from: "°C", METRIC: "°C", IMPERIAL: "°F" } };
  const corner = (label: string, position: string, more: object): object => ({ ...flow, label, aggregationType: "AVG", settings: { position, ...(position === "center" ? { font: { size: 36 } } : { showArrow: true }) }, ...more });
  const compared = (comparisonResultType: string): object => ({ comparisonEnabled: true, timeForComparison: "previousInterval", comparisonResultType });
  const latest = [corner("Mean", "center", {}), corner("Change", "rightTop", { ...compared("DELTA_ABSOLUTE") }), corner("Percent", "rightBottom", { ...compared("DELTA_PERCENT"), units: "%" }), corner("Before", "leftTop", compared("PREVIOUS_VALUE")), corner("Most", "leftBottom", { aggregationType: "MAX" })];
  const picture = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40" fill="teal"/></svg>')}`;
  const layouts = Object.fromEntries(["square", "vertical", "centered", "simplified", "horizontal", "horizontal_reversed"].map((layout) => [layout, widget("cards.value_card", layout, { layout, iconColor: { type: "constant", color: "#f36900" } }, [warmth], { showTitle: false })]));
  const live = { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: HOUR, interval: MINUTE }, aggregation: { type: "AVG", limit: 1_000 } };
  const id = await board(
    program,
    "Cards",
    {
      aggregated: widget("cards.aggregated_value_card", "Aggregated", {}, [flow], {}, latest),
      still: widget("cards.aggregated_value_card", "Still", {}, [flow], { useDashboardTimewindow: false, timewindow: live }, latest),
      beside: widget("simple_flow_rate_chart_card", "Beside", { layout: "left", valueColor: { type: "range", rangeList: [{ from: 40, color: "#d81838" }] } }, [flow]),
      progress: widget("flow_rate_progress_bar", "Progress", { tickMin: 0, tickMax: 40, barColor: { type: "function", colorFunction: "return value > 10 ? '#00ff00' : '#ff0000';" } }, [{ ...flow, name: "warmth" }]),
      ...layouts,
      pictured: widget("flow_rate_card_with_background", "Pictured", { background: { type: "image", imageUrl: picture, overlay: { enabled: true, color: "rgba(255,255,255,0.72)", blur: 3 } } }, [warmth]),
    },
    FIXED(start, start + day),
  );
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const part = (card: string, label: string) => region(card).getByTitle(`${label}: average`, { exact: true });
  await expect(region("Aggregated").locator("[data-value]")).toHaveText("30 L");
  await expect(part("Aggregated", "Change")).toHaveText("↑ 15 L");
  await expect(part("Aggregated", "Percent")).toHaveText("↑ 100 %");
  await expect(part("Aggregated", "Before")).toHaveText("↑ 15 L");
  await expect(region("Aggregated").getByTitle("Most: greatest")).toHaveText("↑ 45 L");
  await expect(region("Aggregated").getByText("Test Device A1")).toBeVisible();
  await expect(part("Still", "Mean")).toHaveText("Not supported");
  await expect(region("Beside").locator("[data-value]")).toHaveText("45 L");
  await expect(region("Beside").locator("[data-value]")).toHaveCSS("color", "rgb(216, 24, 56)");
  await expect(region("Progress").getByRole("meter")).toHaveAttribute("aria-valuenow", "20");
  await expect(region("Progress").getByRole("meter").locator("div")).toHaveCSS("background-color", "rgb(0, 255, 0)");
  await expect(region("Pictured").locator("[data-picture]")).toBeVisible();
  // Whoever reads in English of the United States has Fahrenheit by default.
  for (const layout of Object.keys(layouts)) {
    await expect(region(layout).locator("[data-value]")).toHaveText("68 °F");
    const [card, value] = await Promise.all([region(layout).boundingBox(), region(layout).locator("[data-value]").boundingBox()]);
    expect((value?.y ?? 0) + (value?.height ?? 0), layout).toBeLessThanOrEqual((card?.y ?? 0) + (card?.height ?? 0) + 1);
  }
  await page.screenshot({ path: "test-results/screens/cards_light.png" });
  await page.evaluate(() => localStorage.setItem("mantine-color-scheme-value", "dark"));
  await page.reload();
  await expect(region("Aggregated").locator("[data-value]")).toHaveText("30 L");
  await expect(region("Pictured").locator("[data-picture]")).toBeVisible();
  await page.screenshot({ path: "test-results/screens/cards_dark.png" });
});

test("shares of latest values are drawn, hidden and summed up; a chart is a table, too", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1300 });
  await program.send(TOKEN, { east: 30, west: 20, north: 50, south: 12.5 });
  const keys = ["east", "west", "north", "south"].map((name, n) => ({ ...KEY, name, label: name, units: "kW", color: ["#2196f3", "#f44336", "#4caf50", "#ff9800"][n] }));
  const id = await board(
    program,
    "Shares",
    {
      pie: widget("pie", "Pie", { showLabel: true, labelPosition: "outside" }, keys),
      doughnut: widget("horizontal_doughnut", "Ring", { layout: "with_total" }, keys),
      bars: widget("bars", "Columns", { sortSeries: true, barSettings: { showLabel: true, barWidth: 60 } }, keys),
      polar: widget("polar_area", "Petals", { legendPosition: "right" }, keys),
      radar: widget("radar", "Net", { fillAreaSettings: { type: "opacity", opacity: 0.3 } }, keys),
      gauge: widget("digital_gauges.simple_gauge_justgage", "Gauge", { minValue: 0, maxValue: 60, unitTitle: "Power", showTimestamp: true, neonGlowBrightness: 40, barColor: "#00e5ff" }, keys.slice(0, 1)),
      dial: widget("analogue_gauges.radial_gauge_canvas_gauges", "Dial", { minValue: 0, maxValue: 60, majorTicksCount: 6, minorTicks: 2, highlights: [{ from: 40, to: 60, color: "#f44336" }], showUnitTitle: true, unitTitle: "kW", valueBox: true }, keys.slice(0, 1)),
      course: widget("line_chart", "Course", {}, keys.slice(0, 2)),
    },
    { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: HOUR, interval: MINUTE }, aggregation: { type: "NONE", limit: 1_000 } },
  );
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  await expect(region("Pie").locator("[data-total]")).toContainText("112.5 kW");
  await region("Pie").getByRole("button", { name: "north" }).click();
  await expect(region("Pie").locator("[data-total]")).toContainText("62.5 kW");
  await expect(region("Pie").locator("[data-shares]")).toHaveAttribute("data-shares", "3");
  await expect(region("Columns").getByRole("img")).toHaveAttribute("aria-label", /^north 50 kW, east 30 kW/);
  await expect(region("Ring").locator("svg")).toContainText("112.5 kW");
  await expect(region("Course").locator("canvas")).toBeVisible();
  await page.screenshot({ path: "test-results/screens/shares_light.png" });
  const drawnIn = (name: string, drawing: string) => region(name).locator(`svg :is(${drawing})`).first();
  await expect(drawnIn("Ring", "path")).toHaveAttribute("fill", "#2196f3");
  await page.emulateMedia({ colorScheme: "dark" });
  for (const name of ["Ring", "Petals"]) {
    await expect(drawnIn(name, "path"), name).toHaveAttribute("fill", "#64b5f6");
  }
  await expect(region("Pie").getByRole("button", { name: "west" }).locator("i")).toHaveCSS("background-color", "rgb(229, 115, 115)");
  await expect(region("Gauge").locator("svg")).toHaveCSS("color", "rgb(100, 181, 246)");
  await page.screenshot({ path: "test-results/screens/shares_dark.png" });
  await region("Course").hover();
  await region("Course").getByRole("button", { name: /Save what Course/ }).click();
  await page.getByRole("menuitem", { name: "Show as a table" }).click();
  await expect(region("Course").getByRole("row").nth(1)).toContainText("30 kW");
  await expect(region("Course").getByRole("columnheader")).toHaveText(["Time", "east", "west"]);
});

test("alarms lie over the lines, and averages in the band of what they are made of", async ({ page, program }) => {
  await page.setViewportSize({ width: 1300, height: 700 });
  const now = Date.now();
  await sendAt(program, Array.from({ length: 60 }, (_, n) => ({ ts: now - n * 10_000, values: { swing: n % 2 === 0 ? 10 : 30 } })));
  const device = await program.call<{ id: { id: string; entityType: string } }>("TENANT_ADMIN", "/api/tenant/devices?deviceName=Test%20Device%20A1");
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/alarm", { originator: device.id, type: "Swinging", severity: "MAJOR", startTs: now - 4 * MINUTE, acknowledged: false, cleared: false });
  const swing = { ...KEY, name: "swing", label: "Swing", units: "" };
  const live = { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 10 * MINUTE, interval: MINUTE }, aggregation: { type: "AVG", limit: 1_000 } };
  const id = await board(program, "Over the lines", { c: widget("time_series_chart", "Course", { showAlarms: true, showBand: true }, [swing]) }, live);
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const course = page.getByRole("region", { name: "Course" });
  const alarms = course.getByRole("group", { name: "Alarms in this time" });
  await expect(alarms.getByRole("button")).toHaveCount(1);
  const mark = alarms.getByRole("button", { name: /Swinging · MAJOR · Active, unacknowledged · Test Device A1/i });
  // It begins where it began: four of ten minutes before the right edge.
  const [pane, box] = [await alarms.boundingBox(), await mark.locator("xpath=..").boundingBox()];
  expect(Math.abs(((box?.x ?? 0) - (pane?.x ?? 0)) / (pane?.width ?? 1) - 0.6)).toBeLessThan(0.03);
  // The scale has room for all values, not only for the averages.
  await expect(course.locator("[data-points]")).not.toHaveAttribute("data-points", "0");
  const drawing = course.locator("canvas");
  await expect.poll(() => drawing.evaluate((canvas) => {
    const element = canvas as HTMLCanvasElement;
    const { data } = element.getContext("2d")?.getImageData(0, 0, element.width, element.height) ?? { data: [] };
    let tinted = 0;
    for (let at = 0; at < data.length; at += 4) {
      const alpha = data[at + 3] ?? 0;
      tinted += (data[at + 2] ?? 0) > 200 && (data[at] ?? 255) < 80 && alpha > 20 && alpha < 100 ? 1 : 0;
    }
    return tinted;
  })).toBeGreaterThan(5_000);
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/chart_alarms.png" });
  await mark.click();
  await expect(page.getByRole("dialog").getByText("Swinging").first()).toBeVisible();
  await page.keyboard.press("Escape");
  // It stays, and ends, when it is cleared; a new one comes by itself.
  await program.call("TENANT_ADMIN", `/api/alarm/${made.id.id}/clear`, {});
  await expect(alarms.getByRole("button", { name: /Cleared, unacknowledged/i })).toHaveCount(1);
  await program.call("TENANT_ADMIN", "/api/alarm", { originator: device.id, type: "Another", severity: "CRITICAL", startTs: Date.now(), acknowledged: false, cleared: false });
  await expect(alarms.getByRole("button")).toHaveCount(2);
});

test("axes, thresholds of another entity and alarms are set in the form of a chart", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1000 });
  await setAttribute(program, { ceiling: 44 });
  await program.send(TOKEN, { temperature: 21 });
  const live = { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 10 * MINUTE, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } };
  const id = await board(program, "Formed", { c: widget("time_series_chart", "Formed", {}) }, live);
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}?edit=true`);
  await page.getByRole("button", { name: /^Formed: / }).click();
  const axes = page.getByRole("group", { name: "Axes of values" });
  await axes.getByRole("button", { name: "Add to: Axes of values" }).click();
  await axes.getByRole("group", { name: "2" }).getByLabel("Label").fill("Second");
  const thresholds = page.getByRole("group", { name: "Thresholds" });
  await thresholds.getByRole("button", { name: "Add to: Thresholds" }).click();
  await thresholds.getByLabel("Value comes from").click();
  await page.getByRole("option", { name: "A value of another entity" }).click();
  await thresholds.getByLabel("Entity", { exact: true }).click();
  await page.getByRole("option", { name: "A1" }).click();
  await thresholds.getByLabel("Key", { exact: true }).fill("ceiling");
  await thresholds.getByLabel("Axis of values").click();
  await page.getByRole("option", { name: "Second" }).click();
  await page.getByLabel("Alarms of the entities over the lines").check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(async () => {
    const stored = await program.call<{ configuration: { widgets: { c: { config: { settings: Record<string, unknown> } } } } }>("TENANT_ADMIN", `/api/dashboard/${id}`);
    return stored.configuration.widgets.c.config.settings;
  }).toMatchObject({
    showAlarms: true,
    yAxes: { default: { id: "default" }, axis1: { id: "axis1", label: "Second" } },
    thresholds: [{ type: "entity", entityAlias: "A1", entityKey: "ceiling", yAxisId: "axis1" }],
  });
  await page.goto(`${program.url}/dashboards/${id}`);
  await expect(page.getByRole("region", { name: "Formed" }).locator("[data-marks='44']")).toBeVisible();
});
