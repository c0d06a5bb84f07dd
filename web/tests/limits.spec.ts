// Limits of live connections are named, with what to do, instead of trying again without end.

import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

interface Profile {
  profileData: { configuration: Record<string, unknown> };
}

async function changeLimit(program: Program, name: string, limit: number): Promise<void> {
  const { data } = await program.call<{ data: Profile[] }>("SYS_ADMIN", "/api/tenantProfiles?pageSize=1&page=0");
  const [profile] = data as [Profile];
  await program.call("SYS_ADMIN", "/api/tenantProfile", {
    ...profile,
    profileData: { ...profile.profileData, configuration: { ...profile.profileData.configuration, [name]: limit } },
  });
}

/** Sets a limit for a time; what the test leaves behind, however it ends, is without it. */
async function withLimit(program: Program, name: string, limit: number, work: () => Promise<void>): Promise<void> {
  await changeLimit(program, name, limit);
  try {
    await work();
  } finally {
    await changeLimit(program, name, 0);
  }
}

test("a page beyond the sessions of a tenant says so, and goes on as soon as another is closed", async ({ page, browser, program }) => {
  await withLimit(program, "maxWsSessionsPerTenant", 1, async () => {
    const other = await (await browser.newContext({ locale: "en-US" })).newPage();
    await logIn(other, program, "TENANT_ADMIN", "/alarms/alarms");
    await expect(other.getByText("There are as many live connections")).toHaveCount(0);
    let sockets = 0;
    page.on("websocket", () => (sockets += 1));
    await logIn(page, program, "TENANT_ADMIN", "/alarms/alarms");
    const banner = page.getByRole("status").filter({ hasText: "There are as many live connections as the tenant profile allows." });
    await expect(banner).toContainText("Close other pages of this server.");
    await expect(banner).toContainText("Sessions of the tenant");
    await expect(page.getByText("The connection is lost.")).toHaveCount(0);
    expect(await findings(page)).toEqual([]);
    await other.close();
    await banner.getByRole("button", { name: "Try again" }).click();
    await expect(banner).toHaveCount(0, { timeout: 15_000 });
    // By itself it would have waited for a minute.
    expect(sockets).toBe(2);
  });
});

test("a page that follows too much says so, and goes on where it follows less", async ({ page, program }) => {
  await withLimit(program, "maxWsSubscriptionsPerTenant", 1, async () => {
    const widget = (title: string): object => ({ typeFullFqn: "system.cards.value_card", type: "latest", config: { title, showTitle: true, settings: {}, datasources: [{ type: "entity", entityAliasId: "a1", dataKeys: [{ name: title, type: "timeseries", label: title, settings: {} }] }] } });
    const names = ["one", "two", "three"];
    const configuration = {
      widgets: Object.fromEntries(names.map((name) => [name, widget(name)])),
      states: { default: { name: "Much", root: true, layouts: { main: { widgets: Object.fromEntries(names.map((name, n) => [name, { sizeX: 8, sizeY: 6, row: 0, col: n * 8 }])), gridSettings: { columns: 24 } } } } },
      entityAliases: { a1: { id: "a1", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: false } } },
    };
    const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Much", configuration });
    await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
    const banner = page.getByRole("status").filter({ hasText: "More is followed live than the tenant profile allows." });
    await expect(banner).toContainText("Subscriptions of the tenant");
    await page.getByRole("link", { name: "Dashboards", exact: true }).first().click();
    await expect(banner).toHaveCount(0, { timeout: 15_000 });
  });
});

test("a question that is longer than the server takes fails alone", async ({ page, program }) => {
  const names = ["long", "short"];
  const key = { name: "temperature", type: "timeseries", label: "Temperature", settings: {} };
  const entityList = Array.from({ length: 1_000 }, (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`);
  const configuration = {
    widgets: Object.fromEntries(names.map((name) => [name, { typeFullFqn: "system.cards.value_card", type: "latest", config: { title: name, showTitle: true, settings: {}, datasources: [{ type: "entity", entityAliasId: name, dataKeys: [key] }] } }])),
    states: { default: { name: "Long", root: true, layouts: { main: { widgets: Object.fromEntries(names.map((name, n) => [name, { sizeX: 8, sizeY: 6, row: 0, col: n * 8 }])), gridSettings: { columns: 24 } } } } },
    entityAliases: {
      long: { id: "long", alias: "Long", filter: { type: "entityList", entityType: "DEVICE", entityList, resolveMultiple: true } },
      short: { id: "short", alias: "Short", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: false } },
    },
  };
  await program.send("A1_TEST_TOKEN", { temperature: 23 });
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Long", configuration });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  await expect(page.getByRole("region", { name: "long" })).toContainText("This asks for more at once than the server takes in one message.");
  await expect(page.getByRole("region", { name: "short" })).toContainText("23");
  await expect(page.getByText("The connection is lost.")).toHaveCount(0);
});
