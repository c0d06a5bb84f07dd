// What administrators do: a device by the wizard, an alarm rule that raises an alarm, a user, limits of a tenant profile.

import { expect, logIn, test } from "./program";

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

test("a tenant sees what it has used", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/usage");
  await expect(page.getByRole("row", { name: /^Devices now \d/ })).toBeVisible();
});
