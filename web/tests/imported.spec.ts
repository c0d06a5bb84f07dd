// Dashboards in the forms in which ThingsBoard has written files over the years open here, show the values that are stored, and no
// renderer ends as an error. Nothing here is copied from a foreign file: each dashboard is made for this test.

import { writeFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { expect, logIn, test, type Program } from "./program";

const TOKEN = "A1_TEST_TOKEN";
const DEVICE = "Test Device A1";

interface Stored {
  id: { id: string };
}

async function deviceId(program: Program): Promise<string> {
  const { id } = await program.call<Stored>("TENANT_ADMIN", `/api/tenant/devices?deviceName=${encodeURIComponent(DEVICE)}`);
  return id.id;
}

const KEY = { name: "level", type: "timeseries", label: "Level", color: "#f44336", units: "%", decimals: 1, settings: {} };
const ALIAS = { a: { id: "a", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: DEVICE, resolveMultiple: true } } };
const WINDOW = { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 300_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } };

/** The first form: a list of widgets that know where they lie, devices instead of filters, the toolbar's settings with the grid. */
const oldForm = (device: string): object => ({
  title: "Old form",
  configuration: {
    widgets: [
      { isSystemType: true, bundleAlias: "cards", typeAlias: "simple_card", type: "latest", title: "x", sizeX: 5, sizeY: 3, row: 0, col: 0, config: { title: "Old value", showTitle: true, settings: {}, datasources: [{ type: "device", deviceAliasId: "1", dataKeys: [KEY] }] } },
      { isSystemType: true, bundleAlias: "charts", typeAlias: "timeseries", type: "timeseries", sizeX: 8, sizeY: 5, row: 0, col: 5, config: { title: "Old course", showTitle: true, settings: {}, timewindow: { realtime: { timewindowMs: 60_000 } }, datasources: [{ type: "device", deviceAliasId: "2", dataKeys: [KEY] }] } },
    ],
    deviceAliases: { 1: { alias: "By id", deviceId: device }, 2: { alias: "By name", deviceFilter: { useFilter: true, deviceNameFilter: DEVICE, deviceList: [] } } },
    timewindow: { realtime: { timewindowMs: 60_000 } },
    gridSettings: { columns: 12, margins: [20, 20], showTitle: true, titleColor: "#123456", showDevicesSelect: true, backgroundColor: "#eeeeee" },
  },
});

/** The form in between: entities of a type with a list or a name, before there were filters. */
const middleForm = (device: string): object => ({
  title: "Middle form",
  configuration: {
    widgets: { w: { isSystemType: true, bundleAlias: "cards", typeAlias: "simple_card", type: "latest", config: { title: "Middle value", showTitle: true, settings: {}, datasources: [{ type: "entity", entityAliasId: "1", dataKeys: [KEY] }] } } },
    states: { default: { name: "Middle", layouts: { main: { widgets: { w: { sizeX: 6, sizeY: 4, row: 0, col: 0 } }, gridSettings: {} } } } },
    entityAliases: { 1: { id: "1", alias: "Devices", entityType: "DEVICE", entityFilter: { useFilter: false, entityList: [device] } } },
  },
});

async function bringIn(page: Page, program: Program, file: object & { title?: string }, name: string): Promise<void> {
  const path = test.info().outputPath(`${name}.json`);
  writeFileSync(path, JSON.stringify(file));
  await page.goto(`${program.url}/dashboards`);
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Import" }).click();
  await (await choosing).setFiles(path);
}

const region = (page: Page, name: string) => page.getByRole("region", { name, exact: true });

test("files of former years open with their layout and their values", async ({ page, program }) => {
  await program.send(TOKEN, { level: 42.5 });
  const device = await deviceId(program);
  await page.setViewportSize({ width: 1500, height: 900 });
  await logIn(page, program, "TENANT_ADMIN", "/dashboards");
  await bringIn(page, program, oldForm(device), "old");
  await expect(region(page, "Old value").locator("[data-value]")).toHaveText("42.5 %");
  await expect.poll(async () => Number(await region(page, "Old course").locator("[data-points]").getAttribute("data-points"))).toBeGreaterThan(0);
  const [first, second] = await Promise.all([0, 1].map((n) => page.locator("[data-widget]").nth(n).boundingBox()));
  const pitch = ((second?.x ?? 0) - (first?.x ?? 0)) / 5;
  expect(first?.width).toBeCloseTo(5 * pitch - 20, 0);
  expect(second?.height).toBeCloseTo(5 * pitch - 20, 0);
  await expect(page.getByRole("alert").filter({ hasText: "Brought in" })).toContainText("0 widgets as they were made, 2 nearly");
  await page.getByRole("button", { name: "See the report" }).click();
  await expect(page.getByRole("dialog", { name: "How this dashboard is drawn here" })).toContainText("An old type");
  await bringIn(page, program, middleForm(device), "middle");
  await expect(region(page, "Middle value").locator("[data-value]")).toHaveText("42.5 %");
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("button", { name: /^Middle value: / }).press("ArrowRight");
  await page.keyboard.press("Control+s");
  await expect(page.getByText("Nothing to save")).toBeVisible();
  await page.getByRole("button", { name: "Done" }).click();
  await expect(region(page, "Middle value").locator("[data-value]"), "what is saved is in the present form, and shows the same").toHaveText("42.5 %");
});

