// Main jobs on the screens beside dashboards and rule chains, as people do them.

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

test("an expression is tried with values before it is saved, and history is reprocessed", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Computed" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  await program.send(credentialsId, { celsius: 20 });
  const field = await program.call<Made>("TENANT_ADMIN", "/api/calculatedField", {
    name: "Fahrenheit", type: "SIMPLE", entityId: device.id,
    configuration: { type: "SIMPLE", arguments: { c: { refEntityKey: { key: "celsius", type: "TS_LATEST" }, defaultValue: "10" } }, expression: "c * 1.8 + 32", output: { type: "TIME_SERIES", name: "fahrenheit" } },
  });
  await logIn(page, program, "TENANT_ADMIN", `/calculatedFields/${field.id.id}`);
  await page.getByRole("button", { name: "Test: Expression" }).click();
  const dialog = page.getByRole("dialog", { name: "Test: Expression" });
  await dialog.getByRole("button", { name: "Run" }).click();
  await expect(dialog.getByRole("status", { name: "Result" })).toHaveText("50");
  await dialog.getByRole("textbox", { name: "Expression" }).fill("c * 2 +");
  await dialog.getByRole("button", { name: "Run" }).click();
  await expect(dialog.getByRole("status", { name: "Result" })).toContainText("ends too early");
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("tab", { name: "Reprocess" }).click();
  await page.getByRole("button", { name: "Reprocess", exact: true }).click();
  await expect(page.getByText("It is done")).toBeVisible();
  await expect(page.getByRole("row", { name: "Stored results 1" })).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

test("an argument is a value of another entity, of the owner, or of the tenant; zones are found by relations", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Indoors" });
  const outdoor = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Outdoors" });
  const { tenantId } = await program.call<{ tenantId: { id: string } }>("TENANT_ADMIN", "/api/auth/user");
  const field = await program.call<Made>("TENANT_ADMIN", "/api/calculatedField", {
    name: "Difference", type: "SCRIPT", entityId: device.id,
    configuration: { type: "SCRIPT", arguments: { t: { refEntityKey: { key: "t", type: "TS_LATEST" } } }, expression: "return { d: t };", output: { type: "TIME_SERIES" } },
  });
  const stored = async (): Promise<unknown> =>
    (await program.call<{ configuration: { arguments: { t: unknown } } }>("TENANT_ADMIN", `/api/calculatedField/${field.id.id}`)).configuration.arguments.t;
  await logIn(page, program, "TENANT_ADMIN", `/calculatedFields/${field.id.id}`);
  const choose = async (field: string, option: string): Promise<void> => {
    await page.getByRole("combobox", { name: field, exact: true }).click();
    await page.getByRole("option", { name: option, exact: true }).click();
  };
  const save = async (): Promise<void> => {
    const answer = page.waitForResponse((one) => one.url().endsWith("/api/calculatedField") && one.request().method() === "POST");
    await page.getByRole("button", { name: "Save" }).click();
    expect((await answer).status()).toBe(200);
  };
  await choose("Whose value", "A device");
  await choose("Device", "Outdoors");
  await save();
  await expect.poll(stored).toMatchObject({ refEntityId: outdoor.id });
  await page.reload();
  await expect(page.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("Outdoors");
  await choose("Whose value", "The tenant");
  await choose("Kind of value", "Window of values");
  await page.getByRole("textbox", { name: "Window, ms" }).fill("60000");
  await save();
  await expect.poll(stored).toMatchObject({ refEntityId: { entityType: "TENANT", id: tenantId.id }, refEntityKey: { type: "TS_ROLLING" }, timeWindow: 60_000 });
  await page.reload();
  await choose("Whose value", "Its owner");
  await save();
  await expect.poll(stored).toMatchObject({ refDynamicSourceConfiguration: { type: "CURRENT_OWNER" } });
  expect(await stored()).not.toHaveProperty("refEntityId");
  // Zones of geofencing at the end of relations.
  const fence = await program.call<Made>("TENANT_ADMIN", "/api/calculatedField", {
    name: "Fence", type: "GEOFENCING", entityId: device.id,
    configuration: {
      type: "GEOFENCING", entityCoordinates: { latitudeKeyName: "latitude", longitudeKeyName: "longitude" }, output: { type: "TIME_SERIES" },
      zoneGroups: { allowed: { refDynamicSourceConfiguration: { type: "CURRENT_OWNER" }, perimeterKeyName: "zone", reportStrategy: "REPORT_PRESENCE_STATUS_ONLY", createRelationsWithMatchedZones: false } },
    },
  });
  await page.goto(`${program.url}/calculatedFields/${fence.id.id}`);
  await expect(page.getByRole("combobox", { name: "Zone", exact: true })).toHaveValue("Its owner");
  await choose("Zone", "Entities at the end of relations");
  await page.getByRole("textbox", { name: "Relation type" }).first().fill("AllowedZone");
  await save();
  const saved = await program.call<{ configuration: unknown }>("TENANT_ADMIN", `/api/calculatedField/${fence.id.id}`);
  expect(saved.configuration).toMatchObject({ zoneGroups: { allowed: { refDynamicSourceConfiguration: { type: "RELATION_PATH_QUERY", levels: [{ direction: "FROM", relationType: "AllowedZone" }] } } } });
  expect(await findings(page)).toEqual([]);
});

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
  await theirs.getByLabel("New password", { exact: true }).fill("fresh-secret-1");
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

test("a widget type is written beside its preview, saved by the keyboard, and put into a bundle", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/resources/widgets-library/widget-types");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Big number");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  const preview = page.frameLocator("[data-preview] iframe");
  await expect(preview.locator(".value")).toHaveText(/^\d+\.?\d*$/);
  await page.getByRole("tab", { name: "HTML" }).click();
  await page.getByRole("textbox", { name: "HTML" }).fill('<p class="name"></p><em class="value"></em><script>top.hit = 1</script>');
  await page.keyboard.press("Control+s");
  await expect(page.getByText("Saved")).toBeVisible();
  await expect(preview.locator("em.value")).toHaveText(/^\d+\.?\d*$/);
  await page.goto(`${program.url}/resources/widgets-library/widgets-bundles`);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Title").fill("Our bundle");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("combobox", { name: "Add a widget" }).click();
  await page.getByRole("option", { name: "Big number" }).click();
  await expect(page.getByRole("link", { name: "Big number" })).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

test("an image is uploaded, made public, and deleted after who uses it was told", async ({ page, program }) => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" onload="top.hit = 1"><rect width="40" height="20" fill="teal"/><script>top.hit = 1</script></svg>';
  await logIn(page, program, "TENANT_ADMIN", "/resources/images");
  await page.locator('input[type="file"][accept="image/*"]').setInputFiles({ name: "teal.svg", mimeType: "image/svg+xml", buffer: Buffer.from(svg) });
  const drawer = page.getByRole("dialog", { name: "teal" });
  await expect(drawer.getByRole("img", { name: "teal" })).toBeVisible();
  await expect(drawer.getByText("Public link")).toBeVisible();
  const link = (await drawer.getByText(/^http.*\/api\/images\/public\//).first().textContent()) ?? "";
  expect((await fetch(link)).status).toBe(200);
  await drawer.getByRole("switch", { name: "Anybody with the link can see it" }).press("Space");
  await expect.poll(async () => (await fetch(link)).status).toBe(404);
  expect(await findings(page)).toEqual([]);
  await program.call("TENANT_ADMIN", "/api/dashboard", { title: "Uses teal", image: "tb-image;/api/images/tenant/teal.svg" });
  await drawer.getByRole("button", { name: "Delete" }).click();
  const asked = page.getByRole("dialog", { name: "Delete teal for good?" });
  await asked.getByRole("button", { name: "Delete" }).click();
  await expect(asked.getByRole("link", { name: "Uses teal" })).toBeVisible();
  await asked.getByRole("button", { name: "Delete it all the same" }).click();
  await expect(page.getByRole("row", { name: /teal/ })).toHaveCount(0);
  expect(await page.evaluate(() => (window as unknown as { hit?: number }).hit)).toBeUndefined();
});

test("a script is added to the library and changed in place", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/resources/javascript-library");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.locator('input[type="file"]').setInputFiles({ name: "tools.js", mimeType: "text/javascript", buffer: Buffer.from("export const one = 1;") });
  const drawer = page.getByRole("dialog", { name: "tools.js" });
  await expect(drawer.getByRole("textbox", { name: "Script" })).toContainText("one = 1");
  await drawer.getByRole("textbox", { name: "Script" }).fill("export const two = 2;");
  await drawer.getByRole("button", { name: "Save the script" }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  await page.reload();
  await page.getByRole("row", { name: /tools\.js/ }).first().click();
  await expect(page.getByRole("textbox", { name: "Script" })).toContainText("two = 2");
});

test("who sends too often is told to the operator, with what to do", async ({ page, program }) => {
  const limit = async (rate: string): Promise<void> => {
    const { data } = await program.call<{ data: { profileData: { configuration: Record<string, unknown> } }[] }>("SYS_ADMIN", "/api/tenantProfiles?pageSize=1&page=0");
    const [profile] = data;
    await program.call("SYS_ADMIN", "/api/tenantProfile", {
      ...profile, profileData: { ...profile?.profileData, configuration: { ...profile?.profileData.configuration, transportDeviceTelemetryMsgRateLimit: rate } },
    });
  };
  await limit("2:600");
  for (let n = 0; n < 8; n++) {
    await fetch(`${program.url}/api/v1/A1_TEST_TOKEN/telemetry`, { method: "POST", body: '{"a":1}' });
  }
  await logIn(page, program, "SYS_ADMIN", "/overload");
  const entry = page.locator('[data-overload="RATE_LIMIT"]');
  await expect(entry).toContainText("limit: 2 in 600 s");
  await expect(entry).toContainText("raise the rate limit in its tenant profile");
  expect(await findings(page)).toEqual([]);
  // Other files use the same program.
  await limit("");
});

const COMPARED = { condition: { type: "SIMPLE", expression: { type: "SIMPLE", operation: "AND", filters: [{ argument: "t", valueType: "NUMERIC", operation: "AND", predicates: [{ type: "NUMERIC", operation: "GREATER", value: { staticValue: 50 } }] }] } } };

test("the list of alarm rules tells for whom they are and how bad; a new one is for whom one chooses", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Ruled" });
  await program.call("TENANT_ADMIN", "/api/asset", { name: "Ruled hall" });
  const rule = await program.call<Made>("TENANT_ADMIN", "/api/alarm/rule", {
    name: "Ruled is hot", entityId: device.id,
    configuration: { type: "ALARM", arguments: { t: { refEntityKey: { key: "t", type: "TS_LATEST" } } }, createRules: { MINOR: COMPARED, CRITICAL: COMPARED }, clearRule: null },
  });
  await logIn(page, program, "TENANT_ADMIN", "/alarms/alarm-rules?search=Ruled");
  const row = page.getByRole("row", { name: /Ruled is hot/ });
  await expect(row.getByRole("link", { name: "Ruled", exact: true })).toHaveAttribute("href", `/entities/devices/${device.id.id}`);
  await expect(row).toContainText("Device");
  await expect(row.locator("[data-severity]")).toHaveText(["CRITICAL", "MINOR"]);
  await page.getByRole("combobox", { name: "Kind of target" }).click();
  await page.getByRole("option", { name: "Asset", exact: true }).click();
  await expect(row).toHaveCount(0);
  await page.goto(`${program.url}/alarms/alarm-rules/${rule.id.id}`);
  await expect(page.getByRole("link", { name: "Ruled", exact: true })).toBeVisible();
  await expect(page.locator("[data-severity]").first()).toHaveText("CRITICAL");
  expect(await findings(page)).toEqual([]);
  // The tab of the device doesn't tell whose rules they are: they are all its own.
  await page.goto(`${program.url}/entities/devices/${device.id.id}?tab=alarmRules`);
  await expect(page.getByRole("row", { name: /Ruled is hot/ }).locator("[data-severity]")).toHaveCount(2);
  await expect(page.getByRole("columnheader", { name: /Target/ })).toHaveCount(0);
  await page.goto(`${program.url}/calculatedFields?add=true`);
  const form = page.getByRole("dialog", { name: "Add: Calculated field" });
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("Ruled by choice");
  await form.getByRole("combobox", { name: "Kind of target" }).click();
  await page.getByRole("option", { name: "Device", exact: true }).click();
  await form.getByRole("combobox", { name: "Device", exact: true }).click();
  await page.getByRole("option", { name: "Ruled", exact: true }).click();
  // Another kind leaves nothing of what was chosen before.
  await form.getByRole("combobox", { name: "Kind of target" }).click();
  await page.getByRole("option", { name: "Asset", exact: true }).click();
  await expect(form.getByRole("combobox", { name: "Asset", exact: true })).toHaveValue("");
  await form.getByRole("combobox", { name: "Asset", exact: true }).click();
  await page.getByRole("option", { name: "Ruled hall", exact: true }).click();
  await form.getByRole("button", { name: "Add to: Arguments" }).click();
  await form.getByRole("textbox", { name: "Argument name" }).fill("t");
  await form.getByRole("combobox", { name: "Key", exact: true }).fill("t");
  await form.getByRole("textbox", { name: "Expression", exact: true }).fill("t * 2");
  await form.getByRole("textbox", { name: "Key", exact: true }).last().fill("twice");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Ruled by choice" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Ruled hall", exact: true })).toBeVisible();
});

