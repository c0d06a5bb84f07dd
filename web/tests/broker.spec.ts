// The publish/subscribe broker: its clients come and go, are let in by credentials, kept out, and leave messages behind.

import type { Page } from "@playwright/test";
import { BROKER_PAGES } from "../src/screens/broker/pages";
import { findings } from "./axe";
import { MqttClient } from "./mqtt";
import { expect, logIn, Program, test } from "./program";

const broker = new Program({ FIELDLINE_BROKER_LISTEN: "127.0.0.1:0", FIELDLINE_BROKER_ACCESS: "credentials" });
const clients: MqttClient[] = [];

// Each test goes on with what the one before has left.
test.describe.configure({ mode: "serial" });
test.beforeAll(() => broker.start());
test.afterAll(async () => {
  clients.forEach((client) => client.end());
  await broker.remove();
});
test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

async function connect(clientId: string, password = "secret", isClean = true): Promise<MqttClient> {
  const client = await MqttClient.connect(broker.broker, { clientId, user: "pumps", password, isClean });
  clients.push(client);
  return client;
}

const REFUSED = /has refused the client/;
const tabs = (page: Page) => page.getByRole("navigation", { name: "Broker" });
const rowOf = (page: Page, list: string, text: string) => page.getByRole("table", { name: list }).getByRole("row").filter({ hasText: text });
/** Whoever waits sees that the browser has what the server has. */
async function settled(page: Page): Promise<void> {
  await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
}

