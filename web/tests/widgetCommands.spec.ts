// What is done with chosen widgets in the editor of dashboards: cut, style, files; and what dashboards say of their toolbar.

import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { expect, logIn, test, type Program } from "./program";

interface Stored {
  id: { id: string };
  image?: string;
  configuration: { settings?: Record<string, unknown>; widgets: Record<string, { config: Record<string, unknown> }>; entityAliases?: Record<string, { alias: string }> };
}

const VALUE = { typeFullFqn: "system.cards.markdown_card", type: "latest", sizeX: 4, sizeY: 3 };
const value = (title: string, config: object = {}): object => ({ ...VALUE, config: { title, datasources: [{ type: "entity", entityAliasId: "6f0d6c52-0000-4000-8000-000000000001", dataKeys: [] }], settings: { markdownTextPattern: `Text of ${title}` }, ...config } });
const TWO = {
  widgets: { a: value("A", { backgroundColor: "rgb(10, 20, 30)", titleColor: "rgb(200, 210, 220)" }), b: value("B") },
  entityAliases: { "6f0d6c52-0000-4000-8000-000000000001": { id: "6f0d6c52-0000-4000-8000-000000000001", alias: "Pumps", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Pump", resolveMultiple: true } } },
  states: { default: { name: "Default", root: true, layouts: { main: { widgets: { a: { col: 0, row: 0, sizeX: 4, sizeY: 3 }, b: { col: 4, row: 0, sizeX: 4, sizeY: 3 } }, gridSettings: { columns: 24 } } } } },
};

const create = (program: Program, configuration: object): Promise<Stored> => program.call("TENANT_ADMIN", "/api/dashboard", { title: "Commands", configuration });
const stored = (program: Program, { id }: Stored): Promise<Stored> => program.call("TENANT_ADMIN", `/api/dashboard/${id.id}`);

async function open(page: Page, program: Program, { id }: Stored): Promise<void> {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: program.url });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
}

const cover = (page: Page, name: string) => page.getByRole("button", { name: new RegExp(`^${name}: `) });

async function choose(page: Page, name: string, item: string): Promise<void> {
  await cover(page, name).click({ button: "right" });
  await page.getByRole("menuitem", { name: item }).click();
}

async function save(page: Page): Promise<void> {
  await page.keyboard.press("Control+s");
  await expect(page.getByText("Nothing to save")).toBeVisible();
}

test("a widget is cut and pasted, and its style goes to another one", async ({ page, program }) => {
  const dashboard = await create(program, TWO);
  await open(page, program, dashboard);
  await choose(page, "A", "Copy style");
  await expect(page.getByText("Style copied")).toBeVisible();
  await choose(page, "B", "Paste style");
  await save(page);
  expect((await stored(program, dashboard)).configuration.widgets["b"]?.config).toMatchObject({ title: "B", backgroundColor: "rgb(10, 20, 30)", titleColor: "rgb(200, 210, 220)" });

  await cover(page, "A").click();
  await page.keyboard.press("Control+x");
  await expect(cover(page, "A")).toHaveCount(0);
  await page.keyboard.press("Control+v");
  await expect(cover(page, "A")).toHaveCount(1);
  // Edit leads to the settings.
  await choose(page, "B", "Edit");
  await expect(page.getByRole("complementary", { name: "The chosen widget" }).getByLabel("Title", { exact: true })).toBeFocused();
});

test("without a clipboard of the browser, widgets are copied within the tab, and nothing is done with none", async ({ page, program }) => {
  const dashboard = await create(program, TWO);
  await page.addInitScript(() => Object.defineProperty(Navigator.prototype, "clipboard", { get: () => undefined }));
  await open(page, program, dashboard);
  await expect(cover(page, "A")).toBeVisible();
  for (const key of ["Control+d", "Control+c", "Control+x", "Delete"]) {
    await page.keyboard.press(key);
  }
  await expect(page.getByText("Nothing to save")).toBeVisible();
  await expect(page.getByText("There is nothing to paste")).toHaveCount(0);
  await cover(page, "A").click();
  await page.keyboard.press("Control+c");
  await expect(page.getByText("1 copied. It can be pasted in this tab alone")).toBeVisible();
  await page.keyboard.press("Control+v");
  await expect(cover(page, "A")).toHaveCount(2);
});

test("a widget is exported as ThingsBoard does it, and imported into another dashboard", async ({ page, program }) => {
  const dashboard = await create(program, TWO);
  await open(page, program, dashboard);
  const saving = page.waitForEvent("download");
  await choose(page, "A", "Export");
  const download = await saving;
  expect(download.suggestedFilename()).toBe("A.json");
  const file = test.info().outputPath("A.json");
  await download.saveAs(file);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
    widget: { typeFullFqn: VALUE.typeFullFqn, type: "latest", config: { title: "A" } },
    aliasesInfo: { datasourceAliases: { 0: { alias: "Pumps", filter: { entityNameFilter: "Pump" } } } },
    originalSize: { sizeX: 4, sizeY: 3 },
    originalColumns: 24,
  });

  const other = await create(program, { ...TWO, widgets: {}, entityAliases: {}, states: { default: { name: "Default", root: true, layouts: { main: { widgets: {}, gridSettings: { columns: 24 } } } } } });
  await page.goto(`${program.url}/dashboards/${other.id.id}?edit=true`);
  await page.getByRole("button", { name: "Add a widget" }).click();
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "From a file" }).click();
  await (await choosing).setFiles({ name: "other.json", mimeType: "application/json", buffer: Buffer.from("{}") });
  await expect(page.getByText("This file has no widget.")).toBeVisible();
  const again = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "From a file" }).click();
  await (await again).setFiles(file);
  await expect(cover(page, "A")).toBeVisible();
  await save(page);
  const { configuration } = await stored(program, other);
  expect(Object.values(configuration.entityAliases ?? {}).map(({ alias }) => alias)).toEqual(["Pumps"]);
  expect(Object.values(configuration.widgets).map(({ config }) => config["title"])).toEqual(["A"]);
});

test("a toolbar that is not always open is opened by whoever needs it, and a dashboard has a picture", async ({ page, program }) => {
  const dashboard = await create(program, TWO);
  await open(page, program, dashboard);
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("tab", { name: "Toolbar" }).click();
  await page.getByRole("dialog").getByLabel("Toolbar always open").uncheck();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await save(page);
  expect((await stored(program, dashboard)).configuration.settings).toMatchObject({ toolbarAlwaysOpen: false });
  await page.getByRole("button", { name: "Done" }).click();
  await expect(page.getByRole("button", { name: "Full screen" })).toHaveCount(0);
  await page.getByRole("button", { name: "Open the toolbar" }).click();
  await expect(page.getByRole("button", { name: "Full screen" })).toBeVisible();
  await page.getByRole("button", { name: "Fold the toolbar" }).click();
  await expect(page.getByRole("button", { name: "Full screen" })).toHaveCount(0);

  await page.goto(`${program.url}/dashboards/${dashboard.id.id}/details`);
  await page.getByLabel("or its address").fill("https://example.com/plant.png");
  await page.getByRole("button", { name: "Save" }).click();
  await expect.poll(async () => (await stored(program, dashboard)).image).toBe("https://example.com/plant.png");
});