test("a calculated field of another installation is brought in for an entity of this one, with others in the place of what it names", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Taking in" });
  const other = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Stand-in" });
  const here = await program.call<Made>("TENANT_ADMIN", "/api/asset", { name: "Known hall" });
  const foreign = (entityType: string, n: number): object => ({ entityType, id: `7e9f5d50-0000-11f0-8000-00000000000${n}` });
  const key = { key: "t", type: "TS_LATEST" };
  const file = {
    name: "Brought in", type: "SIMPLE", tenantId: foreign("TENANT", 1), entityId: foreign("DEVICE", 2),
    configuration: { type: "SIMPLE", arguments: { own: { refEntityKey: key }, far: { refEntityKey: key, refEntityId: foreign("DEVICE", 3) }, hall: { refEntityKey: key, refEntityId: here.id }, all: { refEntityKey: key, refEntityId: foreign("TENANT", 1) } }, expression: "own - far", output: { type: "TIME_SERIES", name: "difference" } },
  };
  const choose = async (path: string, content: object): Promise<void> => {
    await page.goto(`${program.url}${path}`);
    const choosing = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await (await choosing).setFiles({ name: "field.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(content)) });
  };
  await logIn(page, program, "TENANT_ADMIN", "/home");
  await choose("/alarms/alarm-rules", file);
  await expect(page.getByText("This file holds a calculated field: import it among the calculated fields.")).toBeVisible();
  await choose("/calculatedFields", file);
  const dialog = page.getByRole("dialog", { name: "Import: Calculated field" });
  await expect(dialog.getByRole("alert")).toContainText("1 entity of this file isn't here");
  await expect(dialog.getByRole("alert")).toContainText("Device for far");
  await expect(dialog).toContainText("Found here: Asset Known hall");
  await expect(dialog.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("");
  expect(await findings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).click();
  // From the page of an entity it is for that one.
  await choose(`/entities/devices/${device.id.id}?tab=calculatedFields`, file);
  await expect(dialog.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("Taking in");
  await dialog.getByRole("combobox", { name: "Device for far" }).click();
  await page.getByRole("option", { name: "Stand-in", exact: true }).click();
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Brought in" })).toBeVisible();
  const { tenantId } = await program.call<{ tenantId: object }>("TENANT_ADMIN", "/api/auth/user");
  const saved = await program.call<object>("TENANT_ADMIN", `/api/calculatedField/${page.url().split("/").at(-1) ?? ""}`);
  expect(saved).toMatchObject({ entityId: device.id, configuration: { arguments: { own: {}, far: { refEntityId: other.id }, hall: { refEntityId: here.id }, all: { refEntityId: tenantId } } } });
});

test("a bundle with its widgets is saved as a file and brought in again", async ({ page, program }) => {
  const type = await program.call<Made>("TENANT_ADMIN", "/api/widgetType", { name: "Packed", descriptor: { type: "latest", sizeX: 4, sizeY: 3, templateHtml: "<b>1</b>", templateCss: "", controllerScript: "", defaultConfig: "{}" } });
  const bundle = await program.call<Made>("TENANT_ADMIN", "/api/widgetsBundle", { title: "Packed bundle" });
  await fetch(`${program.url}/api/widgetsBundle/${bundle.id.id}/widgetTypes`, {
    method: "POST", body: JSON.stringify([type.id.id]), headers: { "Content-Type": "application/json", "X-Authorization": `Bearer ${await program.token("TENANT_ADMIN")}` },
  });
  await logIn(page, program, "TENANT_ADMIN", `/resources/widgets-library/widgets-bundles/${bundle.id.id}`);
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export with its widgets" }).click();
  const file = await (await saving).path();
  await page.goto(`${program.url}/resources/widgets-library/widgets-bundles`);
  await page.locator('input[type="file"]').first().setInputFiles(file);
  await expect(page).toHaveURL(/widgets-bundles\/[0-9a-f-]{36}/);
  expect(page.url()).not.toContain(bundle.id.id);
  await expect(page.getByRole("heading", { level: 1, name: "Packed bundle" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Packed" })).toBeVisible();
});
