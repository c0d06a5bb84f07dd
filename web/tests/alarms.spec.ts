// Alarms live: triage by keys, many at once, their details and what is said about them; by a widget; by a customer's user.

import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

const IMG = "<img src=x onerror=top.hacked=1>";
type Id = { entityType: string; id: string };

async function deviceId(program: Program, name: string): Promise<Id> {
  return (await program.call<{ id: Id }>("TENANT_ADMIN", `/api/tenant/devices?deviceName=${encodeURIComponent(name)}`)).id;
}

async function raise(program: Program, originator: Id, type: string, severity: string, details: object = {}): Promise<Id> {
  return (await program.call<{ id: Id }>("TENANT_ADMIN", "/api/alarm", { type, severity, originator, details, propagateToTenant: true })).id;
}

test("alarms come by themselves and are triaged by key, and many at once", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1300, height: 900 });
  const device = await deviceId(program, "Test Device A1");
  await raise(program, device, `Hot ${IMG}`, "CRITICAL", { temperature: 90, note: IMG });
  await logIn(page, program, "TENANT_ADMIN", "/alarms/alarms");
  const rows = page.locator("tbody tr[data-row]");
  await expect(rows).toHaveCount(1);
  await expect(rows.nth(0)).toContainText(`Hot ${IMG}`);
  // A new one comes without asking, whatever it comes from.
  await raise(program, device, "Low pressure", "MINOR");
  const asset = (await program.call<{ id: Id }>("TENANT_ADMIN", "/api/asset", { name: "Boiler house", type: "default" })).id;
  await raise(program, asset, "Door open", "WARNING");
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(0)).toContainText("Door open");
  await expect(rows.nth(0).getByRole("link", { name: "Boiler house" })).toHaveAttribute("href", `/entities/assets/${asset.id}`);
  // By key: down, acknowledge, clear.
  await rows.nth(0).focus();
  await page.keyboard.press("j");
  await expect(rows.nth(1)).toBeFocused();
  await page.keyboard.press("a");
  await expect(rows.nth(1)).toContainText("Active, acknowledged");
  await page.keyboard.press("c");
  await expect(rows).toHaveCount(2);
  await expect(page.getByText("Low pressure")).toHaveCount(0);
  await page.getByRole("button", { name: "Cleared ones too" }).click();
  await expect(rows.filter({ hasText: "Low pressure" })).toContainText("Cleared, acknowledged");
  // Many at once.
  await page.getByRole("checkbox", { name: "Select all that are loaded" }).check();
  await page.getByRole("button", { name: "Acknowledge 3" }).click();
  await expect(rows.filter({ hasText: "Door open" })).toContainText("Active, acknowledged");
  await page.getByRole("checkbox", { name: "Select all that are loaded" }).check();
  await page.getByRole("button", { name: "Assign 3" }).click();
  await page.getByRole("dialog").getByRole("combobox", { name: "Assignee" }).click();
  await page.getByRole("option", { name: /you/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Assign", exact: true }).click();
  await expect(rows.nth(0)).toContainText("tenant@thingsboard.org");
  // Groups, and filters that the address keeps.
  await page.getByRole("combobox", { name: "Group by" }).click();
  await page.getByRole("option", { name: "Originator" }).click();
  await expect(page.getByRole("button", { name: "Boiler house (1)" })).toBeVisible();
  await page.getByRole("button", { name: "Boiler house (1)" }).click();
  await expect(rows).toHaveCount(2);
  await page.goto(`${program.url}/alarms/alarms?severity=WARNING`);
  await expect(rows).toHaveCount(1);
  await page.screenshot({ path: "test-results/screens/alarms_filters.png" });
  expect(await findings(page)).toEqual([]);
  // Those of one person, in the list and as a count.
  const me = await program.call<{ id: Id }>("TENANT_ADMIN", "/api/auth/user");
  await raise(program, device, "Nobody's", "MINOR");
  await page.goto(`${program.url}/alarms/alarms?status=ANY&assignee=${me.id.id}`);
  await expect(rows).toHaveCount(3);
  await expect(rows.filter({ hasText: "Nobody's" })).toHaveCount(0);
  const count = (title: string, assigned: boolean): object => ({ typeFullFqn: "system.alarm_count", type: "latest", config: { title, showTitle: true, settings: {}, datasources: [{ type: "alarmCount", alarmFilterConfig: { statusList: [], assignedToCurrentUser: assigned }, dataKeys: [{ name: "count", type: "count", label: "count" }] }] } });
  const place = (col: number): object => ({ col, row: 0, sizeX: 6, sizeY: 3 });
  const { id } = await program.call<{ id: Id }>("TENANT_ADMIN", "/api/dashboard", { title: "Counts", configuration: { widgets: { mine: count("Mine", true), all: count("All", false) }, states: { default: { name: "d", root: true, layouts: { main: { widgets: { mine: place(0), all: place(6) }, gridSettings: {} } } } } } });
  await page.goto(`${program.url}/dashboards/${id.id}`);
  await expect(page.getByRole("region", { name: "Mine" }).locator("[data-value]")).toHaveText("3");
  await expect(page.getByRole("region", { name: "All" }).locator("[data-value]")).toHaveText("4");
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
});

