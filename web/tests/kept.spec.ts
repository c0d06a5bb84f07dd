// What people have typed or see is not lost, and old values are not taken for new ones.

import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { Locator, Page } from "@playwright/test";
import { findings } from "./axe";
import { expect, logIn, test, USERS } from "./program";

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
    widgets: Object.fromEntries(Object.entries({ Card: "cards.value_card", Gauge: "digital_gauges.gauge_justgage", Table: "cards.entities_table" }).map(([title, fqn]) => [title, { typeFullFqn: `system.${fqn}`, type: "latest", sizeX: 6, sizeY: 4, config: { title, showTitle: true, settings: {}, datasources: [source] } }])),
    states: { default: { name: "Bare", root: true, layouts: { main: { widgets: Object.fromEntries(["Card", "Gauge", "Table"].map((title, n) => [title, { sizeX: 8, sizeY: 6, row: 0, col: n * 8 }])), gridSettings: { columns: 24 } } } } },
    entityAliases: { a1: { id: "a1", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: false } } },
  };
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Bare", configuration });
  await program.send(TOKEN, { temperature: 20 });
  await logIn(page, program, "TENANT_ADMIN");
  // The page waits for its values without saying that there are none.
  await page.addInitScript(() => {
    const post = Worker.prototype.postMessage;
    const held: (() => void)[] = [];
    let holds = true;
    Object.assign(window, { release: () => (holds = false, held.forEach((send) => send())) });
    Worker.prototype.postMessage = function (...message: [unknown]) {
      const send = (): void => post.apply(this, message);
      holds && JSON.stringify(message).includes("frames") ? held.push(send) : send();
    };
  });
  await page.goto(`${program.url}/dashboard/${board.id.id}`);
  const region = (name: string) => page.getByRole("region", { name });
  const value = region("Card").locator("[data-value]");
  await expect(region("Card")).toHaveAttribute("aria-busy", "true");
  await expect(region("Card").getByText("No value yet")).toBeHidden();
  await page.evaluate(() => (window as unknown as { release: () => void }).release());
  await expect(value).toHaveText("20");
  await expect(region("Card")).toHaveAttribute("aria-busy", "false");
  await expect(region("Gauge").locator("[data-age]")).toHaveCount(0);
  await context.setOffline(true);
  await expect(page.getByText(/It was lost: (now|\d+ s ago)/)).toBeVisible();
  await expect(region("Card").getByText(/Last update (now|\d+ (s|min) ago)/)).toBeVisible();
  await expect(region("Gauge").getByText(/Last value (now|\d+ (s|min) ago)/)).toBeVisible();
  await expect(region("Table").getByRole("row", { name: /Test Device A1/ })).toContainText(/now|\d+ (s|min) ago/);
  await page.screenshot({ path: "test-results/screens/stale.png" });
  await context.setOffline(false);
  await expect(page.getByText("It was lost:")).toHaveCount(0);
  await expect(page.locator("[data-age]")).toHaveCount(0);
  await program.send(TOKEN, { temperature: 21 });
  await expect(value).toHaveText("21");
});

test("a lost network stays told where nothing is followed, and lists go on by themselves", async ({ page, context, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/entities/devices?search=Test+Device+A1");
  await page.getByRole("link", { name: "Test Device A1" }).click();
  await page.getByRole("tab", { name: "Latest telemetry" }).click();
  await expect(page.getByText(/No telemetry yet|\d+ keys?/)).toBeVisible();
  await context.setOffline(true);
  const banner = page.getByText("The connection is lost.");
  await expect(banner).toBeVisible();
  await page.getByRole("tab", { name: "Relations" }).click();
  await expect(page.getByText("Check whether you are online.")).toBeVisible();
  await expect(banner).toBeVisible();
  await context.setOffline(false);
  await expect(banner).toHaveCount(0);
  await expect(page.getByText("No relations.")).toBeVisible();
  // The same on a screen that has followed nothing at all.
  await page.goto(`${program.url}/entities/assets`);
  await expect(page.getByText("0 in all")).toBeVisible();
  await context.setOffline(true);
  await expect(banner).toBeVisible();
  await context.setOffline(false);
  await expect(banner).toHaveCount(0);
});

/** A network before the program, which can let nothing through any more without telling anybody. */
async function network(target: string): Promise<{ url: string; sever: () => void; end: () => void }> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [from, to] of [[near, far], [far, near]] as const) {
      open.add(from);
      from.on("error", () => undefined).on("close", () => (open.delete(from), to.destroy()));
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    // Neither end hears of it, as if a cable had been cut.
    sever: () => open.forEach((socket) => socket.unpipe().pause()),
    end: () => (open.forEach((socket) => socket.destroy()), server.close()),
  };
}

