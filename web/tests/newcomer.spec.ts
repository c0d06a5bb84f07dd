// What a newcomer does: log in, find a device, see its value change, and survive a lost server.

import type { Page } from "@playwright/test";
import { findings } from "./axe";
import { expect, logIn, test, USERS } from "./program";

const TOKEN = "A1_TEST_TOKEN";
const cell = (page: Page, key: string) => page.locator(`[data-key="${key}"]`);

test("a wrong password is told, and a log-in leads back to where one wanted to be", async ({ page, program }) => {
  await page.goto(`${program.url}/entities/devices`);
  await page.getByLabel("E-mail").fill(USERS.TENANT_ADMIN.email);
  await page.getByLabel("Password").fill("wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert")).toContainText(/password/i);
  await page.getByLabel("Password").fill(USERS.TENANT_ADMIN.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Devices" })).toBeVisible();
});

test("a foreign page is never the way back", async ({ page, program }) => {
  // Browsers leave a tab within an address out, and what dots lead back from.
  for (const next of ["//evil.example/", "/%09/evil.example/", "/.//evil.example/x", "/x/..//evil.example/x"]) {
    await logIn(page, program, "TENANT_ADMIN", `/login?next=${next}`);
    expect(new URL(page.url()).origin).toBe(program.url);
  }
});

test("a link may bring a log-in with it, which is gone from the address afterwards", async ({ browser, program }) => {
  const fresh = async (path: string): Promise<Page> => {
    const page = await (await browser.newContext({ locale: "en-US" })).newPage();
    await page.goto(program.url + path);
    return page;
  };
  const { email, password } = USERS.TENANT_ADMIN;
  const answer = await fetch(`${program.url}/api/auth/login`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ username: email, password }) });
  const { token, refreshToken } = (await answer.json()) as { token: string; refreshToken: string };
  const byToken = await fresh(`/entities/devices?search=A2&accessToken=${token}&refreshToken=${refreshToken}`);
  await expect(byToken.getByRole("link", { name: "Test Device A2" })).toBeVisible();
  expect(byToken.url()).toBe(`${program.url}/entities/devices?search=A2`);
  const byPassword = await fresh(`/?username=${encodeURIComponent(email)}&password=${password}`);
  await expect(byPassword.getByRole("heading", { level: 1, name: "Home" })).toBeVisible();
  expect(byPassword.url()).not.toContain("password");
  const refused = await fresh(`/?username=${encodeURIComponent(email)}&password=wrong`);
  await expect(refused.getByRole("alert")).toContainText(/password/i);
  expect(refused.url()).not.toContain("wrong");
  // One step back lies what was there before, and not the link.
  for (const page of [byToken, byPassword, refused]) {
    await page.goBack();
    expect(page.url()).toBe("about:blank");
  }
});

test("a link with a password logs nobody out, and what it brings goes from the address all the same", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN");
  const { email, password } = USERS.CUSTOMER_USER;
  const brought = `username=${encodeURIComponent(email)}&password=${password}`;
  for (const path of [`/entities/devices?search=A2&${brought}`, `/login?next=${encodeURIComponent("/entities/devices?search=A2")}&${brought}`]) {
    await page.goto(program.url + path);
    await expect(page.getByRole("button", { name: USERS.TENANT_ADMIN.email })).toBeVisible();
    await expect(page).toHaveURL(`${program.url}/entities/devices?search=A2`);
  }
  // A session that has ended is none.
  await page.evaluate(() => {
    const claims = btoa(JSON.stringify({ userId: "1", sub: "a@b.c", scopes: [], exp: 1 }));
    localStorage.setItem("jwt_token", `a.${claims}.b`);
    localStorage.setItem("refresh_token", "ended");
  });
  await page.goto(`${program.url}/login?${brought}`);
  await expect(page.getByRole("button", { name: email })).toBeVisible();
});

