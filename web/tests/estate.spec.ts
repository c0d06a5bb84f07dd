// What administrators set up before devices come: tenants with their people, profiles of assets, files, firmware.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { findings } from "./axe";
import { expect, logIn, test } from "./program";

interface Made {
  id: { id: string };
}

test("a tenant is made with its administrator, who chooses a password, comes in, and is stood in for", async ({ page, browser, program }) => {
  await logIn(page, program, "SYS_ADMIN", "/tenants?add=true");
  const form = page.getByRole("dialog", { name: "Add: Tenant" });
  await form.getByLabel("Title").fill("Waterworks");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Waterworks" })).toBeVisible();
  await page.getByRole("tab", { name: "Administrators" }).click();
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const person = page.getByRole("dialog", { name: "Add: User" });
  await person.getByLabel("E-mail").fill("chief@waterworks.example");
  await person.getByLabel("First name").fill("Ada");
  await person.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "chief@waterworks.example" })).toBeVisible();
  await page.getByRole("button", { name: "Activation link", exact: true }).click();
  const link = new URL((await page.locator("[data-activation-link]").textContent()) ?? "");
  await page.keyboard.press("Escape");

  const theirs = await (await browser.newContext({ locale: "en-US" })).newPage();
  await theirs.goto(program.url + link.pathname + link.search);
  await theirs.getByLabel("New password", { exact: true }).fill("waterworks-1");
  await theirs.getByLabel("New password again").fill("waterworks-1");
  await theirs.getByRole("button", { name: "Save password" }).click();
  await expect(theirs.getByRole("button", { name: "chief@waterworks.example" })).toBeVisible();
  await theirs.goto(`${program.url}/entities/devices?add=true`);
  await theirs.getByRole("dialog").getByLabel("Name").fill("Well 1");
  await theirs.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  await expect(theirs.getByRole("heading", { level: 1, name: "Well 1" })).toBeVisible();

  await page.reload();
  await page.getByRole("button", { name: "Log in as this user" }).click();
  await expect(page.getByRole("button", { name: "chief@waterworks.example" })).toBeVisible();
  await page.goto(`${program.url}/entities/devices`);
  await expect(page.getByRole("link", { name: "Well 1" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Test Device A1" }), "another tenant's").toHaveCount(0);
});

test("assets of a profile go through its rule chain; new ones are of the default", async ({ page, program }) => {
  const chain = await program.call<Made>("TENANT_ADMIN", "/api/ruleChain", { name: "For halls", type: "CORE" });
  await logIn(page, program, "TENANT_ADMIN", "/profiles/assetProfiles?add=true");
  const form = page.getByRole("dialog", { name: "Add: Asset profile" });
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("Hall");
  await form.getByRole("combobox", { name: "Rule chain" }).fill("For halls");
  await page.getByRole("option", { name: "For halls" }).click();
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Hall" })).toBeVisible();
  await page.getByRole("button", { name: "Make it the default" }).click();
  await expect(page.getByText("Hall is the default now")).toBeVisible();
  await expect(page.getByRole("button", { name: "Delete", exact: true }), "the default stays").toHaveCount(0);
  expect(await findings(page)).toEqual([]);
  await page.goto(`${program.url}/entities/assets?add=true`);
  await page.getByRole("dialog").getByLabel("Name").fill("Hall 7");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Hall 7" })).toBeVisible();
  await page.getByRole("link", { name: "Hall", exact: true }).click();
  await page.getByRole("tab", { name: "Assets" }).click();
  await expect(page.getByRole("link", { name: "Hall 7" })).toBeVisible();
  const { data } = await program.call<{ data: object[] }>("TENANT_ADMIN", "/api/assetProfiles?pageSize=5&page=0&textSearch=Hall");
  expect(data).toMatchObject([{ name: "Hall", default: true, defaultRuleChainId: chain.id }]);
});

test("a file of the resource library is stored, replaced, named, saved again and deleted", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/resources/resources-library");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const adding = page.getByRole("dialog", { name: "Add a file" });
  await adding.getByLabel("Title").fill("Limits");
  await page.locator('input[type="file"]').setInputFiles({ name: "limits.csv", mimeType: "text/csv", buffer: Buffer.from("pump;4") });
  const drawer = page.getByRole("dialog", { name: "Limits" });
  const saved = async (): Promise<string> => {
    const saving = page.waitForEvent("download");
    await drawer.getByRole("button", { name: "Download" }).click();
    return readFileSync(await (await saving).path(), "utf8");
  };
  expect(await saved()).toBe("pump;4");
  await drawer.locator('input[type="file"]').setInputFiles({ name: "limits.csv", mimeType: "text/csv", buffer: Buffer.from("pump;5") });
  await expect(page.getByText("The file is stored")).toBeVisible();
  expect(await saved()).toBe("pump;5");
  await drawer.getByLabel("Title").fill("Limits of pumps");
  await drawer.getByRole("button", { name: "Save", exact: true }).click();
  const renamed = page.getByRole("dialog", { name: "Limits of pumps" });
  await renamed.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog", { name: /^Delete Limits of pumps/ }).getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText("No files yet.")).toBeVisible();
});