test("a connection that dies without a word is noticed, and made anew", async ({ page, program }) => {
  test.setTimeout(90_000);
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Far away" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  const between = await network(program.url);
  for (const level of [3, 2, 1]) {
    await program.send(credentialsId, { level });
  }
  await page.goto(`${between.url}/login?next=/entities/devices/${device.id.id}?tab=telemetry`);
  await page.getByLabel("E-mail").fill("tenant@thingsboard.org");
  await page.getByLabel("Password").fill("tenant");
  await page.getByRole("button", { name: "Log in" }).click();
  const value = page.locator('[data-key="level"]');
  await expect(value).toHaveText("1");
  // The line begins with what was stored before.
  await expect(page.getByRole("img", { name: "The last 3 values" })).toBeVisible();
  const banner = page.getByText("The connection is lost.");
  const cut = async (next: number, hint: () => Promise<unknown>, patience: number): Promise<void> => {
    between.sever();
    await program.send(credentialsId, { level: next });
    await hint();
    await expect(banner).toBeVisible({ timeout: patience });
    await expect(value).toHaveText(String(next), { timeout: 20_000 });
    await expect(banner).toHaveCount(0);
  };
  // Somebody comes back to a computer that has slept: sooner than silence alone would tell.
  await cut(2, () => page.evaluate(() => document.dispatchEvent(new Event("visibilitychange"))), 9_000);
  // Nobody tells anything.
  await cut(3, () => Promise.resolve(), 30_000);
  between.end();
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

/** Presses a button after the server has ended the session: it refuses the tokens, and the page leads to the log-in. */
async function pressWithoutSession(page: Page, button: Locator): Promise<void> {
  await page.evaluate(() => ["jwt_token", "refresh_token"].forEach((key) => localStorage.setItem(key, "refused")));
  // Another request of the page may be faster.
  await Promise.all([page.waitForURL(/\/login\?next=/), button.click({ noWaitAfter: true }).catch(() => undefined)]);
}

async function logInAgain(page: Page): Promise<void> {
  await page.getByLabel("E-mail").fill(USERS.TENANT_ADMIN.email);
  await page.getByLabel("Password").fill(USERS.TENANT_ADMIN.password);
  await page.getByRole("button", { name: "Log in" }).click();
}

test("what was typed into the form of a device outlives a change of tab and the end of the session", async ({ page, program }) => {
  const device = await program.call<{ id: { id: string }; label: string }>("TENANT_ADMIN", "/api/device", { name: "Drafted", label: "first" });
  const path = `/entities/devices/${device.id.id}`;
  await logIn(page, program, "TENANT_ADMIN", path);
  const label = page.getByLabel("Label");
  const note = page.getByText(/Your unsaved changes of .* are back\./);
  await label.fill("mine");
  await page.getByRole("tab", { name: "Attributes" }).click();
  await expect(label).toHaveCount(0);
  await page.getByRole("tab", { name: "Details" }).click();
  await expect(label).toHaveValue("mine");
  await expect(note).toBeVisible();
  expect(await findings(page)).toEqual([]);
  // A link asks, and what is left is back.
  await page.getByRole("link", { name: "Home", exact: true }).click();
  await expect(page.getByRole("dialog")).toContainText("Your changes stay in this browser");
  await page.getByRole("dialog").getByRole("button", { name: "Leave" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Home" })).toBeVisible();
  await page.goBack();
  await expect(label).toHaveValue("mine");
  // The session ends while somebody types; another one changes the device meanwhile.
  await page.getByLabel("Description").fill("in the cellar");
  await pressWithoutSession(page, page.getByRole("button", { name: "Save" }));
  await program.call("TENANT_ADMIN", "/api/device", { ...device, label: "theirs" });
  await logInAgain(page);
  await expect(label).toHaveValue("mine");
  await expect(page.getByLabel("Description")).toHaveValue("in the cellar");
  await expect(note).toBeVisible();
  await expect(page.getByText("Somebody has saved something else meanwhile.")).toBeVisible();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Keep mine" }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await expect(note).toHaveCount(0);
  expect(await program.call("TENANT_ADMIN", `/api/device/${device.id.id}`)).toMatchObject({ label: "mine", additionalInfo: { description: "in the cellar" } });
  await page.reload();
  await expect(label).toHaveValue("mine");
  await expect(note).toHaveCount(0);
  // What is discarded is gone.
  await label.fill("never");
  await page.reload();
  await expect(label).toHaveValue("never");
  await page.getByRole("button", { name: "Discard them" }).click();
  await expect(label).toHaveValue("mine");
  await page.reload();
  await expect(label).toHaveValue("mine");
  await expect(note).toHaveCount(0);
});

test("a new device is gone on with after the session has ended, without its secrets; cancelling gives it up", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/entities/devices");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill("Half a device");
  await form.getByText("2. Credentials").click();
  await form.getByLabel("Access token").fill("NEVER_KEPT_1");
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain("NEVER_KEPT_1");
  await pressWithoutSession(page, form.getByRole("button", { name: "Add" }));
  await logInAgain(page);
  await page.getByRole("button", { name: "Go on adding" }).click();
  await expect(form.getByLabel("Name")).toHaveValue("Half a device");
  await expect(form.getByText("Passwords and other secrets were not kept.")).toBeVisible();
  await form.getByRole("button", { name: "Add" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Half a device" })).toBeVisible();
  await page.goto(`${program.url}/entities/devices`);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(form.getByLabel("Name")).toHaveValue("");
  await form.getByLabel("Name").fill("Another");
  await form.getByRole("button", { name: "Cancel" }).click();
  // The drawer takes its time to slide away.
  await expect(form).toBeHidden();
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(form.getByLabel("Name")).toHaveValue("");
});

test("settings and the own profile are kept until they are saved, and are nobody else's", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/account/profile");
  await page.getByLabel("First name").fill("Nora");
  await page.reload();
  await expect(page.getByLabel("First name")).toHaveValue("Nora");
  await page.evaluate(() => ["jwt_token", "refresh_token"].forEach((key) => localStorage.removeItem(key)));
  await logIn(page, program, "SYS_ADMIN", "/account/profile");
  await expect(page.getByLabel("First name")).not.toHaveValue("Nora");
  await page.goto(`${program.url}/settings/outgoing-mail`);
  await page.getByLabel("Sender").fill("draft@example.com");
  await page.getByLabel("Password", { exact: true }).fill("NEVER_KEPT_2");
  await page.reload();
  await expect(page.getByLabel("Sender")).toHaveValue("draft@example.com");
  await expect(page.getByLabel("Password", { exact: true })).toHaveValue("");
  await page.getByRole("button", { name: "Discard them" }).click();
  await expect(page.getByLabel("Sender")).not.toHaveValue("draft@example.com");
});