test("what is to do next leads to the form or the commands with which it is done", async ({ page, program }) => {
  // The demo has a dashboard, so that this step would be done.
  await page.route("**/api/tenant/dashboards?**", (route) => route.fulfill({ json: { data: [], totalPages: 0, totalElements: 0, hasNext: false } }));
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Silent" });
  await logIn(page, program, "TENANT_ADMIN", "/home");
  await page.getByRole("link", { name: "Build a dashboard" }).click();
  await expect(page.getByRole("dialog", { name: "Add: Dashboard" })).toBeVisible();
  await page.goto(`${program.url}/home`);
  await page.getByRole("link", { name: "Let a device send its first value" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Silent" })).toBeVisible();
  await expect(page.getByText(/^curl /)).toBeVisible();
  expect(page.url()).toContain(device.id.id);
});

test("the demo has a dashboard of its thermostats, which raise alarms and open in detail", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/dashboards");
  await page.getByRole("link", { name: "Thermostats", exact: true }).click();
  const part = (name: string) => page.getByRole("region", { name, exact: true });
  // There are readings of a day before anything was sent.
  await expect(part("Thermostats").last().getByRole("row", { name: /Thermostat T1/ })).toContainText("°C");
  for (const course of ["Temperature", "Humidity"]) {
    await expect(part(course).locator('[data-points]:not([data-points="0"]) canvas')).toBeVisible();
  }
  await expect(part("Map").locator(".leaflet-marker-icon")).toHaveCount(2);
  await program.send("T2_TEST_TOKEN", { temperature: 31, humidity: 40 });
  await expect(part("Alarms")).toContainText("High temperature");
  await expect(part("Alarms")).toContainText("Thermostat T2");
  expect(await findings(page)).toEqual([]);
  await part("Thermostats").last().getByRole("row", { name: /Thermostat T2/ }).click();
  await expect(part("Temperature now")).toContainText("31");
  await expect(part("Limits").getByLabel("Alarm above, °C")).toHaveValue("22");
  await expect(part("About")).toContainText("Store room");
  await expect(part("Temperature and humidity").locator('[data-points]:not([data-points="0"]) canvas')).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

test("values of a device appear and change live, also after the server was gone", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/entities/devices");
  await page.getByLabel("Search").first().fill("A1");
  await page.getByRole("link", { name: "Test Device A1" }).click();
  await page.getByRole("tab", { name: "Latest telemetry" }).click();
  const device = await program.device(TOKEN);
  await device.send({ temperature: 21.5 });
  await expect(cell(page, "temperature")).toHaveText("21.5");
  await device.send({ temperature: 22.5 });
  await expect(cell(page, "temperature")).toHaveText("22.5");
  await program.kill();
  await expect(page.getByText("The connection is lost.")).toBeVisible();
  await expect(cell(page, "temperature")).toHaveText("22.5");
  await program.start();
  await (await program.device(TOKEN)).send({ temperature: 23.5 });
  await expect(cell(page, "temperature")).toHaveText("23.5", { timeout: 30_000 });
  await expect(page.getByText("The connection is lost.")).toHaveCount(0);
});

test("a device is added, connects, gets an attribute, and is deleted", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/entities/devices");
  await page.getByRole("button", { name: "Add" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill("Boiler 7");
  await form.getByRole("button", { name: "Add" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Boiler 7" })).toBeVisible();
  await page.getByRole("tab", { name: "Connect" }).click();
  const command = await page.getByText(/^curl /).textContent();
  const token = /api\/v1\/([^/]+)\//.exec(command ?? "")?.[1] ?? "";
  const device = await program.device(token);
  await device.send({ pressure: 3 });
  await expect(cell(page, "pressure")).toHaveText("3");
  await page.getByRole("tab", { name: "Attributes" }).click();
  await page.getByLabel("Key").fill("limit");
  // Rows that come meanwhile have labels with "Value" in them, too; that of a field which must be filled ends with a star.
  await page.getByRole("textbox", { name: "Value", exact: true }).fill("7.5");
  await page.getByRole("button", { name: "Set" }).click();
  await expect(cell(page, "limit")).toHaveText("7.5");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Devices" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Boiler 7" })).toHaveCount(0);
});

test("a command reaches a device over MQTT, and its page shows the answer and whether the device is there", async ({ page, program }) => {
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Valve 9" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${id.id}/credentials`);
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${id.id}?tab=commands`);
  await expect(page.getByText("Offline", { exact: true })).toBeVisible();
  const send = async (method: string, params: string): Promise<void> => {
    await page.getByLabel("Method").fill(method);
    await page.getByLabel("Parameters (JSON)").fill(params);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  await send("open", "{}");
  await expect(page.getByRole("alert")).toContainText("The device did not answer");
  const valve = await program.device(credentialsId, ({ method, params }) => (method === "open" ? { opened: params } : undefined));
  await expect(page.getByText("Online", { exact: true })).toBeVisible();
  await send("open", '{"by": 40}');
  await expect(page.getByRole("status").filter({ hasText: "opened" })).toContainText('"by": 40');
  await page.getByLabel("Wait for the device's answer").uncheck({ force: true });
  await send("blink", "true");
  await expect(page.getByRole("status").filter({ hasText: "Delivered" })).toBeVisible();
  await expect.poll(() => valve.commands).toEqual([
    { method: "open", params: { by: 40 } },
    { method: "blink", params: true },
  ]);
});

test("a value that is wrong becomes an alarm on a dashboard, all of it by hand", async ({ page, program }) => {
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Boiler 8" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  const boiler = await program.device(credentialsId);
  await boiler.send({ "water level": 20, pressure: 3 });
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}?tab=alarmRules`);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const form = page.getByRole("dialog", { name: "Add: Alarm rule" });
  await form.getByLabel("Alarm type").fill("Overflow");
  await form.getByRole("combobox", { name: "Key", exact: true }).click();
  await page.getByRole("option", { name: "water level" }).click();
  await expect(form.getByRole("textbox", { name: "Argument name" })).toHaveValue("water_level");
  const filter = form.getByRole("group", { name: "Filters" });
  await filter.getByRole("combobox", { name: "Argument name" }).click();
  await page.getByRole("option", { name: "water_level" }).click();
  // Another type of value has other comparisons, and the way back begins with the first.
  const type = filter.getByRole("combobox", { name: "Type of value" });
  await type.click();
  await page.getByRole("option", { name: "Text" }).click();
  await expect(filter.getByRole("combobox", { name: "Comparison" })).toHaveValue("equals");
  await type.click();
  await page.getByRole("option", { name: "Number" }).click();
  await expect(filter.getByRole("combobox", { name: "Comparison" })).toHaveValue("is greater than");
  await filter.getByRole("textbox", { name: "Value", exact: true }).fill("50");
  expect(await findings(page)).toEqual([]);
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Overflow" })).toBeVisible();
  await page.goto(`${program.url}/dashboards?add=true`);
  const drawer = page.getByRole("dialog");
  await drawer.getByLabel("Title").fill("Basin");
  await drawer.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("button", { name: "Add a widget" }).click();
  await page.getByRole("menuitem", { name: "Alarms", exact: true }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Nothing to save")).toBeVisible();
  await page.getByRole("button", { name: "Done" }).click();
  const alarms = page.getByRole("region", { name: "Alarms" });
  // There may be those of other tests.
  await expect(alarms).toContainText(/No alarms\.|\d in all/);
  await expect(alarms).not.toContainText("Overflow");
  await boiler.send({ "water level": 70 });
  const row = alarms.getByRole("row", { name: /Overflow/ });
  await expect(row).toContainText("Boiler 8");
  // What an alarm is read by is not cut: how bad it is, and since when.
  const room = (element: Element): number => Math.max(...[element, ...element.querySelectorAll("*")].map((one) => one.scrollWidth - one.clientWidth));
  for (const column of ["severity", "createdTime"]) {
    expect(await row.locator(`[data-column="${column}"]`).evaluate(room), column).toBeLessThanOrEqual(0);
  }
  const [chip, acts] = await Promise.all([row.locator("[data-severity]").boundingBox(), row.getByRole("button", { name: "Acknowledge" }).boundingBox()]);
  expect((chip?.x ?? Infinity) + (chip?.width ?? 0)).toBeLessThan(acts?.x ?? 0);
});

test("names and values that look like HTML stay text", async ({ page, program }) => {
  const hostile = '<img src=x onerror="window.hacked=1">';
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: hostile, label: hostile });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  await program.send(credentialsId, { text: hostile });
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}?tab=telemetry`);
  await expect(page.getByRole("heading", { level: 1, name: hostile })).toBeVisible();
  await expect(cell(page, "text")).toHaveText(hostile);
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
});

test("a customer user reads what was assigned, and is offered no changes", async ({ page, program }) => {
  await logIn(page, program, "CUSTOMER_USER", "/entities/devices");
  await expect(page.getByRole("link", { name: "Test Device A1" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Add" })).toHaveCount(0);
  await page.getByRole("link", { name: "Test Device A1" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Test Device A1" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Delete", exact: true })).toHaveCount(0);
});

test("two people change the same device, and nobody's change is lost unseen", async ({ browser, program }) => {
  const pages = await Promise.all([0, 1].map(async () => (await browser.newContext({ locale: "en-US" })).newPage()));
  const [mine, theirs] = pages as [Page, Page];
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Shared pump" });
  for (const page of [mine, theirs]) {
    await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}`);
    await expect(page.getByLabel("Label")).toBeVisible();
  }
  await theirs.getByLabel("Label").fill("theirs");
  await theirs.getByRole("button", { name: "Save" }).click();
  await expect(theirs.getByText("Saved")).toBeVisible();
  await mine.getByLabel("Label").fill("mine");
  await mine.getByRole("button", { name: "Save" }).click();
  await expect(mine.getByText("Somebody else has changed this meanwhile")).toBeVisible();
  await mine.getByRole("button", { name: "Keep mine" }).click();
  await expect(mine.getByText("Saved")).toBeVisible();
  const saved = await program.call<{ label: string }>("TENANT_ADMIN", `/api/device/${device.id.id}`);
  expect(saved.label).toBe("mine");
});

