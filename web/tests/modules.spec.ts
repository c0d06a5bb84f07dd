// Modules of JavaScript that functions of dashboards name run with them in the sandbox, and nowhere else.

import { expect, logIn, test, type Program } from "./program";

const SHARED = `
  const loud = "!";
  export const shout = (value) => String(value).toUpperCase() + loud;
  export const reach = async () => {
    const reached = [];
    for (const [name, attempt] of [["page", async () => { top.hacked = 1; }], ["store", async () => localStorage.length], ["net", () => fetch("https://example.org/")]]) {
      try { await attempt(); reached.push(name); } catch (error) {}
    }
    return reached.join(", ") || "nothing";
  };`;

async function store(program: Program, source: string): Promise<{ link: string }> {
  const known = await program.call<{ data: { id: { id: string }; resourceKey: string }[] }>("TENANT_ADMIN", "/api/resource/tenant?pageSize=100&page=0&resourceType=JS_MODULE").catch(() => ({ data: [] }));
  const before = known.data.find(({ resourceKey }) => resourceKey === "shared.js");
  return program.call<{ link: string }>("TENANT_ADMIN", "/api/resource", {
    ...(before === undefined ? {} : { id: { id: before.id.id, entityType: "TB_RESOURCE" } }),
    title: "shared.js",
    resourceType: "JS_MODULE",
    resourceSubType: "MODULE",
    fileName: "shared.js",
    data: Buffer.from(source).toString("base64"),
  });
}

test("functions, actions and widgets of tenants use modules, which stay in the sandbox", async ({ page, program }) => {
  test.setTimeout(90_000);
  await page.setViewportSize({ width: 1300, height: 900 });
  const outside: string[] = [];
  page.on("request", (request) => request.url().startsWith("https://example.org") && outside.push(request.url()));
  const stored = await store(program, SHARED);
  const tools = { tools: `tb-resource;${stored.link}` };
  await program.call("TENANT_ADMIN", "/api/device", { name: "Modular", type: "modular" });
  await program.call("TENANT_ADMIN", "/api/widgetType", {
    name: "Modular",
    fqn: "modular",
    descriptor: { type: "latest", sizeX: 6, sizeY: 3, resources: [], templateHtml: "<p id='said'></p>", templateCss: "", controllerScript: { body: "self.onInit = async () => { self.ctx.$container[0].querySelector('#said').textContent = tools.shout('reached') + ' ' + await tools.reach(); };", modules: tools }, settingsForm: [], defaultConfig: "{}" },
  });
  await program.call("TENANT_ADMIN", "/api/widgetType", {
    name: "Broken",
    fqn: "broken",
    descriptor: { type: "latest", sizeX: 6, sizeY: 3, resources: [], templateHtml: "", templateCss: "", controllerScript: { body: "tools.shout('');", modules: { tools: "tb-resource;/api/resource/js_module/tenant/gone.js" } }, settingsForm: [], defaultConfig: "{}" },
  });
  const key = (settings: object): object => ({ name: "type", type: "entityField", label: "Type", settings });
  const source = (settings: object): object[] => [{ type: "entity", entityAliasId: "a", dataKeys: [key(settings)] }];
  const cell = (body: string, modules: object): object => ({ useCellContentFunction: true, cellContentFunction: { body, modules } });
  const table = (title: string, settings: object, actions: object = {}): object => ({ typeFullFqn: "system.cards.entities_table", type: "latest", sizeX: 12, sizeY: 6, config: { title, settings: {}, datasources: source(settings), actions } });
  const run = { body: "tools.reach().then((reached) => widgetContext.showSuccessToast(tools.shout(entityName) + ' ' + reached));", modules: tools };
  const widgets = {
    t: table("With a module", cell("return '<b>' + tools.shout(value) + '</b>';", tools), { rowClick: [{ name: "Shout", type: "custom", customFunction: run }] }),
    m: table("Without its module", cell("return tools.shout(value);", { tools: "tb-resource;/api/resource/js_module/tenant/gone.js" })),
    b: { typeFullFqn: "tenant.broken", type: "latest", sizeX: 12, sizeY: 4, config: { title: "Broken", settings: {}, datasources: source({}) } },
    w: { typeFullFqn: "tenant.modular", type: "latest", sizeX: 12, sizeY: 4, config: { title: "Own", settings: {}, datasources: source({}) } },
  };
  const places = { t: { col: 0, row: 0, sizeX: 12, sizeY: 6 }, m: { col: 12, row: 0, sizeX: 12, sizeY: 6 }, w: { col: 0, row: 6, sizeX: 12, sizeY: 4 }, b: { col: 12, row: 6, sizeX: 12, sizeY: 4 } };
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Modules",
    configuration: {
      widgets,
      states: { default: { name: "Modules", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } },
      entityAliases: { a: { id: "a", alias: "A", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Modular" } } },
    },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${made.id.id}`);
  const region = page.getByRole("region", { name: "With a module" });
  await expect(region.locator("td b")).toHaveText("MODULAR!");
  // The row is shown, whatever becomes of its function.
  await expect(page.getByRole("region", { name: "Without its module" }).getByText("Modular").first()).toBeVisible();
  await expect(page.getByRole("alert").filter({ hasText: /^The module “tools” can't be had: / })).toHaveCount(1);
  await expect(page.getByRole("region", { name: "Broken" })).toContainText("The module “tools” can't be had");
  await expect(page.getByRole("region", { name: "Own" }).frameLocator("iframe").locator("#said")).toHaveText("REACHED! nothing");
  await region.getByRole("row", { name: /Modular/ }).click();
  await expect(page.getByText("MODULAR! nothing")).toBeVisible();
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  expect(outside).toEqual([]);
  // A module that was changed is another one when the dashboard is opened again.
  await store(program, SHARED.replace('"!"', '"?"'));
  await page.reload();
  await expect(region.locator("td b")).toHaveText("MODULAR?");
});
