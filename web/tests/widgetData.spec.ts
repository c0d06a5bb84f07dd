// What a widget shows is set beside it: several sources in order, keys with their aggregation and functions, made-up values, counts.

import type { Locator, Page } from "@playwright/test";
import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

interface Source {
  type: string;
  deviceId?: string;
  dataKeys: { name: string; [field: string]: unknown }[];
  [field: string]: unknown;
}

interface Board {
  id: { id: string };
  configuration: { widgets: Record<string, { config: { datasources: Source[] } }> };
}

const ALIASES = { c: { id: "c", alias: "Counted", filter: { type: "deviceType", deviceTypes: ["boiler3"], resolveMultiple: true } }, a: { id: "a", alias: "Boilers", filter: { type: "deviceType", deviceTypes: ["boiler"], resolveMultiple: true } } };
const places = { w: { col: 0, row: 0, sizeX: 12, sizeY: 8 } };

async function open(page: Page, program: Program, widget: object): Promise<{ id: string; panel: Locator }> {
  const configuration = { widgets: { w: widget }, entityAliases: ALIASES, states: { default: { name: "One", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } } };
  const { id } = await program.call<Board>("TENANT_ADMIN", "/api/dashboard", { title: "Data of widgets", configuration });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: /^W: / }).click();
  return { id: id.id, panel: page.getByRole("complementary", { name: "The chosen widget" }) };
}

async function choose(page: Page, within: Locator, name: string, option: string): Promise<void> {
  await within.getByRole("combobox", { name, exact: true }).click();
  await page.getByRole("option", { name: option, exact: true }).click();
}

async function saved(page: Page, program: Program, id: string): Promise<Source[]> {
  await page.getByRole("button", { name: "Save", exact: true }).first().click();
  await expect(page.getByText("Nothing to save")).toBeVisible();
  const { configuration } = await program.call<Board>("TENANT_ADMIN", `/api/dashboard/${id}`);
  return configuration.widgets["w"]?.config.datasources ?? [];
}