test("the palette finds a device by Ctrl+K and the keyboard alone", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Test Device A1");
  await expect(page.getByRole("dialog").getByText("Test Device A1")).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Test Device A1" })).toBeVisible();
});

test("Ctrl+K opens the palette even if it is pressed before the page is there", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN");
  let answer = (): void => undefined;
  const pressed = new Promise<void>((resolve) => (answer = resolve));
  await page.route("**/api/auth/user", async (route) => {
    await pressed;
    await route.continue();
  });
  await page.reload({ waitUntil: "domcontentloaded" });
  await expect(page.getByRole("button", { name: /^Search/ })).toHaveCount(0);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Test ");
  answer();
  await page.keyboard.type("Device A1");
  const field = page.getByRole("textbox", { name: "Search screens, actions, devices, dashboards and all else" });
  await expect(field).toBeFocused();
  await expect(field).toHaveValue("Test Device A1");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("keys are the browser's again where no search comes", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN");
  await page.route("**/api/auth/user", (route) => route.fulfill({ status: 403, json: { status: 403, message: "No", errorCode: 20 } }));
  await page.reload();
  await page.keyboard.press("Control+k");
  await expect(page.getByText("This could not be loaded")).toBeVisible();
  const isKept = (key: string): Promise<boolean> => page.evaluate((name) => !dispatchEvent(new KeyboardEvent("keydown", { key: name, cancelable: true })), key);
  expect(await isKept("x")).toBe(false);
});

