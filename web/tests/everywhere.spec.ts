// The same pages on a phone and on a very large screen, in a language with long words, read from the right, in high contrast; and what
// they say when something fails.

import type { Page } from "@playwright/test";
import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 800 };
const WALL = { width: 3840, height: 2160 };

const TENANT = ["/home", "/entities/devices", "/alarms/alarms", "/dashboards", "/profiles/deviceProfiles", "/ruleChains", "/features/otaUpdates", "/usage", "/account/profile", "/account/security", "/security-settings/auditLogs", "/resources/images"];
const HALL = "The hall with a name that needs more than one line";
const SYSTEM = ["/home", "/tenants", "/tenantProfiles", "/settings/general", "/settings/outgoing-mail", "/overload"];

/** What reaches beyond the edges: the page, tables that need moving sideways, and controls that are not wholly in view. Rows of tabs and of a dashboard's tools, drawings, and at a desk tables of many columns may be moved. */
async function beyond(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const name = (element: Element): string => `${element.tagName} ${element.getAttribute("aria-label") ?? ""} ${(element.textContent ?? "").slice(0, 40)}`.trim();
    const { clientWidth, scrollWidth } = document.documentElement;
    const found = scrollWidth > clientWidth ? [`page: ${scrollWidth - clientWidth}`] : [];
    for (const table of document.querySelectorAll("main table")) {
      const pane = table.parentElement;
      if (innerWidth < 500 && pane !== null && pane.scrollWidth > pane.clientWidth + 1) {
        found.push(`moved sideways: ${name(table)}`);
      }
    }
    for (const control of document.querySelectorAll("header :is(button, a), main :is(button, a, input, select, textarea)")) {
      const { left, right, width } = control.getBoundingClientRect();
      const isMovable = control.closest("[role=tablist], [class*='_tools_'], .react-flow, [style*='overflow']") !== null || (innerWidth >= 500 && control.closest("table") !== null);
      if (width > 0 && !isMovable && getComputedStyle(control).clipPath === "none" && (left < -1 || right > clientWidth + 1)) {
        found.push(`out of view: ${name(control)}`);
      }
    }
    return found;
  });
}

/** Pages that are one list, which is there once it has rows, or tells that there are none. */
const LISTS = /\/(devices|alarms|dashboards|deviceProfiles|ruleChains|otaUpdates|auditLogs|images|tenants|tenantProfiles)$/;

async function settle(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.locator('[role="status"]:is([aria-label="Loading"], [aria-label="Wird geladen"])')).toHaveCount(0);
  if (LISTS.test(address)) {
    await expect(page.locator("main :is(tr[data-row], table + p)").first()).toBeVisible();
  }
}

/** Looks at a page on the phone, from the right as well, at a desk, and on the wall. */
async function look(page: Page, path: string): Promise<void> {
  for (const [size, dir] of [[PHONE, "ltr"], [PHONE, "rtl"], [DESK, "ltr"], [WALL, "ltr"]] as const) {
    await page.setViewportSize(size);
    await page.evaluate((wanted) => {
      document.documentElement.dir = wanted;
    }, dir);
    // Soft, so that one run tells all that is wrong.
    await expect.configure({ soft: true }).poll(() => beyond(page), { message: `${path} ${size.width} ${dir}`, timeout: 15_000 }).toEqual([]);
    if (size === PHONE || /home|devices$|telemetry/.test(path)) {
      await page.screenshot({ path: `test-results/screens/everywhere${path.replaceAll(/[/?=]/g, "_")}_${size.width}_${dir}.png` });
    }
  }
  await page.evaluate(() => {
    document.documentElement.dir = "ltr";
  });
}

async function furnish(program: Program): Promise<string> {
  const { id } = await program.call<{ id: { id: string; entityType: string } }>("TENANT_ADMIN", "/api/tenant/devices?deviceName=Test%20Device%20A1");
  await program.send("A1_TEST_TOKEN", { temperature: 21, theKeyWithTheLongestNameOfAllTheKeysThatThereAre: "a text that is longer than a phone is wide, by far" });
  await program.call("TENANT_ADMIN", "/api/alarm", { type: "Overheated", originator: id, severity: "CRITICAL" });
  const hall = await program.call<{ id: object }>("TENANT_ADMIN", "/api/asset", { name: HALL });
  await program.save("/api/relation", { from: id, to: hall.id, type: "Contains", typeGroup: "COMMON" });
  return id.id;
}

let furnished: Promise<string> | undefined;

/** A device with values, an alarm and a relation; made once for all tests of this file. */
const device = (program: Program): Promise<string> => (furnished ??= furnish(program));

