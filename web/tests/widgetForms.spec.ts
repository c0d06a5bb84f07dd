// Widgets are set by forms: what is set changes what is drawn at once, and holds when the dashboard is saved and opened again.

import type { Locator, Page } from "@playwright/test";
import { findings } from "./axe";
import { expect, logIn, test } from "./program";

interface Board {
  id: { id: string };
  configuration: { widgets: Record<string, { config: { settings: Record<string, unknown> } }> };
}

const TOKEN = "A1_TEST_TOKEN";
const key = (name: string): object => ({ name, type: "timeseries", label: name, color: name === "level" ? "#2196f3" : "#ff9800", settings: {} });
const alias = { id: "a", alias: "Device", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1" } };
const widget = (fqn: string, title: string, keys: readonly string[], settings: object = {}): object => ({
  typeFullFqn: `system.${fqn}`, type: "latest", config: { title, settings, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: keys.map(key) }] },
});
const target = { targetDevice: { type: "entity", entityAliasId: "a" } };
const WIDGETS = {
  ring: widget("doughnut", "Ring", ["level", "other"]),
  tank: widget("vertical_cylinder_tank", "Tank", ["level"]),
  battery: widget("battery_level", "Battery", ["level"]),
  status: { typeFullFqn: "system.status_widget", type: "rpc", config: { title: "Status", settings: { initialState: { action: "DO_NOTHING", defaultValue: true } }, ...target } },
  halves: { typeFullFqn: "system.two_segment_button", type: "latest", config: { title: "Halves", settings: {}, datasources: [], ...target } },
  wind: widget("wind_speed_and_direction", "Wind", ["level", "other"]),
  pins: { typeFullFqn: "system.gpio_widgets.basic_gpio_control", type: "rpc", config: { title: "Pins", settings: {}, ...target } },
  cards: { typeFullFqn: "system.navigation_widgets.navigation_cards", type: "static", config: { title: "Cards", settings: {} } },
};
const places = Object.fromEntries(Object.keys(WIDGETS).map((id, n) => [id, { col: (n % 3) * 8, row: Math.floor(n / 3) * 5, sizeX: 8, sizeY: 5 }]));
const state = (name: string, root: boolean, widgets: object): object => ({ name, root, layouts: { main: { widgets, gridSettings: { columns: 24 } } } });
const CONFIGURATION = { widgets: WIDGETS, entityAliases: { a: alias }, states: { default: state("All", true, places), other: state("The other one", false, {}) } };

async function choose(page: Page, within: Locator, name: string, option: string): Promise<void> {
  await within.getByRole("combobox", { name, exact: true }).first().click();
  await page.getByRole("option", { name: option, exact: true }).click();
}