/** One type of each family of renderers, with what it must show of a level of 42.5. Those without a text need only be no error. */
const FAMILIES: readonly { fqn: string; shows?: string; type?: string; settings?: object; source?: object; keys?: object[] }[] = [
  { fqn: "cards.value_card", shows: "42.5" },
  { fqn: "indoor_temperature_card", shows: "42.5" },
  { fqn: "cards.aggregated_value_card", shows: "42.5", type: "timeseries" },
  { fqn: "simple_humidity_chart_card", shows: "42.5", type: "timeseries" },
  { fqn: "progress_bar", shows: "42.5" },
  { fqn: "cards.attributes_card", shows: "42.5" },
  { fqn: "time_series_chart", type: "timeseries" },
  { fqn: "bar_chart_with_labels", type: "timeseries" },
  { fqn: "range_chart", type: "timeseries" },
  { fqn: "state_chart", type: "timeseries" },
  { fqn: "charts.timeseries_bars_flot", type: "timeseries" },
  { fqn: "cards.timeseries_table", shows: "42.5", type: "timeseries" },
  { fqn: "cards.entities_table", shows: "42.5" },
  { fqn: "device_admin_table", shows: DEVICE },
  { fqn: "alarm_widgets.alarms_table", type: "alarm" },
  { fqn: "cards.html_value_card", shows: "It is 42.5", settings: { cardHtml: "It is ${Level}" } },
  { fqn: "cards.markdown_card", shows: "Level 42.5", settings: { markdownTextPattern: "Level ${Level}" } },
  { fqn: "cards.html_card", shows: "Plain", settings: { cardHtml: "<b>Plain</b>" } },
  { fqn: "entity_count", shows: "1", source: { type: "entityCount", entityAliasId: "a" }, keys: [{ name: "count", type: "count" }] },
  { fqn: "alarm_count", source: { type: "alarmCount", entityAliasId: "a" }, keys: [{ name: "count", type: "count" }] },
  { fqn: "pie", shows: "42.5" },
  { fqn: "charts.radar_chart_js" },
  { fqn: "battery_level" },
  { fqn: "vertical_cylinder_tank" },
  { fqn: "digital_gauges.simple_gauge_justgage" },
  { fqn: "analogue_gauges.radial_gauge_canvas_gauges" },
  { fqn: "map" },
  { fqn: "image_map" },
  { fqn: "trip_map", type: "timeseries" },
  { fqn: "maps_v2.openstreetmap" },
  { fqn: "single_switch", type: "rpc" },
  { fqn: "command_button", type: "rpc" },
  { fqn: "slider", type: "rpc" },
  { fqn: "control_widgets.knob_control", type: "rpc" },
  { fqn: "control_widgets.rpc_debug_terminal", type: "rpc" },
  { fqn: "input_widgets.update_multiple_attributes" },
  { fqn: "input_widgets.update_shared_string_attribute" },
  { fqn: "cards.qr_code", settings: { qrCodeTextPattern: "${entityName}" } },
  { fqn: "navigation_widgets.navigation_card", shows: "Things", settings: { name: "Things", path: "/devices" } },
  { fqn: "navigation_widgets.navigation_cards", shows: "Devices", settings: { filterType: "include", filter: ["/devices"] } },
  { fqn: "home_page_widgets.quick_links", shows: "Devices" },
  { fqn: "home_page_widgets.documentation_links", shows: "REST API" },
  { fqn: "home_page_widgets.dashboards", shows: "Visited lately" },
  { fqn: "home_page_widgets.getting_started", shows: "Build a dashboard" },
  { fqn: "home_page_widgets.usage_info", shows: "Messages of devices" },
  { fqn: "api_usage", shows: "42.5", settings: { dsEntityAliasId: "a", apiUsageDataKeys: [{ label: "Messages", state: "", current: KEY, maxLimit: { ...KEY, name: "most" }, status: { ...KEY, name: "status" } }] }, source: {}, keys: [] },
  { fqn: "date.date_range_navigator", shows: "Length" },
  { fqn: "cards.dashboard_state_widget", shows: "42.5", settings: { stateId: "inner" } },
  { fqn: "html_container", settings: { type: "PLAIN", html: "<p id='made'>Made</p>", js: "" } },
  { fqn: "unread_notifications", shows: "no notification centre" },
  { fqn: "mobile_app_qr_code", shows: "no mobile app" },
  { fqn: "gateway_widgets.config", shows: "gateway_widgets.config" },
];

