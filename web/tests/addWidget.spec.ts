// Any type of widget is found and added: what is drawn here, what the tenant has made, bundles, and symbols.

import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

const EMPTY = { states: { default: { name: "Default", root: true, layouts: { main: { widgets: {}, gridSettings: { columns: 24 } } } } } };
const SYMBOL = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:tb="https://thingsboard.io/svg" viewBox="0 0 100 100"><tb:metadata xmlns=""><![CDATA[${JSON.stringify({ title: "Feed pump", widgetSizeX: 3, widgetSizeY: 4, tags: [], behavior: [], properties: [] })}]]></tb:metadata><circle cx="50" cy="50" r="40" fill="#3388ff"/></svg>`;
const PICTURE = "data:image/svg+xml;utf8," + encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20" fill="#245"/></svg>');

interface Board {
  id: { id: string };
  configuration: { widgets: Record<string, { typeFullFqn: string; sizeX: number; sizeY: number; config: Record<string, unknown> }> };
}

const create = (program: Program, title: string): Promise<Board> => program.call("TENANT_ADMIN", "/api/dashboard", { title, configuration: EMPTY });
const own = (program: Program, name: string, more: object = {}): Promise<{ id: { id: string } }> =>
  program.call("TENANT_ADMIN", "/api/widgetType", {
    name,
    description: `What ${name} is for`,
    ...more,
    descriptor: { type: "latest", sizeX: 7, sizeY: 3, resources: [], templateHtml: `<b id="made">drawn by ${name}</b>`, templateCss: "", controllerScript: "self.onInit = function() {};", defaultConfig: JSON.stringify({ title: `The ${name}`, settings: { kept: 1 } }) },
  });

test("a kind behind the frequent ones is found by keys alone, and drawn", async ({ page, program }) => {
  test.setTimeout(120_000);
  const { id } = await create(program, "Of many kinds");
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: "Add a widget" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Add a widget" });
  const search = dialog.getByRole("combobox", { name: "Search widgets" });
  await expect(search).toBeFocused();
  await expect(dialog.getByRole("menuitem", { name: "Value", exact: true })).toBeVisible();
  await expect(dialog.getByRole("status").filter({ hasText: "widgets" })).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await search.fill("doughnut");
  await expect(dialog.getByRole("option", { name: "Doughnut with its legend beside it" })).toBeVisible();
  await search.fill("pie");
  await expect(dialog.getByRole("option", { selected: true })).toContainText("Pie");
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/add_widget_search.png" });
  await search.press("Enter");
  await expect(dialog).toBeHidden();
  const panel = page.getByRole("complementary", { name: "The chosen widget" });
  await expect(panel.getByLabel("Title", { exact: true })).toHaveValue("Pie");
  await panel.getByRole("combobox", { name: "Choose an entity" }).fill("Test Device A1");
  await page.getByRole("option", { name: "Test Device A1" }).click();
  await panel.getByRole("button", { name: "Add a key" }).click();
  await panel.getByLabel("Key", { exact: true }).fill("temperature");
  await program.send("A1_TEST_TOKEN", { temperature: 20.5 });
  await expect(page.getByRole("region", { name: "Pie" }).locator("svg path").first()).toBeVisible();

  await page.getByRole("button", { name: "Add a widget" }).click();
  await dialog.getByText("Control", { exact: true }).first().click();
  await expect(dialog.getByRole("menuitem", { name: "Value", exact: true })).toHaveCount(0);
  await search.fill("lamp");
  await dialog.getByRole("option", { name: /LED indicator/ }).click();
  await expect(panel.getByLabel("Title", { exact: true })).toHaveValue("LED indicator");
  await expect(page.getByRole("region", { name: "LED indicator" })).toBeVisible();
  await page.getByRole("button", { name: "Add a widget" }).click();
  await search.fill("nothing of that name");
  await expect(dialog.getByText("Nothing matches the search.")).toBeVisible();
  await search.press("Escape");
  await expect(dialog).toBeHidden();
});

test("a tenant's own type is placed as it says it begins, from its bundle, too", async ({ page, program }) => {
  test.setTimeout(120_000);
  const type = await own(program, "Meter of ours", { image: PICTURE, tags: ["hydrant"] });
  await own(program, "Meter of old", { deprecated: true });
  const bundle = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/widgetsBundle", { title: "Waterworks", description: "All for water" });
  await fetch(`${program.url}/api/widgetsBundle/${bundle.id.id}/widgetTypes`, { method: "POST", headers: { "X-Authorization": `Bearer ${await program.token("TENANT_ADMIN")}`, "Content-Type": "application/json" }, body: JSON.stringify([type.id.id]) });
  const { id } = await create(program, "Of our own kinds");
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: "Add a widget" }).click();
  const dialog = page.getByRole("dialog", { name: "Add a widget" });
  const search = dialog.getByRole("combobox", { name: "Search widgets" });
  await search.fill("meter");
  const option = dialog.getByRole("option", { name: /Meter of ours/ });
  await expect(option).toContainText("What Meter of ours is for");
  await expect(option.locator("img")).toBeVisible();
  await expect(dialog.getByRole("option", { name: /Meter of old/ })).toHaveCount(0);
  await dialog.getByRole("switch", { name: "Deprecated, too" }).click();
  await expect(dialog.getByRole("option", { name: /Meter of old/ })).toContainText("Deprecated");
  await search.fill("hydrant");
  await expect(dialog.getByRole("option")).toHaveCount(1);
  await option.click();
  const panel = page.getByRole("complementary", { name: "The chosen widget" });
  await expect(panel.getByLabel("Title", { exact: true })).toHaveValue("The Meter of ours");
  await expect(page.frameLocator('iframe[title="The Meter of ours"]').locator("#made")).toHaveText("drawn by Meter of ours");

  await page.getByRole("button", { name: "Add a widget" }).click();
  await dialog.getByRole("button", { name: "Waterworks" }).click();
  await expect(dialog.getByRole("heading", { name: "Waterworks" })).toBeVisible();
  await expect(dialog.getByRole("option")).toHaveCount(1);
  await expect(search).toBeFocused();
  await search.press("ArrowDown");
  await search.press("Enter");
  await expect(dialog).toBeHidden();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Nothing to save")).toBeVisible();
  const { configuration } = await program.call<Board>("TENANT_ADMIN", `/api/dashboard/${id.id}`);
  const widgets = Object.values(configuration.widgets);
  expect(widgets).toHaveLength(2);
  for (const widget of widgets) {
    expect(widget).toMatchObject({ typeFullFqn: "tenant.meter_of_ours", type: "latest", sizeX: 7, sizeY: 3, config: { title: "The Meter of ours", settings: { kept: 1 } } });
  }
});

test("a symbol of the gallery is placed with its size", async ({ page, program }) => {
  const link = await program.symbol("TENANT_ADMIN", "Pump of the gallery", SYMBOL);
  const { id } = await create(program, "Of symbols");
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: "Add a widget" }).click();
  const dialog = page.getByRole("dialog", { name: "Add a widget" });
  await dialog.getByRole("button", { name: "SCADA symbols" }).click();
  await dialog.getByRole("option", { name: /Pump of the gallery/ }).click();
  await expect(page.frameLocator('iframe[title="Feed pump"]').locator("circle")).toBeVisible();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Nothing to save")).toBeVisible();
  const { configuration } = await program.call<Board>("TENANT_ADMIN", `/api/dashboard/${id.id}`);
  expect(Object.values(configuration.widgets)).toMatchObject([{ typeFullFqn: "system.scada_symbol", type: "rpc", sizeX: 3, sizeY: 4, config: { settings: { scadaSymbolUrl: `tb-image;${link}` } } }]);
});

test("a library of hundreds of types is drawn part by part", async ({ page, program }) => {
  test.setTimeout(120_000);
  const token = await program.token("TENANT_ADMIN");
  for (let n = 0; n < 120; n++) {
    await fetch(`${program.url}/api/widgetType`, { method: "POST", headers: { "X-Authorization": `Bearer ${token}`, "Content-Type": "application/json" }, body: JSON.stringify({ name: `Many ${String(n).padStart(3, "0")}`, descriptor: { type: "latest", sizeX: 4, sizeY: 3, templateHtml: "<b></b>", controllerScript: "", defaultConfig: "{}" } }) });
  }
  const { id } = await create(program, "Of hundreds");
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: "Add a widget" }).click();
  const dialog = page.getByRole("dialog", { name: "Add a widget" });
  const search = dialog.getByRole("combobox", { name: "Search widgets" });
  await search.fill("many");
  await expect(dialog.getByRole("status").filter({ hasText: "120 widgets" })).toBeVisible();
  expect(await dialog.getByRole("option").count()).toBeLessThan(30);
  for (let n = 0; n < 30; n++) {
    await search.press("PageDown");
    await expect(dialog.getByRole("option", { selected: true })).toHaveCount(1);
  }
  await expect(dialog.getByRole("option", { selected: true })).toContainText("Many 119");
  await search.press("Enter");
  await expect(page.getByRole("complementary", { name: "The chosen widget" }).getByLabel("Title", { exact: true })).toHaveValue("Many 119");
});