test("widgets that had raw settings alone are set by forms, and stay so", async ({ page, program }) => {
  test.setTimeout(240_000);
  await page.setViewportSize({ width: 1500, height: 1100 });
  await program.send(TOKEN, { level: 40, other: 20 });
  const { id } = await program.call<Board>("TENANT_ADMIN", "/api/dashboard", { title: "Forms of all types", configuration: CONFIGURATION });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  const panel = page.getByRole("complementary", { name: "The chosen widget" });
  const drawn = (name: string): Locator => page.getByRole("region", { name, exact: true });
  const open = async (name: string): Promise<void> => {
    await page.getByRole("button", { name: new RegExp(`^${name}: `) }).click();
    await expect(panel.getByLabel("Title", { exact: true })).toHaveValue(name);
    await expect(panel.getByRole("heading", { name: "Settings" })).toBeVisible();
  };

  await open("Ring");
  await expect(drawn("Ring").locator("svg").getByText("60", { exact: true })).toHaveCount(0);
  await choose(page, panel, "In the middle", "The total");
  await expect(drawn("Ring").locator("svg").getByText("60", { exact: true })).toBeVisible();
  await panel.getByRole("checkbox", { name: "Show the legend" }).click();
  await expect(drawn("Ring").getByRole("button", { name: "level" })).toHaveCount(0);
  await expect(panel.getByRole("combobox", { name: "It stands" })).toHaveCount(0);
  await page.screenshot({ path: "test-results/screens/form_ring.png" });

  await open("Tank");
  await expect(drawn("Tank").locator("svg")).toContainText("40 %");
  await choose(page, panel, "Look", "With the amount");
  await choose(page, panel, "Written in", "L");
  await expect(drawn("Tank").locator("svg")).toContainText("200 L");
  await panel.getByRole("textbox", { name: "Volume of the tank" }).fill("1000");
  await expect(drawn("Tank").locator("svg")).toContainText("400 L");
  const outline = await drawn("Tank").locator("svg > path").getAttribute("d");
  await choose(page, panel, "Shape of the tank", "Lying ellipse");
  await expect(drawn("Tank").locator("svg > path")).not.toHaveAttribute("d", outline ?? "");
  await page.screenshot({ path: "test-results/screens/form_tank.png" });

  await open("Battery");
  await expect(drawn("Battery").locator("svg g g")).toHaveCount(1);
  await choose(page, panel, "Look", "Lying, in parts");
  await panel.getByRole("textbox", { name: "Number of parts" }).fill("6");
  await expect(drawn("Battery").locator("svg g g")).toHaveCount(6);

  await open("Status");
  await expect(drawn("Status").getByRole("img")).toHaveAttribute("data-value", "On");
  await panel.getByRole("textbox", { name: "Word for it", exact: true }).first().fill("Running");
  await panel.getByRole("textbox", { name: "Label", exact: true }).first().fill("Pump one");
  await expect(drawn("Status").getByRole("img", { name: "Pump one: Running" })).toBeVisible();
  await page.screenshot({ path: "test-results/screens/form_status.png" });

  await open("Halves");
  await panel.getByRole("textbox", { name: "Label", exact: true }).last().fill("Details");
  await choose(page, panel, "Corners", "Round");
  await panel.getByRole("combobox", { name: "A click" }).last().click();
  await page.getByRole("option", { name: "Opens a state", exact: true }).click();
  await choose(page, panel, "State", "The other one");
  await expect(drawn("Halves").getByRole("button", { name: "Details" })).toBeVisible();
  await page.screenshot({ path: "test-results/screens/form_halves.png" });

  await open("Wind");
  await expect(drawn("Wind").locator("svg").getByText("NE", { exact: true })).toHaveCount(0);
  await choose(page, panel, "Look", "With eight directions");
  await expect(drawn("Wind").locator("svg").getByText("NE", { exact: true })).toBeVisible();

  await open("Pins");
  const pins = panel.getByRole("group", { name: "Pins", exact: true });
  await pins.getByRole("button", { name: "Add to: Pins" }).click();
  await pins.getByRole("textbox", { name: "Number of the pin" }).fill("7");
  await pins.getByRole("textbox", { name: "Label", exact: true }).fill("Lamp");
  await expect(drawn("Pins").getByRole("switch", { name: "Lamp" })).toBeVisible();
  await page.screenshot({ path: "test-results/screens/form_pins.png" });

  await open("Cards");
  await choose(page, panel, "Shows", "Only these");
  await panel.getByRole("combobox", { name: "Screens", exact: true }).press("ArrowDown");
  await page.getByRole("option", { name: "Rule chains", exact: true }).click();
  await page.keyboard.press("Escape");
  await expect(drawn("Cards").getByRole("link")).toHaveText(["Rule chains"]);
  expect(await findings(page)).toEqual([]);

  await page.getByRole("button", { name: "Save", exact: true }).first().click();
  await expect(page.getByText("Nothing to save")).toBeVisible();
  const { configuration } = await program.call<Board>("TENANT_ADMIN", `/api/dashboard/${id.id}`);
  expect(Object.fromEntries(Object.entries(configuration.widgets).map(([name, { config }]) => [name, config.settings]))).toMatchObject({
    ring: { layout: "with_total", showLegend: false },
    tank: { layout: "absolute", units: "L", volumeConstant: 1000, selectedShape: "Horizontal Ellipse", liquidColor: { type: "constant" } },
    battery: { layout: "horizontal_divided", sectionsCount: 6 },
    status: { initialState: { action: "DO_NOTHING" }, onState: { label: "Pump one", status: "Running" } },
    halves: { appearance: { layout: "rounded", rightAppearance: { label: "Details" } }, rightButtonClick: { type: "openDashboardState", targetDashboardStateId: "other" } },
    wind: { layout: "advanced" },
    pins: { gpioList: [{ pin: 7, label: "Lamp", row: 0, col: 0 }] },
    cards: { filterType: "include", filter: ["/ruleChains"] },
  });

  await page.goto(`${program.url}/dashboards/${id.id}`);
  await expect(drawn("Tank").locator("svg")).toContainText("400 L");
  await expect(drawn("Ring").locator("svg").getByText("60", { exact: true })).toBeVisible();
  await expect(drawn("Battery").locator("svg g g")).toHaveCount(6);
  await expect(drawn("Status").getByRole("img", { name: "Pump one: Running" })).toBeVisible();
  await page.screenshot({ path: "test-results/screens/form_all.png" });
  await drawn("Halves").getByRole("button", { name: "Details" }).click();
  await expect(page).toHaveURL(/state=/);
});