const STATIC = /navigation|home_page|date_range|state_widget|html_container|unread|mobile_app|html_card$/;

function familyWidget({ fqn, type, settings, source, keys }: (typeof FAMILIES)[number]): object {
  const isStatic = STATIC.test(fqn);
  const datasources = isStatic || (source !== undefined && Object.keys(source).length === 0) ? [] : [{ type: "entity", entityAliasId: "a", ...source, dataKeys: keys ?? [KEY] }];
  return {
    typeFullFqn: `system.${fqn}`,
    type: type ?? (isStatic ? "static" : "latest"),
    config: {
      title: fqn,
      showTitle: true,
      settings: settings ?? {},
      datasources,
      actions: {},
      ...(type === "alarm" ? { alarmSource: { type: "entity", entityAliasId: "a", dataKeys: [] }, alarmFilterConfig: {} } : {}),
      ...(type === "rpc" ? { targetDevice: { type: "entity", entityAliasId: "a" } } : {}),
    },
  };
}

test("each family of renderers shows what is stored, and none ends as an error", async ({ page, program }) => {
  // Some seventy widgets of all kinds at once.
  test.setTimeout(120_000);
  await program.send(TOKEN, { level: 40 });
  await program.send(TOKEN, { level: 42.5 });
  const widgets = Object.fromEntries([
    ...FAMILIES.map((family, n): [string, object] => [`w${n}`, familyWidget(family)]),
    ["inner", { typeFullFqn: "system.cards.simple_card", type: "latest", config: { title: "Inner", showTitle: true, settings: {}, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [KEY] }] } }],
  ]);
  const places = Object.fromEntries(FAMILIES.map((_, n) => [`w${n}`, { col: (n % 6) * 8, row: Math.floor(n / 6) * 8, sizeX: 8, sizeY: 8 }]));
  const { id } = await program.call<Stored>("TENANT_ADMIN", "/api/dashboard", {
    title: "Families",
    configuration: {
      widgets,
      states: {
        default: { name: "All", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 48 } } } },
        inner: { name: "Inner", root: false, layouts: { main: { widgets: { inner: { col: 0, row: 0, sizeX: 24, sizeY: 4 } }, gridSettings: {} } } },
      },
      entityAliases: ALIAS,
      timewindow: WINDOW,
    },
  });
  // All of it is in view at once, so that each widget asks and draws.
  await page.setViewportSize({ width: 2560, height: 3_900 });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}`);
  for (const { fqn, shows } of FAMILIES) {
    const card = region(page, fqn);
    await expect(card, fqn).toBeVisible();
    if (shows !== undefined) {
      await expect(card, fqn).toContainText(shows);
    }
    await expect(card, fqn).not.toContainText(/has failed|The server refused|No entity is chosen/);
  }
  await expect(page.frameLocator('iframe[title="html_container"]').locator("#made")).toHaveText("Made");
  await page.screenshot({ path: "test-results/screens/imported_families.png" });
});

test("cards that are templates show figures of all their sources, lead on, and hold other states", async ({ page, program }) => {
  await program.send(TOKEN, { level: 42.5 });
  const markdown = `<div>
<b class="name" translate>widgets.devices.waiting-long</b>
<i *ngIf="\${many:0} !== 0">There are \${many:0}</i><i *ngIf="\${many:0} === 0">There are none</i>
<a id="all" routerLink="/entities/devices" [queryParams]="{active: false}">\${alarmed:0} alarms</a>
<a routerLink="/tenants">Others</a>
<tb-toggle-header #shown value="one"><tb-toggle-option value="one">First</tb-toggle-option><tb-toggle-option value="two">Second</tb-toggle-option></tb-toggle-header>
<ng-container [ngSwitch]="shown.value"><ng-template [ngSwitchCase]="'one'"><u>Part one</u></ng-template><ng-template [ngSwitchCase]="'two'"><tb-dashboard-state stateId="inner"></tb-dashboard-state></ng-template></ng-container>
</div>`;
  const parts = `<div>