test("credentials are added, and clients log in with them", async ({ page }) => {
  await expect(connect("stranger"), "nobody has credentials yet").rejects.toThrow(REFUSED);
  await logIn(page, broker, "SYS_ADMIN", "/home");
  await page.getByRole("navigation", { name: "Main menu" }).getByRole("link", { name: "Broker" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Broker" })).toBeVisible();
  await expect(page.locator('[data-figure="Connected clients"]')).toHaveText("0");
  await tabs(page).getByRole("link", { name: "Client credentials" }).click();
  await expect(page.getByText("No client has credentials yet.")).toBeVisible();

  await page.getByRole("button", { name: "Add", exact: true }).click();
  const form = page.getByRole("dialog", { name: "Add client credentials" });
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("Pumps");
  await form.getByRole("textbox", { name: "User name" }).fill("pumps");
  await form.getByLabel("Password", { exact: true }).fill("secret");
  await form.getByRole("textbox", { name: "Topics to publish on" }).fill("pumps/.*\nplant/[a-z]{1,5}");
  expect(await findings(page)).toEqual([]);
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(form).toBeHidden();
  await expect(rowOf(page, "Client credentials", "Pumps")).toContainText("Name and password (MQTT)");

  await expect(connect("pump-1", "wrong")).rejects.toThrow(REFUSED);
  const client = await connect("pump-1");
  await client.publishText("pumps/1", "7");
  client.end();

  // The password is told, but never shown; another one holds at once.
  await rowOf(page, "Client credentials", "Pumps").click();
  const stored = page.getByRole("dialog", { name: "Pumps" });
  await expect(stored.getByRole("textbox", { name: "Topics to publish on" })).toHaveValue("pumps/.*\nplant/[a-z]{1,5}");
  await expect(stored.getByText("There is a password. It is never shown.")).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await stored.getByLabel("Present password").fill("secret");
  await stored.getByLabel("New password").fill("another");
  await stored.getByRole("button", { name: "Change the password" }).click();
  await expect(stored.getByLabel("New password")).toHaveValue("");
  (await connect("pump-1", "another")).end();
  await expect(connect("pump-1", "secret")).rejects.toThrow(REFUSED);
});

test("sessions are seen with what their clients do, and ended", async ({ page }) => {
  const client = await connect("pump-7", "another", false);
  await client.subscribe("plant/#");
  await client.publishText("pumps/7", "1");
  await connect("pump-8", "another");
  await logIn(page, broker, "SYS_ADMIN", "/broker");
  await expect(page.locator('[data-figure="Connected clients"]')).toHaveText("2");
  await expect(page.locator('[data-figure="Subscriptions"]')).toHaveText("1");
  await page.getByRole("link", { name: "Connected clients" }).click();
  const row = rowOf(page, "Client sessions", "pump-7");
  await expect(row).toContainText("Connected");
  await expect(row).toContainText("127.0.0.1");
  await page.getByRole("textbox", { name: "Search" }).fill("UMP-8");
  await expect(row).toHaveCount(0);
  await page.getByRole("textbox", { name: "Search" }).fill("");

  // Rows are opened by key, too.
  await row.focus();
  await page.keyboard.press("Enter");
  const session = page.getByRole("dialog", { name: "pump-7", exact: true });
  await expect(session).toContainText("MQTT 3.1.1");
  await expect(session.getByText("pumps", { exact: true })).toBeVisible();
  await expect(session.getByText("1 (QoS 0: 0, 1: 1, 2: 0)")).toBeVisible();
  await expect(session.getByRole("table", { name: "Subscriptions" })).toContainText("plant/#");
  expect(await findings(page)).toEqual([]);

  // What a client has subscribed to is changed for it.
  await session.getByRole("button", { name: "Change the subscriptions" }).click();
  await session.getByRole("button", { name: "Add to: Subscriptions" }).click();
  await session.getByRole("textbox", { name: "Topic filter" }).fill("yard/+");
  await session.getByRole("button", { name: "Save" }).click();
  await expect(session.getByRole("table", { name: "Subscriptions" })).toContainText("yard/+");

  await session.getByRole("button", { name: "Disconnect" }).click();
  await page.getByRole("dialog", { name: "Disconnect pump-7?" }).getByRole("button", { name: "Disconnect" }).click();
  await expect(client.ended).rejects.toThrow(/has ended the connection/);
  await expect(session.getByText("Disconnected", { exact: true })).toBeVisible();
  await session.getByRole("button", { name: "Remove the session" }).click();
  await page.getByRole("dialog", { name: "Remove the session of pump-7 for good?" }).getByRole("button", { name: "Remove the session" }).click();
  await expect(session).toBeHidden();
  await page.goto(`${broker.url}/broker/sessions`);
  await expect(rowOf(page, "Client sessions", "pump-8")).toBeVisible();
  await expect(row).toHaveCount(0);
});

test("retained messages are found, read and deleted", async ({ page }) => {
  const client = await connect("pump-9", "another");
  await client.publishText("plant/a", '{"level":3}', true);
  await client.publishText("plant/b", "on", true);
  await client.publishText("plant/c", "off", true);
  await logIn(page, broker, "SYS_ADMIN", "/broker/retained");
  await expect(rowOf(page, "Retained messages", "plant/a")).toContainText('{"level":3}');
  await rowOf(page, "Retained messages", "plant/a").click();
  const message = page.getByRole("dialog", { name: "plant/a" });
  await expect(message.locator("pre")).toHaveText('{\n  "level": 3\n}');
  expect(await findings(page)).toEqual([]);
  await message.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog", { name: /^Delete the retained message/ }).getByRole("button", { name: "Delete" }).click();
  await expect(message).toBeHidden();
  await expect(rowOf(page, "Retained messages", "plant/a")).toHaveCount(0);

  await rowOf(page, "Retained messages", "plant/b").getByRole("checkbox").check();
  await page.getByRole("button", { name: "Delete 1" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete 1" }).click();
  await expect(rowOf(page, "Retained messages", "plant/b")).toHaveCount(0);
  const other = await connect("reader", "another");
  await other.subscribe("plant/#");
  await expect.poll(() => other.messages.map(({ topic }) => topic)).toEqual(["plant/c"]);

  // By a topic one finds whoever gets its messages.
  await tabs(page).getByRole("link", { name: "Subscriptions", exact: true }).click();
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("textbox", { name: "Gets messages of the topic" }).fill("plant/z");
  await expect(rowOf(page, "Subscriptions", "reader")).toContainText("plant/#");
  await page.getByRole("textbox", { name: "Gets messages of the topic" }).fill("yard");
  await expect(rowOf(page, "Subscriptions", "reader")).toHaveCount(0);
});

test("a client that was refused is blocked, and let in again", async ({ page }) => {
  await expect(connect("intruder", "guessed")).rejects.toThrow(REFUSED);
  await logIn(page, broker, "SYS_ADMIN", "/broker/unauthorized");
  await rowOf(page, "Refused clients", "intruder").click();
  const refused = page.getByRole("dialog", { name: "intruder" });
  await expect(refused).toContainText("pumps");
  await refused.getByRole("button", { name: "Block clients" }).click();
  const form = page.getByRole("dialog", { name: "Block clients" });
  await expect(form.getByRole("textbox", { name: "Value" })).toHaveValue("intruder");
  expect(await findings(page)).toEqual([]);
  await form.getByRole("button", { name: "Block", exact: true }).click();
  await expect(form).toBeHidden();
  await expect(connect("intruder", "another"), "the password is right now").rejects.toThrow(REFUSED);

  await page.goto(`${broker.url}/broker/blocked`);
  await expect(rowOf(page, "Blocked clients", "intruder")).toContainText("for ever");
  await rowOf(page, "Blocked clients", "intruder").getByRole("checkbox").check();
  await page.getByRole("button", { name: "Unblock 1" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Unblock 1" }).click();
  await expect(page.getByText("Nobody is blocked.")).toBeVisible();
  (await connect("intruder", "another")).end();

  await tabs(page).getByRole("link", { name: "Refused clients" }).click();
  await page.getByRole("button", { name: "Clear the list" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Clear the list" }).click();
  await expect(page.getByText("No client was refused lately.")).toBeVisible();
});

test("ways to know clients are switched, ordered and set", async ({ page }) => {
  await logIn(page, broker, "SYS_ADMIN", "/broker/authentication");
  const row = rowOf(page, "Authentication", "Certificate (X.509)");
  await expect(row).toContainText("Off");
  await page.getByRole("button", { name: "Switch on: Certificate (X.509)" }).click();
  await expect(row).toContainText("On");
  await page.getByRole("button", { name: "Ask earlier: Certificate (X.509)" }).click();
  await expect(page.getByRole("table", { name: "Authentication" }).getByRole("row").nth(1)).toContainText("Certificate (X.509)");
  expect((await broker.call<{ jsonValue: unknown }>("SYS_ADMIN", "/api/admin/settings/mqttAuthorization")).jsonValue).toEqual({ priorities: ["X_509", "MQTT_BASIC", "JWT", "HTTP"] });
  await page.getByRole("button", { name: "Settings: Name and password (MQTT)" }).click();
  const settings = page.getByRole("dialog", { name: "Name and password (MQTT)" });
  await settings.getByRole("combobox", { name: "Clients are looked up by" }).click();
  await page.getByRole("option", { name: "User name" }).click();
  expect(await findings(page)).toEqual([]);
  await settings.getByRole("button", { name: "Save" }).click();
  await expect(settings).toBeHidden();
  expect((await broker.call<{ configuration: unknown }>("SYS_ADMIN", "/api/mqtt/auth/provider/type/MQTT_BASIC")).configuration).toEqual({ type: "MQTT_BASIC", authStrategy: "USERNAME" });
  await page.getByRole("button", { name: "Switch off: Certificate (X.509)" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
  await expect(row).toContainText("Off");
  // The last one is not switched off without a word.
  await page.getByRole("button", { name: "Switch off: Name and password (MQTT)" }).click();
  await expect(page.getByRole("dialog")).toContainText("every client may connect then");
});

test("all screens have no findings, and fit a phone", async ({ page }) => {
  test.setTimeout(120_000);
  const member = await connect("member", "another");
  await member.subscribe("$share/workers/pumps/#");
  await logIn(page, broker, "SYS_ADMIN", "/broker");
  for (const { path } of BROKER_PAGES) {
    await page.goto(broker.url + path);
    await expect(page.getByRole("heading", { level: 1, name: "Broker" })).toBeVisible();
    await settled(page);
    for (const [width, colorScheme] of [[1_280, "light"], [1_280, "dark"], [360, "light"], [360, "dark"]] as const) {
      await page.setViewportSize({ width, height: 780 });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await expect.configure({ soft: true }).poll(() => findings(page), { message: `${path} ${width} ${colorScheme}`, timeout: 5_000 }).toEqual([]);
      expect.soft(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), `${path} ${width}`).toBe(0);
      await page.screenshot({ path: `test-results/screens/broker${path.replaceAll("/", "_")}_${width}_${colorScheme}.png` });
    }
  }
  await page.goto(`${broker.url}/broker/shared-subscriptions`);
  await rowOf(page, "Shared subscriptions", "workers").click();
  await page.getByRole("dialog").getByRole("link", { name: "member" }).click();
  await expect(page.getByRole("dialog", { name: "member" })).toContainText("$share/workers/pumps/#");
});

test("without a broker the menu has none, and its address says what to do", async ({ page, program }) => {
  await logIn(page, program, "SYS_ADMIN", "/broker");
  await expect(page.getByText("The broker does not run.")).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Main menu" }).getByRole("link", { name: "Overload" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Broker", exact: true })).toHaveCount(0);
  expect(await findings(page)).toEqual([]);
});