test("an alarm has details, a history, and comments that are changed and deleted", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1300, height: 900 });
  const device = await deviceId(program, "Test Device A2");
  await raise(program, device, "Overheated", "MAJOR", { temperature: 91, note: IMG });
  await logIn(page, program, "TENANT_ADMIN", "/alarms/alarms");
  const row = page.locator("tbody tr[data-row]").filter({ hasText: "Overheated" });
  await row.focus();
  await page.keyboard.press("Enter");
  const drawer = page.getByRole("dialog", { name: "Overheated" });
  await expect(drawer).toContainText('"temperature": 91');
  await expect(drawer).toContainText("the tenant");
  await expect(drawer.getByRole("link", { name: "Test Device A2" })).toBeVisible();
  await drawer.getByRole("button", { name: "Acknowledge" }).click();
  await expect(drawer).toContainText("Active, acknowledged");
  await page.screenshot({ path: "test-results/screens/alarm_details.png" });
  expect(await findings(page)).toEqual([]);
  await drawer.getByRole("tab", { name: "Activity" }).click();
  await drawer.getByLabel("Comment").fill(`Looked at it ${IMG}`);
  await drawer.getByRole("button", { name: "Send" }).click();
  await expect(drawer.getByRole("listitem").filter({ hasText: `Looked at it ${IMG}` })).toBeVisible();
  await drawer.getByRole("button", { name: "Edit" }).click();
  await drawer.getByLabel("Change the comment").fill("Repaired");
  await drawer.getByRole("button", { name: "Save" }).click();
  await expect(drawer.getByRole("listitem").filter({ hasText: "Repaired" })).toContainText("changed");
  await drawer.getByRole("listitem").filter({ hasText: "Repaired" }).getByRole("button", { name: "Delete" }).click();
  await expect(drawer.getByText("Repaired")).toHaveCount(0);
  await drawer.getByRole("tab", { name: "History" }).click();
  await expect(drawer.getByRole("list", { name: "History" })).toContainText("Raised");
  await expect(drawer.getByRole("img", { name: /of this type in the last 30 days/ })).toBeVisible();
  await page.screenshot({ path: "test-results/screens/alarm_history.png" });
  await drawer.getByRole("tab", { name: "Details" }).click();
  await drawer.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog", { name: "Delete 1 for good?" }).getByRole("button", { name: "Delete" }).click();
  await expect(row).toHaveCount(0);
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
});