test("the palette does what the role may: adds, changes the look, logs out", async ({ page, program }) => {
  const search = async (text: string): Promise<void> => {
    await page.keyboard.press("Control+k");
    await page.getByRole("textbox", { name: "Search screens, actions, devices, dashboards and all else" }).fill(text);
  };
  await logIn(page, program, "TENANT_ADMIN");
  await search("add rule chain");
  await expect(page.getByRole("dialog").getByRole("button", { name: "Add: Rule chain" })).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Add: Rule chain" })).toBeVisible();
  await expect(page).not.toHaveURL(/add=/);
  await page.keyboard.press("Escape");
  await search("dark");
  await page.keyboard.press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-mantine-color-scheme", "dark");
  await search("log out");
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Password")).toBeVisible();
  await logIn(page, program, "CUSTOMER_USER");
  await search("add");
  await expect(page.getByRole("dialog").getByRole("button", { name: /^Add:/ })).toHaveCount(0);
  await search("log out");
  await expect(page.getByRole("dialog").getByRole("button", { name: "Log out" })).toBeVisible();
});

test("German is German", async ({ page, program }) => {
  await page.addInitScript(() => localStorage.setItem("fieldline_language", "de"));
  await page.goto(`${program.url}/login`);
  await expect(page.getByRole("heading", { name: "Anmelden" })).toBeVisible();
});
