// Widgets that ask page by page tell what they ask, what comes, and why nothing does, as all others do.

import type { Locator } from "@playwright/test";
import { findings } from "./axe";
import { expect, logIn, test } from "./program";

const KEY = { name: "temperature", type: "timeseries", label: "Temperature", settings: {} };
const NAME = { name: "name", type: "entityField", label: "Name", settings: {} };
const PLANT = "Question plant";

test("tables and trees tell what they asked, what came, and why they are empty", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1100 });
  const hall = await program.call<{ id: object }>("TENANT_ADMIN", "/api/asset", { name: PLANT });
  const pump = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Question pump" });
  await program.save("/api/relation", { from: hall.id, to: pump.id, type: "Contains", typeGroup: "COMMON" });
  await program.save("/api/alarm", { originator: pump.id, type: "Leaking", severity: "MAJOR", startTs: Date.now(), acknowledged: false, cleared: false });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${pump.id.id}/credentials`);
  await program.send(credentialsId, { temperature: 21 });
  const source = (alias: string, ...dataKeys: object[]): object => ({ type: "entity", entityAliasId: alias, dataKeys });
  const widget = (fqn: string, title: string, config: object): object => ({ typeFullFqn: `system.${fqn}`, type: "latest", config: { title, showTitle: true, settings: {}, ...config } });
  const widgets = {
    Table: widget("cards.entities_table", "Table", { datasources: [source("pumps", NAME, KEY)] }),
    Nobody: widget("device_admin_table", "Nobody", { datasources: [source("none", NAME)] }),
    Alarms: { ...widget("alarm_widgets.alarms_table", "Alarms", { alarmSource: source("pumps"), alarmFilterConfig: {} }), type: "alarm" },
    Tree: widget("cards.entities_hierarchy", "Tree", { datasources: [source("hall", NAME)] }),
  };
  const named = (id: string, entityType: string, entityNameFilter: string): object => ({ id, alias: id, filter: { type: "entityName", entityType, entityNameFilter, resolveMultiple: true } });
  const configuration = {
    widgets,
    states: { default: { name: "Main", root: true, layouts: { main: { widgets: Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: (n % 2) * 12, row: Math.floor(n / 2) * 7, sizeX: 12, sizeY: 7 }])), gridSettings: { columns: 24 } } } } },
    entityAliases: { pumps: named("pumps", "DEVICE", "Question pump"), none: named("none", "DEVICE", "Nobody is called so"), hall: named("hall", "ASSET", PLANT) },
  };
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Questions", configuration });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}`);
  const opened = async (name: string): Promise<Locator> => {
    const region = page.getByRole("region", { name, exact: true });
    await region.hover();
    await region.getByRole("button", { name: `More of ${name}` }).click();
    // That of the one before may still be going.
    await page.getByRole("menu", { name: `More of ${name}` }).getByRole("menuitem", { name: "Data and questions" }).click();
    return page.getByRole("dialog", { name: `Data of ${name}` });
  };
  const table = await opened("Table");
  await expect(table).toContainText(/answered after [\d,]+ ms; \d+ answers?, 1 entities/);
  await expect(table.getByRole("row", { name: /Question pump temperature .* 21$/ })).toBeVisible();
  // It stays live.
  await program.send(credentialsId, { temperature: 22 });
  await expect(table.getByRole("row", { name: /Question pump temperature .* 22$/ })).toBeVisible();
  await table.getByRole("tab", { name: "What was asked" }).click();
  await expect(table).toContainText('"entityNameFilter": "Question pump"');
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press("Escape");

  await expect(await opened("Nobody")).toContainText("The alias finds no entity that you may see.");
  await page.keyboard.press("Escape");
  const alarms = await opened("Alarms");
  await expect(alarms.getByRole("row", { name: /Question pump Leaking .* MAJOR, Active, unacknowledged/i })).toBeVisible();
  await page.keyboard.press("Escape");
  const tree = await opened("Tree");
  // One for the roots, and one for what is below each open node.
  await expect(tree.getByRole("region", { name: "Question 2" }).getByRole("row", { name: /Question pump/ }).first()).toBeVisible();
  await page.keyboard.press("Escape");

  await page.goto(`${program.url}/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: /^Table: / }).click();
  await page.getByRole("tab", { name: "Data", exact: true }).click();
  await expect(page.getByRole("region", { name: "Question 1" })).toContainText(/answered after [\d,]+ ms/);
});
