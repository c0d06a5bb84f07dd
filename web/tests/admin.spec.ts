// What administrators do: a device by the wizard, an alarm rule that raises an alarm, a user, limits of a tenant profile.

import { readFileSync } from "node:fs";
import { findings } from "./axe";
import { expect, logIn, test, USERS } from "./program";

interface Made {
  id: { id: string };
}

test("the wizard makes a device with its token, which shows its first value and is assigned", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/entities/devices");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill("<b>Pump 9</b>");
  await form.getByText("2. Credentials").click();
  await form.getByLabel("Access token").fill("PUMP_9_TOKEN");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "<b>Pump 9</b>" })).toBeVisible();
  await program.send("PUMP_9_TOKEN", { pressure: 4 });
  await expect(page.locator('[data-key="pressure"]')).toHaveText("4");
  await page.getByRole("button", { name: "Assign" }).click();
  await page.getByRole("dialog").getByRole("combobox", { name: "Customer" }).click();
  await page.getByRole("option", { name: "Customer B" }).click();
  await page.getByRole("button", { name: "Assign to the customer" }).click();
  await expect(page.getByText("1 changed")).toBeVisible();
});

test("dashboards are given to several customers, and taken from them", async ({ page, program }) => {
  for (const title of ["North", "South"]) {
    await program.call("TENANT_ADMIN", "/api/customer", { title });
  }
  const boards = await Promise.all(["Shown 1", "Shown 2"].map((title) => program.call<Made>("TENANT_ADMIN", "/api/dashboard", { title })));
  const seenBy = async (at: number): Promise<string[]> => {
    const { assignedCustomers } = await program.call<{ assignedCustomers?: { title: string; public: boolean }[] | null }>("TENANT_ADMIN", `/api/dashboard/info/${boards[at]?.id.id ?? ""}`);
    return (assignedCustomers ?? []).map((one) => (one.public ? "public" : one.title)).sort();
  };
  await logIn(page, program, "TENANT_ADMIN", "/dashboards?search=Shown");
  await expect(page.getByText("2 in all")).toBeVisible();
  await page.getByLabel("Select all that are loaded").check();
  const open = async (name: string): Promise<void> => page.getByRole("button", { name, exact: true }).click();
  await open("Assign 2");
  const dialog = page.getByRole("dialog");
  for (const title of ["North", "South"]) {
    await dialog.getByRole("combobox", { name: "Customers" }).fill(title);
    await page.getByRole("option", { name: title, exact: true }).click();
  }
  // The list of choices stays open for the next one, over the buttons.
  await page.keyboard.press("Tab");
  await dialog.getByRole("button", { name: "Let these customers see it" }).click();
  await expect(dialog).toHaveCount(0);
  expect([await seenBy(0), await seenBy(1)]).toEqual([["North", "South"], ["North", "South"]]);
  // One of them on its page.
  await page.goto(`${program.url}/dashboards/${boards[0]?.id.id ?? ""}/details`);
  await open("Assign");
  await expect(dialog.getByText("Who sees it now")).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Take it from North" }).click();
  await expect(dialog).toHaveCount(0);
  expect(await seenBy(0)).toEqual(["South"]);
  await open("Assign");
  await dialog.getByRole("button", { name: "Make public" }).click();
  await expect(dialog).toHaveCount(0);
  expect(await seenBy(0)).toEqual(["South", "public"]);
  await open("Assign");
  await dialog.getByRole("button", { name: "Make private" }).click();
  await expect(dialog).toHaveCount(0);
  expect(await seenBy(0)).toEqual(["South"]);
});

