// Users: their keys and passwords, what they begin with, and how the pages look to them.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

interface Made {
  id: { id: string; entityType: string };
}

test("an API key is shown once and opens the API; a password tells what it lacks", async ({ page, program }) => {
  await logIn(page, program, "CUSTOMER_USER", "/account/security");
  await page.getByRole("button", { name: "Add an API key" }).click();
  await page.getByLabel("What it is for").fill("Report");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const value = await page.locator("[data-api-key]").textContent();
  const answer = await fetch(`${program.url}/api/auth/user`, { headers: { "X-Authorization": `ApiKey ${value ?? ""}` } });
  expect(((await answer.json()) as { email: string }).email).toBe("customer@thingsboard.org");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await page.getByRole("switch", { name: "Report works" }).press("Space");
  await expect.poll(async () => (await fetch(`${program.url}/api/auth/user`, { headers: { "X-Authorization": `ApiKey ${value ?? ""}` } })).status).toBe(401);
  await page.getByLabel(/^New password/).first().fill("abc");
  await expect(page.getByText(/At least \d+ characters – not yet/)).toBeVisible();
});

test("a user without a password is offered the link, and one with a password all else", async ({ page, browser, program }) => {
  const { customerId } = await program.call<{ customerId: object }>("CUSTOMER_USER", "/api/auth/user");
  const made = await program.call<Made>("TENANT_ADMIN", "/api/user?sendActivationMail=false", { email: "fresh@example.com", authority: "CUSTOMER_USER", customerId });
  await logIn(page, program, "TENANT_ADMIN", `/users/${made.id.id}`);
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  await button("Activation link").click();
  const link = new URL((await page.locator("[data-activation-link]").textContent()) ?? "");
  await page.keyboard.press("Escape");
  await expect(button("Log in as this user")).toHaveCount(0);
  await expect(button("Enable")).toHaveCount(0);
  const theirs = await (await browser.newContext({ locale: "en-US" })).newPage();
  await theirs.goto(program.url + link.pathname + link.search);
  const rules = theirs.getByRole("list", { name: "What the new password must be like" });
  await expect(rules).toContainText(/At least \d+ characters/);
  await theirs.getByLabel("New password", { exact: true }).fill("abc");
  await expect(rules.getByText(/At least \d+ characters – not yet/)).toBeVisible();
  expect(await findings(theirs)).toEqual([]);
  await theirs.getByLabel("New password", { exact: true }).fill("fresh-secret-1");
  await expect(rules.getByText("not yet")).toHaveCount(0);
  await theirs.getByLabel("New password again").fill("fresh-secret-1");
  await theirs.getByRole("button", { name: "Save password" }).click();
  await expect(theirs.getByRole("button", { name: "fresh@example.com" })).toBeVisible();
  await page.reload();
  await expect(button("Activation link")).toHaveCount(0);
  await button("Disable").click();
  await expect(button("Enable")).toBeVisible();
  await expect(button("Log in as this user"), "nobody can stand in for whoever is shut out").toHaveCount(0);
  await button("Enable").click();
  await button("Log in as this user").click();
  await expect(page.getByRole("button", { name: "fresh@example.com" })).toBeVisible();
});