<tb-dashboard-state *ngIf="!ctx.isMobile; else phone" stateId="wide"></tb-dashboard-state><ng-template #phone><s>For phones</s></ng-template>
<ng-template #none><q *ngIf="1 === 2">Never</q><q *ngIf="1 === 1">Instead of it</q></ng-template><q *ngIf="0 === 1; else none">Not this</q>
<tb-configured-features></tb-configured-features><tb-version-info></tb-version-info><tb-usage-info-widget></tb-usage-info-widget>
</div>`;
  const count = (type: string, label: string): object => ({ type, ...(type === "entityCount" ? { entityAliasId: "a" } : { alarmFilterConfig: { statusList: ["ACTIVE"] } }), dataKeys: [{ name: "count", type: "count", label }] });
  const { id } = await program.call<Stored>("TENANT_ADMIN", "/api/dashboard", {
    title: "Templates",
    configuration: {
      widgets: {
        card: { typeFullFqn: "system.cards.markdown_card", type: "latest", config: { title: "Card", showTitle: true, settings: { markdownTextPattern: markdown }, datasources: [count("entityCount", "many"), count("alarmCount", "alarmed")] } },
        table: { typeFullFqn: "system.cards.entities_table", type: "latest", config: { title: "New table", showTitle: true, settings: { entitiesTitle: "Boilers" }, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [KEY] }] } },
        lcd: { typeFullFqn: "system.digital_gauges.lcd_gauge", type: "latest", config: { title: "Paper", showTitle: true, backgroundColor: "#babab2", settings: {}, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [KEY] }] } },
        parts: { typeFullFqn: "system.cards.markdown_card", type: "latest", config: { title: "Parts", showTitle: true, settings: { markdownTextPattern: parts }, datasources: [] } },
        wide: { typeFullFqn: "system.cards.html_card", type: "static", config: { title: "Wide card", showTitle: true, settings: { cardHtml: "<b>For desks</b>" } } },
        value: { typeFullFqn: "system.cards.simple_card", type: "latest", config: { title: "Inner", showTitle: true, settings: {}, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [KEY] }] } },
      },
      states: {
        default: { name: "All", root: true, layouts: { main: { widgets: { card: { col: 0, row: 0, sizeX: 12, sizeY: 10 }, table: { col: 12, row: 0, sizeX: 12, sizeY: 6 }, lcd: { col: 12, row: 6, sizeX: 6, sizeY: 4 }, parts: { col: 18, row: 6, sizeX: 6, sizeY: 8 } }, gridSettings: {} } } },
        wide: { name: "Wide", root: false, layouts: { main: { widgets: { wide: { col: 0, row: 0, sizeX: 24, sizeY: 6 } }, gridSettings: {} } } },
        inner: { name: "Inner", root: false, layouts: { main: { widgets: { value: { col: 0, row: 0, sizeX: 24, sizeY: 6 } }, gridSettings: {} } } },
      },
      entityAliases: ALIAS,
    },
  });
  await page.emulateMedia({ colorScheme: "dark" });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}`);
  const card = region(page, "Card");
  await expect(card.getByText("Waiting long")).toBeVisible();
  await expect(card.getByText("There are 1", { exact: true })).toBeVisible();
  await expect(card.getByText("There are none")).toHaveCount(0);
  await expect(card.getByRole("link", { name: "Others" }), "that screen is not for this role").toHaveCount(0);
  await expect(card.getByText("Part one")).toBeVisible();
  await expect(region(page, "Wide card").getByText("For desks")).toBeVisible();
  const shown = region(page, "Parts");
  await expect(shown.getByText("For phones"), "what stands for a narrow page alone").toHaveCount(0);
  await expect(shown.locator("q"), "a branch before what takes it").toHaveText(["Instead of it"]);
  await expect(shown.getByText("System administrators see this.")).toHaveCount(1);
  await expect(shown.getByText(/^Version \d/)).toBeVisible();
  await expect(shown.getByText("Messages of devices")).toBeVisible();
  await card.getByRole("button", { name: "Second" }).click();
  await expect(card.getByText("Part one")).toHaveCount(0);
  await expect(region(page, "Inner").locator("[data-value]")).toHaveText("42.5 %");
  await expect(region(page, "Boilers")).toBeVisible();
  await expect(region(page, "Paper").getByRole("heading"), "dark letters on a light ground, in the dark theme, too").toHaveCSS("color", "rgba(0, 0, 0, 0.87)");
  await card.getByRole("link", { name: "0 alarms" }).click();
  await expect(page).toHaveURL(/\/entities\/devices\?active=false$/);
});