test("a gateway has its file for Docker Compose, other devices have none", async ({ page, program }) => {
  const gateway = await program.call<Made>("TENANT_ADMIN", "/api/device?accessToken=GATEWAY_FILE_1", { name: "Gate", additionalInfo: { gateway: true } });
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${gateway.id.id}?tab=connect`);
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download docker-compose.yml" }).click();
  const download = await saving;
  expect(download.suggestedFilename()).toBe("docker-compose.yml");
  expect(readFileSync(await download.path(), "utf8")).toContain("GATEWAY_FILE_1");
  const plain = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Plain" });
  await page.goto(`${program.url}/entities/devices/${plain.id.id}?tab=connect`);
  await expect(page.getByText(/^curl /)).toBeVisible();
  await expect(page.getByRole("button", { name: "Download docker-compose.yml" })).toHaveCount(0);
});

test("the system administrator limits the rate of a tenant's messages", async ({ page, program }) => {
  await logIn(page, program, "SYS_ADMIN", "/tenantProfiles");
  await page.getByRole("link", { name: "Default" }).click();
  await page.getByRole("button", { name: "Add a limit: Messages of the tenant", exact: true }).click();
  await page.getByLabel("Messages of the tenant: messages", { exact: true }).fill("500");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  const { data } = await program.call<{ data: { profileData: { configuration: Record<string, unknown> } }[] }>("SYS_ADMIN", "/api/tenantProfiles?pageSize=1&page=0");
  expect(data[0]?.profileData.configuration["transportTenantMsgRateLimit"]).toBe("500:1");
});

test("tenants of a profile have queues of their own", async ({ page, program }) => {
  await logIn(page, program, "SYS_ADMIN", "/tenantProfiles?add=true");
  const form = page.getByRole("dialog", { name: "Add: Tenant profile" });
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("Alone");
  await form.getByRole("checkbox", { name: "Its tenants have queues of their own" }).check();
  await expect(form.getByRole("button", { name: "Main" })).toBeVisible();
  await form.getByRole("button", { name: "Add to: Queues" }).click();
  await form.getByRole("textbox", { name: "Name", exact: true }).last().fill("Fast");
  await form.getByRole("textbox", { name: "Partitions" }).last().fill("3");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Alone" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Fast" })).toBeVisible();
  await expect(page.getByRole("checkbox", { name: "Its tenants have queues of their own" })).toBeChecked();
  const alone = async (): Promise<unknown> => (await program.call<{ data: unknown[] }>("SYS_ADMIN", "/api/tenantProfiles?pageSize=1&page=0&textSearch=Alone")).data[0];
  expect(await alone()).toMatchObject({ isolatedTbRuleEngine: true, profileData: { queueConfiguration: [{ name: "Main" }, { name: "Fast", topic: "tb_rule_engine.fast", partitions: 3 }] } });
  await page.getByRole("checkbox", { name: "Its tenants have queues of their own" }).uncheck();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  expect(await alone()).toMatchObject({ isolatedTbRuleEngine: false, profileData: { queueConfiguration: null } });
});

test("any place of a list of thousands of devices is shown by scrolling there", async ({ page, program }) => {
  test.setTimeout(120_000);
  const file = Array.from({ length: 3_000 }, (_, n) => `Row ${String(n).padStart(5, "0")}`).join("\n");
  await program.call("TENANT_ADMIN", "/api/asset/bulk_import", { file, mapping: { columns: [{ type: "NAME" }], delimiter: ",", update: true, header: false } });
  await logIn(page, program, "TENANT_ADMIN", "/entities/assets");
  await page.getByRole("button", { name: "Name" }).click();
  await expect(page.getByRole("link", { name: "Row 00000" })).toBeVisible();
  await page.getByRole("table").evaluate((table) => table.parentElement?.scrollTo(0, 42 * 2_000));
  await expect(page.getByRole("link", { name: "Row 02000" })).toBeVisible();
  expect(await page.getByRole("row").count()).toBeLessThan(100);
});

test("the system administrator names the public address, and a wrong setting is told", async ({ page, program }) => {
  await logIn(page, program, "SYS_ADMIN", "/settings/general");
  await page.getByLabel("Address of these pages").fill("https://iot.example.com");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Address of these pages")).toHaveValue("https://iot.example.com");
  await page.goto(`${program.url}/security-settings/general`);
  await page.getByLabel("Hours that an activation link works").fill("99");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
});

test("the home of the system administrator counts what tenants have, and shows servers and what is set up", async ({ page, program }) => {
  const mail = { emailEnabled: false, smsEnabled: true, notificationEnabled: false, oauthEnabled: false, twoFaEnabled: false };
  await page.route("**/api/admin/featuresInfo", (route) => route.fulfill({ json: mail }));
  const devices = await program.call<number>("SYS_ADMIN", "/api/entitiesQuery/count", { entityFilter: { type: "entityType", entityType: "DEVICE" } });
  expect(devices).toBeGreaterThan(0);
  await logIn(page, program, "SYS_ADMIN", "/home");
  await expect(page.locator("[data-figure=Devices]")).toHaveText(String(devices));
  await expect(page.locator("[data-figure=Tenants]")).toHaveText(/^[1-9]/);
  const server = page.getByRole("table", { name: "Servers" }).getByRole("row").nth(1);
  await expect(server.getByRole("cell").nth(3)).toHaveText(/^\d+ %$/);
  const features = page.getByRole("list", { name: "Configured features" });
  await expect(features.locator("[data-feature=smsEnabled]")).toContainText("set up");
  await expect(features.locator("[data-feature=emailEnabled]")).toContainText("not set up");
  await expect(features.getByRole("link", { name: "Outgoing mail" })).toHaveAttribute("href", "/settings/outgoing-mail");
  expect(await findings(page)).toEqual([]);
});

test("how much of a server is used can be read at each state, in each scheme", async ({ page, program }) => {
  const { systemData, ...info } = await program.call<{ systemData: object[] }>("SYS_ADMIN", "/api/admin/systemInfo");
  const json = { ...info, systemData: systemData.map((server) => ({ ...server, cpuUsage: 50, memoryUsage: 80, discUsage: 90 })) };
  await page.route("**/api/admin/systemInfo", (route) => route.fulfill({ json }));
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await (colorScheme === "light" ? logIn(page, program, "SYS_ADMIN", "/home") : page.reload());
    const server = page.getByRole("table", { name: "Servers" }).getByRole("row").nth(1);
    for (const state of ["ok", "high", "critical"]) {
      await expect(server.locator(`[data-state=${state}]`)).toBeVisible();
    }
    expect(await findings(page), colorScheme).toEqual([]);
  }
});

test("homes of administrators show what devices did in the last day, by hours", async ({ browser, program }) => {
  for (const role of ["TENANT_ADMIN", "SYS_ADMIN"] as const) {
    const page = await (await browser.newContext({ locale: "en-US" })).newPage();
    await logIn(page, program, role, "/home");
    for (const counted of ["Messages of devices", "Active devices"]) {
      await expect(page.locator(`[data-activity="${counted}"]`)).toHaveText(/^\d/);
      await expect(page.getByRole("img", { name: `${counted} in the last 24 hours, by hour: between 0 and` })).toBeVisible();
    }
    expect(await findings(page)).toEqual([]);
    await page.close();
  }
});

test("the home of a tenant has links that its user chooses, and any page can have the whole screen", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/home");
  await page.getByRole("button", { name: "Add a link" }).click();
  await page.getByRole("combobox", { name: "Screen" }).click();
  await page.getByRole("option", { name: "Audit log" }).click();
  await page.reload();
  const remove = page.getByRole("button", { name: "Remove the link to Audit log" });
  await remove.click();
  await expect(remove).toHaveCount(0);
  await page.goto(`${program.url}/entities/devices`);
  const isFull = () => page.evaluate(() => document.fullscreenElement !== null);
  for (const [item, full] of [["Full screen", true], ["Leave full screen", false]] as const) {
    await page.getByRole("button", { name: USERS.TENANT_ADMIN.email }).click();
    await page.getByRole("menuitem", { name: item, exact: true }).click();
    await expect.poll(isFull).toBe(full);
  }
});

test("a tenant sees what it has used", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/usage");
  await expect(page.getByRole("row", { name: /^Devices now \d/ })).toBeVisible();
  // The course of it, with the charts of dashboards.
  await expect(page.getByRole("region", { name: "Messages of devices" })).toBeVisible();
  await page.getByRole("radiogroup", { name: "Steps of the course" }).getByText("By month").click();
  await expect(page).toHaveURL(/step=months/);
  await expect(page.getByRole("region", { name: "Stored points" })).toBeVisible();
  await page.screenshot({ path: "test-results/screens/usage.png", fullPage: true });
  expect(await findings(page)).toEqual([]);
});

test("the audit log is narrowed by whom, by actions and by time, which the address keeps", async ({ page, program }) => {
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Audited pump" });
  await program.call("TENANT_ADMIN", "/api/device", { name: "Another pump" });
  await program.call("TENANT_ADMIN", "/api/device", { id: device.id, name: "Audited pump", label: "changed" });
  await logIn(page, program, "TENANT_ADMIN", "/security-settings/auditLogs");
  const log = page.getByRole("table", { name: "Audit log" });
  await expect(log).toContainText("Another pump");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  const form = page.getByRole("group", { name: "Filter" });
  await form.getByRole("combobox", { name: "Actions", exact: true }).click();
  await page.getByRole("option", { name: "Device", exact: true }).click();
  await form.getByRole("combobox", { name: "Device", exact: true }).fill("Audited");
  await page.getByRole("option", { name: "Audited pump" }).click();
  await expect(log).not.toContainText("Another pump");
  await form.getByRole("combobox", { name: "Kinds of actions" }).press("ArrowDown");
  await page.getByRole("option", { name: "Updated", exact: true }).click();
  await expect(page).toHaveURL(/actions=UPDATED/);
  await expect(log.getByRole("row")).toHaveCount(2);
  // The first action after the address was opened again is the same.
  await page.reload();
  await expect(log.getByRole("row")).toHaveCount(2);
  await expect(page.getByRole("button", { name: "Filter (3)" })).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await page.getByRole("button", { name: "Without filter" }).click();
  await expect(log).toContainText("Another pump");
  await page.goto(`${program.url}/security-settings/auditLogs?to=60000`);
  await expect(page.getByText("0 in all")).toBeVisible();
  await expect(page.getByRole("button", { name: "Filter (1)" })).toBeVisible();
  await page.goto(`${program.url}/security-settings/auditLogs?from=60000`);
  await expect(log).toContainText("Another pump");
});

test("events are narrowed by what their type has, which the address keeps", async ({ page, program }) => {
  const device = await program.call<{ id: { id: string; entityType: string } }>("TENANT_ADMIN", "/api/device", { name: "Evaluated" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  const field = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/calculatedField", {
    name: "Doubled", type: "SIMPLE", entityId: device.id, debugSettings: { allEnabled: true, failuresEnabled: true },
    configuration: { type: "SIMPLE", arguments: { a: { refEntityKey: { key: "speed", type: "TS_LATEST" } } }, expression: "a * 2", output: { type: "TIME_SERIES", name: "double" } },
  });
  await program.send(credentialsId, { speed: 11 });
  await program.send(credentialsId, { speed: 400 });
  const tenant = (await program.call<{ tenantId: { id: string } }>("TENANT_ADMIN", "/api/auth/user")).tenantId.id;
  const events = () => program.call<{ totalElements: number }>("TENANT_ADMIN", `/api/events/CALCULATED_FIELD/${field.id.id}/DEBUG_CALCULATED_FIELD?tenantId=${tenant}&pageSize=10&page=0`);
  await expect.poll(async () => (await events()).totalElements).toBeGreaterThanOrEqual(2);
  await logIn(page, program, "TENANT_ADMIN", `/calculatedFields/${field.id.id}?tab=events`);
  const table = page.getByRole("table", { name: "Events" });
  await expect(table).toContainText("400");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("group", { name: "Filter" }).getByRole("textbox", { name: "Arguments contain" }).fill("400");
  await expect(page).toHaveURL(/arguments=400/);
  await expect(table.getByRole("row")).toHaveCount(2);
  await page.reload();
  await expect(table.getByRole("row")).toHaveCount(2);
  await page.getByRole("button", { name: "Filter (1)" }).click();
  await page.getByRole("group", { name: "Filter" }).getByRole("checkbox", { name: "Only errors" }).check();
  await expect(page.getByText("Nothing matches the search.")).toBeVisible();
  await page.screenshot({ path: "test-results/screens/events.png" });
  expect(await findings(page)).toEqual([]);
  // Only what lies within the chosen time is cleared, and nothing while an id is half typed.
  await page.getByRole("button", { name: "Without filter" }).click();
  await expect(table).toContainText("400");
  const before = (await events()).totalElements;
  await page.goto(`${program.url}/calculatedFields/${field.id.id}?tab=events&to=60000`);
  await expect(page.getByText("0 in all")).toBeVisible();
  const clear = page.getByRole("button", { name: "Clear the events that match" });
  const cleared = page.waitForResponse((answer) => answer.url().includes("/clear"));
  await clear.click();
  expect((await cleared).ok()).toBe(true);
  expect((await events()).totalElements).toBe(before);
  await page.goto(`${program.url}/calculatedFields/${field.id.id}?tab=events&entityId=half`);
  await expect(table).toContainText("400");
  await expect(page.getByRole("button", { name: "Clear the events" })).toBeDisabled();
});
