// What people do on the tabs of an entity: relations, attributes and series, and what is offered there.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

interface Made {
  id: { id: string; entityType: string };
}

test("a relation is added, changed, and deleted; hostile names stay text", async ({ page, program }) => {
  const name = "<img src=x onerror=window.hit=1>";
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Related" });
  await program.call("TENANT_ADMIN", "/api/asset", { name });
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}?tab=relations`);
  await page.getByRole("button", { name: "Add a relation" }).click();
  const form = page.getByRole("dialog", { name: "Add a relation" });
  await form.getByRole("combobox", { name: "Direction" }).click();
  await page.getByRole("option", { name: "To here" }).click();
  await form.getByLabel("Relation type").fill("Feeds");
  await form.getByRole("combobox", { name: "Kind of the other entity" }).click();
  await page.getByRole("option", { name: "Asset", exact: true }).click();
  await form.getByRole("combobox", { name: "Asset", exact: true }).fill("img");
  await page.getByRole("option", { name }).click();
  await form.getByLabel("Additional information (JSON)").fill('{"pipe": 3}');
  await form.getByRole("button", { name: "Add", exact: true }).click();
  const row = page.getByRole("row", { name: /Feeds/ });
  await expect(row).toContainText("To here");
  await expect(row).toContainText('{"pipe":3}');
  await row.getByRole("button", { name: /^Edit/ }).click();
  await page.getByLabel("Additional information (JSON)").fill('{"pipe": 4}');
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(row).toContainText('{"pipe":4}');
  expect(await findings(page)).toEqual([]);
  await row.getByRole("button", { name: /^Delete/ }).click();
  await expect(page.getByText("No relations.")).toBeVisible();
  expect(await page.evaluate(() => (window as unknown as { hit?: number }).hit)).toBeUndefined();
});

test("an attribute is changed in place, a series is deleted, a value goes onto a dashboard", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Valued" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  await program.send(credentialsId, { pressure: 4, spare: 1 });
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}?tab=attributes`);
  await page.getByLabel("Key").fill("limit");
  await page.getByRole("textbox", { name: "Value" }).fill("5");
  await page.getByRole("button", { name: "Set" }).click();
  await expect(page.locator('[data-key="limit"]')).toHaveText("5");
  await page.getByRole("button", { name: "Change limit" }).click();
  await page.getByRole("textbox", { name: "Value of limit" }).fill("6");
  await page.getByRole("row", { name: /limit/ }).getByRole("button", { name: "Save" }).click();
  await expect(page.locator('[data-key="limit"]')).toHaveText("6");
  await page.getByRole("tab", { name: "Latest telemetry" }).click();
  await page.getByRole("checkbox", { name: "Select spare" }).check();
  await page.getByRole("button", { name: "Delete", exact: true }).last().click();
  await page.getByRole("button", { name: "Delete for good" }).click();
  await expect(page.locator('[data-key="spare"]')).toHaveCount(0);
  await page.getByRole("checkbox", { name: "Select pressure" }).check();
  await page.getByRole("button", { name: "Show on a dashboard" }).click();
  await page.getByRole("button", { name: "Add the widget" }).click();
  await expect(page).toHaveURL(/\/dashboards\//);
  await expect(page.locator("[data-value]").first()).toHaveText("4");
  // The page of the device knows the dashboards that name it, and no others.
  await program.call("TENANT_ADMIN", "/api/dashboard", { title: "Of others" });
  await page.goto(`${program.url}/entities/devices/${device.id.id}`);
  const naming = page.getByRole("dialog", { name: "Dashboards that name Valued" });
  // Without their list nothing is said about them.
  let refuse = (): void => undefined;
  const refused = new Promise<void>((resolve) => (refuse = resolve));
  await page.route("**/api/tenant/dashboards?**", async (route) => {
    await refused;
    await route.fulfill({ status: 403, json: { status: 403, message: "No lists today", errorCode: 20 } });
  });
  await page.getByRole("button", { name: "On dashboards" }).click();
  await expect(naming.getByRole("status", { name: "Loading" })).toBeVisible();
  refuse();
  await expect(naming.getByRole("alert")).toContainText("No lists today");
  await expect(naming.getByRole("status")).toHaveCount(0);
  await page.unroute("**/api/tenant/dashboards?**");
  await naming.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "On dashboards" }).click();
  await expect(naming.getByRole("link")).toHaveText(["Valued"]);
  expect(await findings(page)).toEqual([]);
  await naming.getByRole("link").click();
  await expect(page.locator("[data-value]").first()).toHaveText("4");
});

test("nobody is offered to delete what the server keeps; a view offers the keys of its device", async ({ page, program }) => {
  interface Listed {
    data: (Made & { default?: boolean; root?: boolean })[];
  }
  const profiles = await program.call<Listed>("TENANT_ADMIN", "/api/deviceProfiles?pageSize=10&page=0");
  await logIn(page, program, "TENANT_ADMIN", `/profiles/deviceProfiles/${profiles.data.find((one) => one.default !== true)?.id.id}`);
  const remove = page.getByRole("button", { name: "Delete", exact: true });
  await expect(remove).toBeVisible();
  await page.goto(`${program.url}/profiles/deviceProfiles/${profiles.data.find((one) => one.default === true)?.id.id}`);
  await expect(page.getByRole("button", { name: "Export" })).toBeVisible();
  await expect(remove).toHaveCount(0);
  const chains = await program.call<Listed>("TENANT_ADMIN", "/api/ruleChains?pageSize=10&page=0");
  await page.goto(`${program.url}/ruleChains/${chains.data.find((one) => one.root === true)?.id.id}/details`);
  await expect(page.getByRole("button", { name: "Copy the ID" })).toBeVisible();
  await expect(remove).toHaveCount(0);
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Seen in part" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  await program.send(credentialsId, { pressure: 4, secret: 1 });
  await page.goto(`${program.url}/entities/entityViews?add=true`);
  const form = page.getByRole("dialog", { name: "Add: Entity view" });
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("Pressure alone");
  await form.getByRole("combobox", { name: "Device it shows" }).click();
  await page.getByRole("option", { name: "Seen in part" }).click();
  await form.getByLabel("Time series").click();
  await page.getByRole("option", { name: "pressure" }).click();
  await page.keyboard.press("Escape");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Pressure alone" })).toBeVisible();
  await page.getByRole("tab", { name: "Latest telemetry" }).click();
  await expect(page.locator('[data-key="pressure"]')).toHaveText("4");
  await expect(page.locator('[data-key="secret"]')).toHaveCount(0);
});
