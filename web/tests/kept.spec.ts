// What people have typed or see is not lost, and old values are not taken for new ones.

import { expect, logIn, test } from "./program";

const TOKEN = "A1_TEST_TOKEN";

test("what is typed stays when the page asks the server again by itself", async ({ page, program }) => {
  const device = await program.call<{ id: { id: string }; label: string }>("TENANT_ADMIN", "/api/device", { name: "Typed" });
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}`);
  await page.getByLabel("Label").fill("mine");
  await program.call("TENANT_ADMIN", "/api/device", { ...device, label: "theirs" });
  /** Somebody comes back from another window after a while. */
  const comeBack = async (asked: string): Promise<void> => {
    await page.waitForTimeout(5_500);
    const answer = page.waitForResponse((one) => one.url().includes(asked), { timeout: 3_000 }).catch(() => undefined);
    await page.evaluate(() => window.dispatchEvent(new Event("visibilitychange")));
    await answer;
  };
  await comeBack(`/api/device/${device.id.id}`);
  await expect(page.getByLabel("Label")).toHaveValue("mine");
  await page.getByRole("link", { name: "Home", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stay" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Keep mine" }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  await page.goto(`${program.url}/account/profile`);
  await page.getByLabel("First name").fill("Nora");
  await comeBack("/api/user/");
  await expect(page.getByLabel("First name")).toHaveValue("Nora");
});

test("a network that is gone is told at once, with the moment, also where there is no menu", async ({ page, context, program }) => {
  const source = { type: "entity", entityAliasId: "a1", dataKeys: [{ name: "temperature", type: "timeseries", label: "Temperature", settings: {} }] };
  const configuration = {
    widgets: { card: { typeFullFqn: "system.cards.value_card", type: "latest", sizeX: 6, sizeY: 4, config: { title: "Card", showTitle: true, settings: {}, datasources: [source] } } },
    states: { default: { name: "Bare", root: true, layouts: { main: { widgets: { card: { sizeX: 6, sizeY: 4, row: 0, col: 0 } }, gridSettings: { columns: 24 } } } } },
    entityAliases: { a1: { id: "a1", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: false } } },
  };
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Bare", configuration });
  await program.send(TOKEN, { temperature: 20 });
  await logIn(page, program, "TENANT_ADMIN");
  await page.goto(`${program.url}/dashboard/${board.id.id}`);
  const value = page.getByRole("region", { name: "Card" }).locator("[data-value]");
  await expect(value).toHaveText("20");
  await context.setOffline(true);
  await expect(page.getByText(/It was lost: (now|\d+ s ago)/)).toBeVisible();
  await context.setOffline(false);
  await expect(page.getByText("It was lost:")).toHaveCount(0);
  await program.send(TOKEN, { temperature: 21 });
  await expect(value).toHaveText("21");
});

test("links that are too old say so, and an expired password is changed at once", async ({ page, program }) => {
  await page.goto(`${program.url}/activationLinkExpired`);
  await expect(page.getByRole("alert")).toHaveText("This activation link is too old. Ask your administrator for a new one.");
  await page.goto(`${program.url}/passwordResetLinkExpired`);
  await expect(page.getByRole("alert")).toHaveText("This link is too old. Ask for a new one below.");
  await page.route("**/api/auth/login", (route) => route.fulfill({ status: 401, json: { status: 401, message: "User password expired!", errorCode: 15, resetToken: "t0" } }));
  await page.getByLabel("E-mail").fill("old@example.com");
  await page.getByLabel("Password").fill("old");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Your password is too old: choose a new one" })).toBeVisible();
  expect(new URL(page.url()).searchParams.get("resetToken")).toBe("t0");
});

test("an entry of the audit log tells what was changed", async ({ page, program }) => {
  await program.call("TENANT_ADMIN", "/api/device", { name: "Audited" });
  await logIn(page, program, "TENANT_ADMIN", "/security-settings/auditLogs");
  await page.getByLabel("Search").first().fill("Audited");
  const row = page.getByRole("row", { name: /Audited/ });
  await expect(row).toContainText("Added");
  await row.getByText("Audited").click();
  await expect(page.getByRole("dialog")).toContainText('"name": "Audited"');
});