test("pages fit the phone, the desk and the wall, in German, from the left and from the right", async ({ page, program }) => {
  test.setTimeout(300_000);
  const id = await device(program);
  await page.emulateMedia({ reducedMotion: "reduce" });
  await logIn(page, program, "TENANT_ADMIN", "/home");
  await page.evaluate(() => localStorage.setItem("fieldline_language", "de"));
  for (const path of [...TENANT, ...["details", "telemetry", "attributes", "relations", "connect"].map((tab) => `/entities/devices/${id}?tab=${tab}`)]) {
    await page.setViewportSize(PHONE);
    await settle(page, program.url + path);
    await look(page, path.replace(id, "id"));
  }
});

test("pages of the installation fit as well, in English", async ({ page, program }) => {
  test.setTimeout(300_000);
  await page.emulateMedia({ reducedMotion: "reduce" });
  await logIn(page, program, "SYS_ADMIN", "/home");
  for (const path of SYSTEM) {
    await page.setViewportSize(PHONE);
    await settle(page, program.url + path);
    await look(page, `/system${path}`);
  }
});

test("on a phone rows are cards that are sorted, chosen and acted on; on the wall letters are larger", async ({ page, program }) => {
  test.setTimeout(120_000);
  const id = await device(program);
  await page.setViewportSize(PHONE);
  await logIn(page, program, "TENANT_ADMIN", "/entities/devices");
  const devices = page.getByRole("table", { name: "Devices" });
  const first = devices.locator("tr[data-row]").first();
  await expect(first.getByText("Profile", { exact: true })).toBeVisible();
  await expect(devices.getByRole("columnheader", { name: /^Profile/ })).toHaveCount(0);
  await devices.getByRole("combobox", { name: "Sort by" }).selectOption({ label: "Name ▼" });
  await expect(page).toHaveURL(/sort=name(:|%3A)desc/);
  const names = devices.locator('tr[data-row] [data-column="name"]');
  await expect.poll(async () => {
    const shown = (await names.allTextContents()).slice(0, 3);
    return { areThere: shown.length > 2, areInOrder: shown.slice(1).every((name, n) => name <= (shown[n] ?? "")) };
  }).toEqual({ areThere: true, areInOrder: true });
  const check = first.getByRole("checkbox");
  expect(Math.min(...Object.values((await check.boundingBox()) ?? {}).slice(2))).toBeGreaterThanOrEqual(24);
  await check.check();
  await expect(page.getByRole("button", { name: /^Delete/ })).toBeInViewport();
  await first.focus();
  await page.keyboard.press("j");
  await expect(devices.locator("tr[data-row]").nth(1)).toBeFocused();

  await page.goto(`${program.url}/alarms/alarms`);
  const alarm = page.getByRole("table", { name: "Alarms" }).locator("tr[data-row]").first();
  for (const name of ["Acknowledge", "Clear", "Details"]) {
    const button = alarm.getByRole("button", { name });
    await expect(button).toBeInViewport({ ratio: 1 });
    const box = await button.boundingBox();
    expect(Math.min(box?.width ?? 0, box?.height ?? 0)).toBeGreaterThanOrEqual(24);
  }
  await alarm.getByRole("button", { name: "Details" }).click();
  const drawer = page.getByRole("dialog");
  await expect(drawer.getByText("Overheated").first()).toBeVisible();
  expect((await drawer.boundingBox())?.width).toBeLessThanOrEqual(PHONE.width);
  await page.screenshot({ path: "test-results/screens/everywhere_alarm_390.png" });

  await page.goto(`${program.url}/entities/devices/${id}?tab=relations`);
  await expect(page.getByRole("tab", { name: "Relations" })).toBeInViewport({ ratio: 1 });
  await expect(page.getByRole("button", { name: /^Delete the relation to The hall/ }).first()).toBeInViewport({ ratio: 1 });

  await page.setViewportSize(WALL);
  await settle(page, `${program.url}/entities/devices`);
  await expect(devices.getByRole("columnheader", { name: /^Name/ })).toBeVisible();
  const row = await devices.locator("tr[data-row]").first().boundingBox();
  expect(row?.height).toBeGreaterThan(55);
  expect(await devices.evaluate((table) => Number.parseFloat(getComputedStyle(table).fontSize))).toBeGreaterThanOrEqual(20);
  await settle(page, `${program.url}/entities/devices/${id}?tab=details`);
  for (const field of await page.locator("main form input:visible").all()) {
    expect((await field.boundingBox())?.width).toBeLessThan(1_700);
  }
});