/** A device with a value, by its access token. */
async function boiler(program: Program, name: string, type: string, value: number): Promise<string> {
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name, type });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${id.id}/credentials`);
  await program.send(credentialsId, { temperature: value });
  return credentialsId;
}

/** Drags a row by its handle to the end of the row before it, which may be taller than the window. */
async function drag(page: Page, handle: Locator, to: Locator): Promise<void> {
  await handle.hover();
  await page.mouse.down();
  const target = await to.boundingBox();
  const [x, y] = [(target?.x ?? 0) + 30, (target?.y ?? 0) + (target?.height ?? 0) - 5];
  await page.mouse.move(x, y, { steps: 5 });
  await page.mouse.up();
}

test("a chart has the sources of an alias and of a device, in the order of its editor", async ({ page, program }) => {
  test.setTimeout(240_000);
  await boiler(program, "Boiler one", "boiler", 20);
  await boiler(program, "Lonely pump", "pump", 30);
  const { id, panel } = await open(page, program, { typeFullFqn: "system.time_series_chart", type: "timeseries", config: { title: "W", settings: {}, strange: { kept: true }, datasources: [{ type: "entity", entityAliasId: "a", strange: 7, dataKeys: [] }] } });
  const first = panel.getByRole("group", { name: "Source 1", exact: true });
  await first.getByRole("button", { name: "Add a key" }).click();
  await first.getByLabel("Key", { exact: true }).click();
  await page.getByRole("option", { name: "temperature" }).click();
  await panel.getByRole("button", { name: "Add a source" }).click();
  const second = panel.getByRole("group", { name: "Source 2", exact: true });
  await choose(page, second, "Kind of source", "One device");
  await second.getByRole("combobox", { name: "Device", exact: true }).fill("Lonely");
  await page.getByRole("option", { name: "Lonely pump" }).click();
  await second.getByRole("button", { name: "Add a key" }).click();
  await second.getByLabel("Key", { exact: true }).fill("temperature");
  await page.keyboard.press("Escape");
  const legend = (name: string) => page.getByRole("region", { name: "W" }).locator("button[aria-pressed]", { hasText: name });
  await expect(legend("Boiler one: temperature")).toBeVisible();
  await expect(legend("Lonely pump: temperature")).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/widget_sources.png" });

  const handle = panel.getByRole("button", { name: "Source 2: place 2 of 2" });
  await handle.press("ArrowUp");
  await expect(panel.getByRole("button", { name: "Source 1: place 1 of 2" }), "what is moved keeps the focus").toBeFocused();
  await expect(first.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("Lonely pump");
  await drag(page, handle, first);
  await expect(first.getByRole("combobox", { name: "Data of" }), "dragged back").toHaveValue("Boilers");
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await expect(first.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("Lonely pump");
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await expect(first.getByRole("combobox", { name: "Data of" })).toHaveValue("Boilers");
  await page.getByRole("button", { name: "Redo", exact: true }).click();
  await expect(first.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("Lonely pump");
  const sources = await saved(page, program, id);
  expect(sources).toMatchObject([{ type: "device", dataKeys: [{ name: "temperature", type: "timeseries", label: "temperature" }] }, { type: "entity", entityAliasId: "a", strange: 7 }]);
  await panel.getByRole("button", { name: "Remove: Source 1" }).click();
  await expect(legend("Lonely pump")).toHaveCount(0);
});

test("a card shows the greatest value of its window, and what a function makes of another", async ({ page, program }) => {
  test.setTimeout(240_000);
  const token = await boiler(program, "Boiler two", "boiler2", 5);
  await program.send(token, { temperature: 41 });
  await program.send(token, { temperature: 12 });
  const today = { selectedTab: 1, history: { historyType: 0, timewindowMs: 3_600_000, interval: 60_000 }, aggregation: { type: "NONE", limit: 1_000 } };
  const device = (await program.call<{ data: { id: { id: string } }[] }>("TENANT_ADMIN", "/api/tenant/devices?pageSize=1&page=0&textSearch=Boiler%20two")).data[0]?.id.id ?? "";
  const { id, panel } = await open(page, program, { typeFullFqn: "system.cards.attributes_card", type: "latest", config: { title: "W", settings: {}, useDashboardTimewindow: false, timewindow: today, datasources: [{ type: "device", deviceId: device, dataKeys: [{ name: "temperature", type: "timeseries", label: "temperature", settings: {}, strange: 1 }] }] } });
  const card = page.getByRole("region", { name: "W" });
  await expect(card).toContainText("12");
  await choose(page, panel, "Shows", "Greatest value of the window");
  await expect(card).toContainText("41");
  await panel.getByRole("button", { name: "Add a key" }).click();
  const key = panel.getByRole("group", { name: "New key" });
  await key.getByLabel("Key", { exact: true }).fill("temperature");
  await page.keyboard.press("Escape");
  const both = panel.getByRole("group", { name: "temperature", exact: true });
  await both.nth(1).getByRole("textbox", { name: "Label", exact: true }).fill("Doubled");
  await both.nth(1).getByRole("switch", { name: "A function processes the values" }).click();
  const code = panel.getByRole("textbox", { name: "Function that processes the values" });
  await code.fill("return value * 2;");
  await both.nth(1).getByRole("button", { name: "Try it" }).click();
  await expect(both.nth(1).getByRole("status")).toHaveText("12 → 24");
  await expect(card).toContainText("24");
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/widget_key.png" });
  const [source] = await saved(page, program, id);
  expect(source?.dataKeys).toMatchObject([
    { name: "temperature", aggregationType: "MAX", strange: 1 },
    { name: "temperature", label: "Doubled", usePostProcessing: true, postFuncBody: "return value * 2;" },
  ]);
  // Undoing goes back step by step, and the editor of the function follows.
  await panel.getByRole("button", { name: "temperature: place 2 of 2" }).press("ArrowUp");
  await expect(both.nth(0).getByRole("textbox", { name: "Label", exact: true })).toHaveValue("Doubled");
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await expect(both.nth(1).getByRole("textbox", { name: "Label", exact: true })).toHaveValue("Doubled");
  const handle = panel.getByRole("button", { name: "temperature: place 2 of 2" });
  await drag(page, handle, both.nth(0));
  await expect(both.nth(0).getByRole("textbox", { name: "Label", exact: true })).toHaveValue("Doubled");
});

test("functions make up values, and entities and alarms are counted", async ({ page, program }) => {
  test.setTimeout(240_000);
  await boiler(program, "Boiler three", "boiler3", 1);
  await boiler(program, "Boiler four", "boiler3", 1);
  const { id, panel } = await open(page, program, { typeFullFqn: "system.cards.value_card", type: "latest", config: { title: "W", settings: {}, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [] }] } });
  const card = page.getByRole("region", { name: "W" });
  await choose(page, panel, "Kind of source", "Values made up by functions");
  await panel.getByRole("button", { name: "More of Sin" }).click();
  await panel.getByRole("textbox", { name: "Function that makes its values" }).fill("return 4711 + prevValue * 0;");
  await panel.getByRole("button", { name: "Try it" }).click();
  await expect(panel.getByRole("status")).toHaveText("0 → 4711");
  await expect(card).toContainText("4711");
  await expect(panel.getByRole("button", { name: "Add a key" }), "this kind of card draws one key").toHaveCount(0);
  await choose(page, panel, "Drawn as", "Chart over time");
  await expect(card.locator("button[aria-pressed]", { hasText: "Sin" })).toBeVisible();
  await expect(card, "the course is made up over the whole window").toContainText("4711");
  await page.emulateMedia({ colorScheme: "dark" });
  // What was filled in has the colour of the light page; the editor begins anew.
  await panel.getByRole("button", { name: "More of Sin" }).click();
  await panel.getByRole("button", { name: "More of Sin" }).click();
  await expect(panel.getByRole("textbox", { name: "Function that makes its values" })).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/widget_made_up_dark.png" });
  await page.getByRole("button", { name: "Undo", exact: true }).click();

  await choose(page, panel, "Kind of source", "Number of entities");
  await choose(page, panel, "Drawn as", "Number of entities");
  await expect(panel.getByRole("combobox", { name: "Drawn as" })).toHaveValue("Number of entities");
  await choose(page, panel, "Data of", "Counted");
  await expect(card.locator("[data-value]")).toHaveText("2");
  expect(await saved(page, program, id)).toMatchObject([{ type: "entityCount", entityAliasId: "c", dataKeys: [{ name: "count", type: "count" }] }]);
});
