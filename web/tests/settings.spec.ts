// What the screens of settings are for: mails and text messages go out, tokens live as long as they are told, devices are told the right
// address, queues are there to be chosen, and home shows what was chosen.

import { findings } from "./axe";
import { expect, logIn, test, USERS } from "./program";
import { MailSink, MessageSink } from "./sinks";

interface Made {
  id: { id: string };
}

test("a test mail goes to whoever set the mail server up, and so does a link for a forgotten password", async ({ page, browser, program }) => {
  const sink = new MailSink();
  const port = await sink.listen();
  try {
    await logIn(page, program, "SYS_ADMIN", "/settings/outgoing-mail");
    for (const [label, value] of [["Sender", "fieldline@example.com"], ["Mail server", "127.0.0.1"], ["Port", String(port)], ["Time-out, ms", "5000"]] as const) {
      await page.getByRole("textbox", { name: label, exact: true }).fill(value);
    }
    await page.getByRole("button", { name: "Send a test mail" }).click();
    await expect(page.getByText("A mail is on its way to your address.")).toBeVisible();
    expect(sink.mails.map(({ to }) => to)).toEqual([USERS.SYS_ADMIN.email]);
    expect(sink.mails[0]?.text).toMatch(/^From: .*fieldline@example\.com/m);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText("Saved", { exact: true })).toBeVisible();
    await page.reload();
    await expect(page.getByRole("textbox", { name: "Mail server" })).toHaveValue("127.0.0.1");
    expect(await findings(page)).toEqual([]);

    // A link is mailed only where it leads is known.
    await page.goto(`${program.url}/settings/general`);
    await page.getByRole("textbox", { name: "Address of these pages" }).fill(program.url);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText("Saved", { exact: true })).toBeVisible();
    const theirs = await (await browser.newContext({ locale: "en-US" })).newPage();
    await theirs.goto(`${program.url}/login/resetPasswordRequest`);
    await theirs.getByLabel("E-mail").fill(USERS.TENANT_ADMIN.email);
    await theirs.getByRole("button").click();
    await expect(theirs.getByRole("status")).toBeVisible();
    await expect.poll(() => sink.mails.map(({ to }) => to)).toEqual([USERS.SYS_ADMIN.email, USERS.TENANT_ADMIN.email]);
  } finally {
    sink.close();
  }
});

test("a text message goes through the message centre that is set, whose password comes back to nobody", async ({ page, program }) => {
  const sink = new MessageSink();
  const port = await sink.listen();
  try {
    await logIn(page, program, "SYS_ADMIN", "/settings/sms");
    await page.getByRole("combobox", { name: "Provider" }).click();
    await page.getByRole("option", { name: "SMPP" }).click();
    await expect(page.getByLabel("Account SID")).toHaveCount(0);
    for (const [label, value] of [["Host", "127.0.0.1"], ["Port", String(port)], ["System ID", "fieldline"]] as const) {
      await page.getByRole("textbox", { name: label, exact: true }).fill(value);
    }
    await page.getByLabel(/^Password/).fill("smpp-key");
    await page.getByRole("button", { name: "Send a test message" }).click();
    const form = page.getByRole("dialog", { name: "Send a test message" });
    await form.getByLabel("Phone number of the recipient").fill("+491701234567");
    await form.getByLabel("Text").fill("The pump stands still.");
    await form.getByRole("button", { name: "Send", exact: true }).click();
    await expect(page.getByText("The message is on its way.")).toBeVisible();
    expect(sink.messages).toHaveLength(1);
    expect(sink.messages[0]).toContain("491701234567");
    expect(sink.messages[0]).toContain("The pump stands still.");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText("Saved", { exact: true })).toBeVisible();
    await page.reload();
    await expect(page.getByLabel("System ID")).toHaveValue("fieldline");
    await expect(page.getByLabel(/^Password/)).toHaveValue("");
    expect(JSON.stringify(await program.call("SYS_ADMIN", "/api/admin/settings/sms"))).not.toContain("smpp-key");
    // The one that is stored is used where none is typed.
    await page.getByRole("button", { name: "Send a test message" }).click();
    await form.getByLabel("Phone number of the recipient").fill("+491701234568");
    await form.getByRole("button", { name: "Send", exact: true }).click();
    await expect.poll(() => sink.messages.length).toBe(2);
  } finally {
    sink.close();
  }
});