test("high contrast has no findings, light and dark, and the system's own colours tell what is chosen", async ({ page, program }) => {
  test.setTimeout(180_000);
  const id = await device(program);
  await logIn(page, program, "TENANT_ADMIN", "/home");
  await page.evaluate(() => localStorage.setItem("fieldline_contrast", "high"));
  for (const path of ["/home", "/entities/devices", "/alarms/alarms", "/usage", "/account/security", `/entities/devices/${id}?tab=telemetry`]) {
    await settle(page, program.url + path);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await expect.configure({ soft: true }).poll(() => findings(page), { message: `${path} ${colorScheme}`, timeout: 20_000 }).toEqual([]);
      await page.screenshot({ path: `test-results/screens/everywhere_contrast${path.replace(id, "id").replaceAll(/[/?=]/g, "_")}_${colorScheme}.png` });
    }
  }
  await page.emulateMedia({ forcedColors: "active", colorScheme: "dark", reducedMotion: "reduce" });
  const ground = (selector: string): Promise<string> => page.locator(selector).first().evaluate((element) => getComputedStyle(element).backgroundColor);
  expect(await ground('[role="tab"][aria-selected="true"]')).not.toBe(await ground('[role="tab"][aria-selected="false"]'));
  expect(await ground('nav [aria-current="page"]')).not.toBe(await ground("nav a:not([aria-current])"));
  await page.screenshot({ path: "test-results/screens/everywhere_forced.png" });
});

test("what fails says what happened and what to do, in the language of the person", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/home");
  const answer = (status: number, body: string): Promise<unknown> => page.route("**/api/tenant/deviceInfos**", (route) => route.fulfill({ status, body, contentType: body.startsWith("{") ? "application/json" : "text/html" }));
  const problem = page.getByRole("main").getByRole("alert");
  await answer(403, JSON.stringify({ status: 403, message: "You don't have permission to perform this operation!", errorCode: 20 }));
  await page.goto(`${program.url}/entities/devices`);
  await expect(problem).toContainText("You don't have permission to perform this operation!");
  await expect(problem).toContainText("Ask your administrator");
  await expect(problem.getByRole("button", { name: "Try again" })).toHaveCount(0);
  await page.unrouteAll();
  await answer(429, JSON.stringify({ status: 429, message: "Too many requests for current tenant!", errorCode: 33 }));
  await page.reload();
  await expect(problem).toContainText("Wait a moment");
  await page.unrouteAll();
  await problem.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("link", { name: "Test Device A1" })).toBeVisible();

  // A proxy in between that answers with a page of its own.
  await device(program);
  await page.route("**/api/asset", (route) => route.fulfill({ status: 502, body: "<html><h1>Bad gateway</h1></html>", contentType: "text/html" }));
  await page.evaluate(() => localStorage.setItem("fieldline_language", "de"));
  await page.goto(`${program.url}/entities/assets?add=true`);
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: /^Name/ }).fill(HALL);
  await dialog.getByRole("button", { name: "Hinzufügen" }).click();
  await expect(dialog.getByRole("alert")).toContainText("Der Server antwortet im Augenblick nicht.");
  await expect(dialog.getByRole("alert")).toContainText("Versuchen Sie es gleich noch einmal.");
  await page.unrouteAll();
  await dialog.getByRole("button", { name: "Hinzufügen" }).click();
  await expect(dialog.getByRole("alert")).toHaveText("Anlage: diesen Wert von „Name“ gibt es schon.");
});

/** A dashboard with widgets that are wide, and a rule chain with a node that has a long form. */
async function edited(program: Program): Promise<{ board: string; chain: string }> {
  const key = { name: "temperature", label: "Temperature in the middle of the large hall", type: "timeseries", units: "°C", decimals: 1, settings: {} };
  const widget = (fqn: string, title: string, type: string): object => ({ typeFullFqn: `system.${fqn}`, type, sizeX: 12, sizeY: 6, config: { title, showTitle: true, settings: {}, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [key] }] } });
  const widgets = { one: widget("time_series_chart", "Course of a rather long name that hardly fits", "timeseries"), two: widget("cards.entities_table", "Table", "latest"), three: widget("cards.value_card", "Value", "latest") };
  const places = Object.fromEntries(Object.keys(widgets).map((name, n) => [name, { col: (n % 2) * 12, row: Math.floor(n / 2) * 6, sizeX: 12, sizeY: 6 }]));
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: HALL,
    configuration: {
      widgets,
      entityAliases: { a: { id: "a", alias: "Device", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A" } } },
      states: { default: { name: "One", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } },
    },
  });
  const chain = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/ruleChain", { name: "A rule chain with a name that is long" });
  const node = { type: "org.thingsboard.rule.engine.rest.TbRestApiCallNode", name: "Call", configuration: {}, additionalInfo: { layoutX: 100, layoutY: 150 } };
  await program.call("TENANT_ADMIN", "/api/ruleChain/metadata", { ruleChainId: { entityType: "RULE_CHAIN", id: chain.id.id }, firstNodeIndex: 0, nodes: [node], connections: [], ruleChainConnections: [] });
  return { board: id.id, chain: chain.id.id };
}