test("the page of a customer says where it is, and has the entity views of the customer", async ({ page, program }) => {
  const customer = await program.call<Made>("TENANT_ADMIN", "/api/customer", { title: "Reads in part" });
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Boiler of many" });
  const view = await program.call<Made>("TENANT_ADMIN", "/api/entityView", { name: "Its pressure", type: "shown", entityId: device.id, keys: { timeseries: ["pressure"], attributes: { cs: [], ss: [], sh: [] } } });
  await program.call("TENANT_ADMIN", `/api/customer/${customer.id.id}/entityView/${view.id.id}`, {});
  await logIn(page, program, "TENANT_ADMIN", `/customers/${customer.id.id}`);
  await page.getByRole("tab", { name: "Entity views" }).click();
  await expect(page.getByRole("link", { name: "Its pressure" })).toBeVisible();
  const way = page.getByRole("navigation", { name: "Way to this page" });
  await expect(way).toContainText("People");
  expect(await findings(page)).toEqual([]);
  await way.getByRole("link", { name: "Customers" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Customers" })).toBeVisible();
});

test("a customer's users see the home that its form has for them", async ({ page, browser, program }) => {
  const dashboard = await program.call<Made>("TENANT_ADMIN", "/api/dashboard", { title: "Home of A" });
  const { customerId } = await program.call<{ customerId: { id: string } }>("CUSTOMER_USER", "/api/auth/user");
  await program.call("TENANT_ADMIN", `/api/customer/${customerId.id}/dashboard/${dashboard.id.id}`, {});
  await logIn(page, program, "TENANT_ADMIN", `/customers/${customerId.id}`);
  await page.getByLabel("Description").fill("Pays by year");
  await page.getByRole("combobox", { name: "Home of its users shows this dashboard" }).click();
  await page.getByRole("option", { name: "Home of A" }).click();
  await page.getByRole("checkbox", { name: "without its toolbar" }).uncheck();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  const customer = await program.call<{ additionalInfo: object }>("TENANT_ADMIN", `/api/customer/${customerId.id}`);
  expect(customer.additionalInfo).toMatchObject({ description: "Pays by year", homeDashboardId: dashboard.id.id, homeDashboardHideToolbar: false });
  const theirs = await (await browser.newContext({ locale: "en-US" })).newPage();
  await logIn(theirs, program, "CUSTOMER_USER", "/home");
  await expect(theirs.getByRole("heading", { name: "Home of A" })).toBeVisible();
});

test("a user begins at the dashboard that was chosen, and gets nothing else", async ({ page, program }) => {
  const dashboard = await program.call<Made>("TENANT_ADMIN", "/api/dashboard", { title: "Only this" });
  const customer = await program.call<{ customerId: { id: string } }>("CUSTOMER_USER", "/api/auth/user");
  await program.call("TENANT_ADMIN", `/api/customer/${customer.customerId.id}/dashboard/${dashboard.id.id}`, {});
  const own = await program.call<Record<string, unknown> & Made>("CUSTOMER_USER", "/api/auth/user");
  const whole = await program.call<Record<string, unknown>>("TENANT_ADMIN", `/api/user/${own.id.id}`);
  const info = { ...(whole["additionalInfo"] as object | null), defaultDashboardId: dashboard.id.id, defaultDashboardFullscreen: true };
  await program.call("TENANT_ADMIN", "/api/user?sendActivationMail=false", { ...whole, additionalInfo: info });
  await logIn(page, program, "CUSTOMER_USER");
  await expect(page.getByRole("heading", { name: "Only this" })).toBeVisible();
  await page.goto(`${program.url}/entities/devices`);
  await expect(page).toHaveURL(new RegExp(`/dashboard/${dashboard.id.id}`));
  await expect(page.getByRole("button", { name: "customer@thingsboard.org" })).toBeVisible();
});

test("contrast, density and language are chosen and remembered", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/entities/devices");
  await page.getByRole("button", { name: "tenant@thingsboard.org" }).click();
  await page.getByRole("menuitemradio", { name: "High contrast" }).click();
  await page.getByRole("menuitemradio", { name: "Dense" }).click();
  await page.getByRole("menuitemradio", { name: "Deutsch" }).click();
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-contrast", "high");
  await expect(page.locator("html")).toHaveAttribute("data-density", "dense");
  await expect(page.getByRole("heading", { level: 1, name: "Geräte" })).toBeVisible();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    expect(await findings(page), colorScheme).toEqual([]);
    await page.screenshot({ path: `test-results/screens/devices_high_${colorScheme}.png` });
  }
});