test("devices are told the address that is set, in all of their commands", async ({ page, program }) => {
  const { id } = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Told the address" });
  await logIn(page, program, "SYS_ADMIN", "/settings/connectivity");
  await page.getByRole("checkbox", { name: "MQTT", exact: true }).check();
  await page.getByLabel("Host", { exact: true }).nth(1).fill("mqtt.example.com");
  await page.getByLabel("Port", { exact: true }).nth(1).fill("18830");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await page.context().clearCookies();
  await page.evaluate(() => localStorage.clear());
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${id.id}?tab=connect`);
  await page.getByRole("radiogroup", { name: "Protocol" }).getByText("MQTT", { exact: true }).click();
  await expect(page.getByText(/^mosquitto_pub .*-h mqtt\.example\.com -p 18830/)).toBeVisible();
});

test("a queue is added by the system administrator, and tenants read and choose it", async ({ page, browser, program }) => {
  await logIn(page, program, "SYS_ADMIN", "/settings/queues");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const form = page.getByRole("dialog", { name: "Add: Queue" });
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("Urgent");
  await form.getByRole("textbox", { name: "Partitions" }).fill("2");
  await form.getByRole("combobox", { name: "Failures" }).click();
  await page.getByRole("option", { name: "Retry all" }).click();
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Urgent" })).toBeVisible();
  await page.getByLabel("Poll interval, ms").fill("50");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  const { data } = await program.call<{ data: object[] }>("SYS_ADMIN", "/api/queues?serviceType=TB_RULE_ENGINE&pageSize=10&page=0&textSearch=Urgent");
  expect(data).toMatchObject([{ name: "Urgent", topic: "tb_rule_engine.urgent", partitions: 2, pollInterval: 50, processingStrategy: { type: "RETRY_ALL" } }]);

  const theirs = await (await browser.newContext({ locale: "en-US" })).newPage();
  await logIn(theirs, program, "TENANT_ADMIN", "/settings/queues");
  await theirs.getByRole("link", { name: "Urgent" }).click();
  await expect(theirs.getByRole("heading", { level: 1, name: "Urgent" })).toBeVisible();
  await expect(theirs.getByRole("button", { name: "Delete", exact: true })).toHaveCount(0);
  await theirs.goto(`${program.url}/profiles/deviceProfiles?add=true`);
  const profile = theirs.getByRole("dialog", { name: "Add: Device profile" });
  await profile.getByRole("textbox", { name: "Name", exact: true }).fill("Hurried");
  await profile.getByRole("combobox", { name: "Queue" }).click();
  await theirs.getByRole("option", { name: "Urgent" }).click();
  await profile.getByRole("button", { name: "Add", exact: true }).click();
  await expect(theirs.getByRole("heading", { level: 1, name: "Hurried" })).toBeVisible();
  expect((await program.call<{ data: object[] }>("TENANT_ADMIN", "/api/deviceProfiles?pageSize=5&page=0&textSearch=Hurried")).data).toMatchObject([{ defaultQueueName: "Urgent" }]);
});

test("home shows the dashboard that was chosen for the tenant, until it is taken away", async ({ page, browser, program }) => {
  await program.call("TENANT_ADMIN", "/api/dashboard", {
    title: "All of the plant",
    configuration: { widgets: { w: { typeFullFqn: "system.cards.markdown_card", type: "static", config: { title: "Welcome", settings: { markdownTextPattern: "Good morning" }, datasources: [] } } }, states: { default: { name: "Home", root: true, layouts: { main: { widgets: { w: { col: 0, row: 0, sizeX: 8, sizeY: 4 } }, gridSettings: {} } } } } },
  });
  await logIn(page, program, "TENANT_ADMIN", "/settings/home");
  await page.getByRole("combobox", { name: "Home shows this dashboard" }).fill("All of");
  await page.getByRole("option", { name: "All of the plant" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await page.goto(`${program.url}/home`);
  await expect(page.getByText("Good morning")).toBeVisible();
  await expect(page.getByRole("heading", { level: 1, name: "All of the plant" })).toHaveCount(0);
  await page.goto(`${program.url}/settings/home`);
  await page.getByRole("checkbox", { name: "without its toolbar" }).uncheck();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  const theirs = await (await browser.newContext({ locale: "en-US" })).newPage();
  await logIn(theirs, program, "TENANT_ADMIN", "/home");
  await expect(theirs.getByRole("heading", { level: 1, name: "All of the plant" })).toBeVisible();
  await page.getByLabel("Clear the choice").click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await theirs.reload();
  await expect(theirs.getByRole("heading", { level: 1, name: "Home" })).toBeVisible();
});

test("tokens live as long as they are told, and another signing key ends all sessions but the own", async ({ page, browser, program }) => {
  const theirs = await (await browser.newContext({ locale: "en-US" })).newPage();
  await logIn(theirs, program, "TENANT_ADMIN", "/entities/devices");
  const old = await program.token("TENANT_ADMIN");
  const status = async (token: string): Promise<number> => (await fetch(`${program.url}/api/auth/user`, { headers: { "X-Authorization": `Bearer ${token}` } })).status;
  await logIn(page, program, "SYS_ADMIN", "/security-settings/jwt");
  await page.getByLabel("Seconds that a token is valid").fill("1200");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  const { exp = 0, iat = 0 } = JSON.parse(Buffer.from((await program.token("TENANT_ADMIN")).split(".")[1] ?? "", "base64url").toString()) as { exp?: number; iat?: number };
  expect(exp - iat).toBe(1200);
  expect(await status(old)).toBe(200);
  await page.getByLabel(/^New signing key/).fill(Buffer.alloc(64, 7).toString("base64"));
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(() => status(old)).toBe(401);
  await page.goto(`${program.url}/tenants`);
  await expect(page.getByRole("heading", { level: 1, name: "Tenants" })).toBeVisible();
  await theirs.goto(`${program.url}/entities/devices`);
  await expect(theirs.getByRole("button", { name: "Log in" })).toBeVisible();
});