test("dashboards, their editor and the editor of rule chains fit the phone and the wall, and axe has no findings", async ({ page, program }) => {
  test.setTimeout(300_000);
  const { board, chain } = await edited(program);
  await page.emulateMedia({ reducedMotion: "reduce" });
  await logIn(page, program, "TENANT_ADMIN", "/home");
  const check = async (name: string): Promise<void> => {
    const { width } = page.viewportSize() ?? PHONE;
    const soft = expect.configure({ soft: true });
    await soft.poll(() => beyond(page), { message: `${name} ${width}`, timeout: 10_000 }).toEqual([]);
    await soft.poll(() => findings(page), { message: `${name} ${width} axe`, timeout: 20_000 }).toEqual([]);
    await page.screenshot({ path: `test-results/screens/everywhere_${name}_${width}.png` });
  };
  for (const size of [PHONE, WALL]) {
    await page.setViewportSize(size);
    await page.goto(`${program.url}/dashboards/${board}`);
    await expect(page.getByRole("region", { name: "Value" })).toBeVisible();
    await check("dashboard");
    await page.goto(`${program.url}/dashboards/${board}?edit=true`);
    await page.getByRole("button", { name: /^Value: / }).click();
    const panel = page.getByRole("complementary", { name: "The chosen widget" });
    await expect(panel.getByRole("heading", { name: "Settings" })).toBeVisible();
    for (const tab of ["Widget", "Actions", "Card", "Data", "JSON"]) {
      await panel.getByRole("tab", { name: tab, exact: true }).click();
      await expect(panel.getByRole("tabpanel", { name: tab, exact: true })).toBeVisible();
      await check(`editor_${tab.toLowerCase()}`);
    }
    await page.goto(`${program.url}/ruleChains/${chain}`);
    await page.locator('[data-node-name="Call"]').click();
    await expect(page.getByRole("radiogroup", { name: "How the configuration is shown" })).toBeVisible();
    await check("rulechain");
    // All of a form that is longer than the screen can be got at, and the tools above it as well.
    const side = page.getByRole("complementary", { name: "Details" });
    await side.getByRole("checkbox").last().click({ trial: true });
    await page.getByRole("button", { name: "Edit", exact: true }).click({ trial: true });
    expect(await page.evaluate(() => [...document.querySelectorAll("main div, main aside")].filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === "auto").map((one) => one.className))).toEqual([]);
  }
});

test("the usual columns of galleries and of the audit log fit a desk, and empty ones say what they are for", async ({ page, program }) => {
  await page.setViewportSize(DESK);
  await logIn(page, program, "TENANT_ADMIN", "/home");
  for (const path of ["/resources/images", "/resources/scada-symbols", "/security-settings/auditLogs"]) {
    await settle(page, program.url + path);
    await expect(page.getByRole("columnheader").last()).toBeVisible();
    expect(await page.locator("main table").evaluate((table) => (table.parentElement?.scrollWidth ?? 0) - (table.parentElement?.clientWidth ?? 0)), path).toBeLessThanOrEqual(0);
  }
  await page.goto(`${program.url}/resources/javascript-library`);
  await expect(page.getByText("No scripts yet.")).toBeVisible();
});

test("figures on a phone have the names of their columns, and a customer's user is told to do nothing that others do", async ({ page, program }) => {
  await page.setViewportSize(PHONE);
  await logIn(page, program, "TENANT_ADMIN", "/usage");
  const limit = page.getByRole("row", { name: /^Devices/ }).locator('td[data-label="Limit"]');
  await expect(limit).toBeVisible();
  expect(await limit.evaluate((cell) => getComputedStyle(cell, "::before").content)).toContain("Limit");
  await page.evaluate(() => localStorage.clear());
  await logIn(page, program, "CUSTOMER_USER", "/dashboards");
  await expect(page.getByText("A dashboard shows values and steers devices. Your administrator adds and assigns them.")).toBeVisible();
});