test("the usual columns of a widget fit into a screen of 1280 pixels, cut where they may be", async ({ page, program }) => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await raise(program, await deviceId(program, "Raspberry Pi Demo Device"), "Low battery of the sensor outside", "INDETERMINATE");
  const keys = ["createdTime", "originator", "type", "severity", "status", "assignee"].map((name) => ({ name, label: name, type: "alarm", settings: {} }));
  const widget = (title: string, sizeX: number, dataKeys: object[]) => ({
    typeFullFqn: "system.alarm_widgets.alarms_table", type: "alarm", sizeX, sizeY: 8,
    config: { title, settings: {}, alarmSource: { type: "entity", entityAliasId: "all", dataKeys }, datasources: [] },
  });
  const dashboard = await program.call<{ id: Id }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Room",
    configuration: {
      widgets: { wide: widget("Wide", 24, keys), usual: widget("Usual", 14, []) },
      states: { default: { name: "All", root: true, layouts: { main: { widgets: { wide: { col: 0, row: 0, sizeX: 24, sizeY: 8 }, usual: { col: 0, row: 8, sizeX: 14, sizeY: 8 } }, gridSettings: {} } } } },
      entityAliases: { all: { id: "all", alias: "All", filter: { type: "entityType", entityType: "DEVICE", resolveMultiple: true } } },
    },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${dashboard.id.id}`);
  const room = (element: Element): number => element.scrollWidth - element.clientWidth;
  for (const [title, headers] of [["Wide", 6], ["Usual", 4]] as const) {
    const table = page.getByRole("region", { name: title }).getByRole("table");
    const row = table.getByRole("row", { name: /Low battery/ });
    await expect(row).toBeVisible();
    await expect(table.locator("th[draggable]")).toHaveCount(headers);
    expect(await table.evaluate((one) => (one.parentElement?.scrollWidth ?? 0) - (one.parentElement?.clientWidth ?? 0)), title).toBeLessThanOrEqual(0);
    // How bad it is and since when is whole; what is cut says all under the pointer.
    expect(await row.locator("[data-severity]").evaluate(room), title).toBeLessThanOrEqual(0);
    expect(await row.locator("td").nth(1).evaluate(room), title).toBeLessThanOrEqual(0);
    await expect(row.getByTitle("Low battery of the sensor outside")).toBeVisible();
  }
  // Whoever chooses columns has all that were chosen.
  const usual = page.getByRole("region", { name: "Usual" });
  await usual.getByRole("button", { name: "Columns, filters, file" }).click();
  await page.getByRole("checkbox", { name: "Type", exact: true }).uncheck();
  await page.keyboard.press("Escape");
  await expect(usual.locator("th[draggable]")).toHaveText(["Created ▼", "Severity", "Originator", "Status", "Assignee"].map((name) => new RegExp(name)));
});

test("a widget shows the alarms of its source with its columns and rights, to a customer's user too", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1300, height: 800 });
  const [a1, b1] = await Promise.all([deviceId(program, "Test Device A1"), deviceId(program, "Test Device B1")]);
  await program.send("A1_TEST_TOKEN", { level: 7 });
  await raise(program, a1, "Leaking", "CRITICAL", { litres: 12 });
  await raise(program, b1, "Elsewhere", "MAJOR");
  const key = (name: string, label: string, type = "alarm", settings: object = {}) => ({ name, label, type, settings });
  const widget = {
    typeFullFqn: "system.alarm_widgets.alarms_table",
    type: "alarm",
    sizeX: 24,
    sizeY: 8,
    config: {
      title: "Table",
      settings: { allowClear: false, enableSelection: false },
      alarmFilterConfig: { statusList: ["ACTIVE"] },
      alarmSource: {
        type: "entity",
        entityAliasId: "a1",
        dataKeys: [
          key("createdTime", "Created"),
          key("type", "What", "alarm", { useCellContentFunction: true, cellContentFunction: "return '<b class=\"made\">' + value + ' ' + alarm.details.litres + ' l</b><img src=x onerror=top.hacked=1>';" }),
          key("severity", "Severity"),
          key("details.litres", "Litres"),
          key("level", "Level", "timeseries"),
        ],
      },
      datasources: [],
    },
  };
  const configuration = {
    widgets: { w: widget },
    states: { default: { name: "All", root: true, layouts: { main: { widgets: { w: { col: 0, row: 0, sizeX: 24, sizeY: 8 } }, gridSettings: {} } } } },
    entityAliases: { a1: { id: "a1", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: true } } },
  };
  const board = await program.call<{ id: Id }>("TENANT_ADMIN", "/api/dashboard", { title: "Alarms", configuration });
  const customer = (await program.call<{ customerId: Id }>("TENANT_ADMIN", `/api/device/${a1.id}`)).customerId;
  await program.call("TENANT_ADMIN", `/api/customer/${customer.id}/dashboard/${board.id.id}`, {});
  await logIn(page, program, "CUSTOMER_USER", `/dashboards/${board.id.id}`);
  const region = page.getByRole("region", { name: "Table" });
  const rows = region.locator("tbody tr[data-row]").filter({ hasText: "Leaking" });
  await expect(rows.locator("b.made")).toHaveText("Leaking 12 l");
  await expect(rows).toContainText("12");
  await expect(rows).toContainText("7");
  await program.send("A1_TEST_TOKEN", { level: 8.5 });
  await expect(rows).toContainText("8.5");
  await expect(region.getByText("Elsewhere")).toHaveCount(0);
  await expect(rows.getByRole("button", { name: "Clear" })).toHaveCount(0);
  await rows.getByRole("button", { name: "Acknowledge" }).click();
  await expect(rows.getByRole("button", { name: "Acknowledge" })).toHaveCount(0);
  await page.screenshot({ path: "test-results/screens/alarms_widget.png" });
  // The user's own screen has what belongs to the customer, and nothing else.
  await page.goto(`${program.url}/alarms/alarms`);
  await expect(page.locator("tbody tr[data-row]").filter({ hasText: "Leaking" })).toBeVisible();
  await expect(page.getByText("Elsewhere")).toHaveCount(0);
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  await page.screenshot({ path: "test-results/screens/alarms_customer_dark.png" });
  expect(await findings(page)).toEqual([]);
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
});

test("whoever chooses it is told of alarms that come, on any screen", async ({ page, program }) => {
  await page.addInitScript(() => {
    class Told {
      static permission = "granted";
      static requestPermission = async (): Promise<string> => "granted";
      onclick = null;
      constructor(title: string, options: { body: string }) {
        ((window as unknown as { told: string[] }).told ??= []).push(`${title} | ${options.body}`);
      }
    }
    Object.assign(window, { Notification: Told });
  });
  const device = await deviceId(program, "Test Device A3");
  await raise(program, device, "Long known", "MINOR");
  await logIn(page, program, "TENANT_ADMIN", "/alarms/alarms");
  const told = () => page.evaluate(() => (window as unknown as { told?: string[] }).told ?? []);
  await page.getByRole("button", { name: "Tell me" }).click();
  await page.getByLabel("Notification of the browser").check();
  await page.getByLabel("Sound").check();
  await page.goto(`${program.url}/home`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  // The first answer is what was known; one that comes after it is told.
  await expect.poll(async () => {
    await raise(program, device, `New ${Date.now()}`, "CRITICAL");
    return (await told()).length;
  }).toBeGreaterThan(0);
  expect((await told())[0]).toMatch(/^CRITICAL: New \d+ \| Test Device A3$/);
  expect((await told()).join()).not.toContain("Long known");
});