test("firmware is uploaded with its checksum, given to a profile, and fetched by its devices", async ({ page, program }) => {
  const file = Buffer.from(Array.from({ length: 5_000 }, (_, n) => n % 251));
  const profile = await program.call<Made>("TENANT_ADMIN", "/api/deviceProfile", { name: "Meters", type: "DEFAULT", transportType: "DEFAULT", provisionType: "DISABLED", profileData: { configuration: { type: "DEFAULT" }, transportConfiguration: { type: "DEFAULT" } } });
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device?accessToken=METER_1", { name: "Meter 1", deviceProfileId: profile.id });
  await logIn(page, program, "TENANT_ADMIN", "/features/otaUpdates?add=true");
  const form = page.getByRole("dialog", { name: "Add: OTA package" });
  await form.getByLabel("Title").fill("meter");
  await form.getByLabel("Version").fill("2.1");
  await form.getByRole("combobox", { name: "Device profile" }).fill("Meters");
  await page.getByRole("option", { name: "Meters" }).click();
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "meter" })).toBeVisible();
  await page.locator('input[type="file"]').setInputFiles({ name: "meter-2.1.bin", mimeType: "application/octet-stream", buffer: file });
  await expect(page.getByText("The file is stored")).toBeVisible();
  await expect(page.getByRole("button", { name: "Upload the file" })).toHaveCount(0);
  await page.goto(`${program.url}/features/otaUpdates`);
  await expect(page.getByRole("row", { name: /meter/ }).first()).toContainText(createHash("sha256").update(file).digest("hex").slice(0, 8));

  await page.goto(`${program.url}/profiles/deviceProfiles/${profile.id.id}`);
  await page.getByRole("combobox", { name: "Firmware" }).click();
  await page.getByRole("option", { name: /meter/ }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  const told = async (): Promise<object> => {
    const answer = await fetch(`${program.url}/api/v1/METER_1/attributes?sharedKeys=fw_title,fw_version,fw_checksum`);
    return (await answer.json()) as object;
  };
  await expect.poll(told).toEqual({ shared: { fw_title: "meter", fw_version: "2.1", fw_checksum: createHash("sha256").update(file).digest("hex") } });
  const fetched = await fetch(`${program.url}/api/v1/METER_1/firmware?title=meter&version=2.1`);
  expect(Buffer.from(await fetched.arrayBuffer()).equals(file)).toBe(true);
  // Its page says which firmware is meant for it.
  await page.goto(`${program.url}/entities/devices/${device.id.id}?tab=attributes`);
  await page.getByRole("radiogroup").getByText("Shared", { exact: true }).click();
  await expect(page.locator('[data-key="fw_version"]')).toHaveText("2.1");
});
