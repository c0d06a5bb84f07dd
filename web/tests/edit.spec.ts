// A newcomer builds a dashboard with a chart and alarms; two people edit it at once; what was not saved comes back.

import { readFileSync } from "node:fs";
import { expect, logIn, test, type Program, USERS } from "./program";

const AXE = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
const TOKEN = "A1_TEST_TOKEN";
const DEVICE = "Test Device A1";

async function call<T>(program: Program, method: string, path: string, body?: unknown): Promise<T> {
  const { email, password } = USERS.TENANT_ADMIN;
  const json = { "Content-Type": "application/json" };
  const login = await fetch(`${program.url}/api/auth/login`, { method: "POST", headers: json, body: JSON.stringify({ username: email, password }) });
  const { token } = (await login.json()) as { token: string };
  const answer = await fetch(`${program.url}${path}`, { method, headers: { ...json, "X-Authorization": `Bearer ${token}` }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return (await answer.json()) as T;
}

interface Stored {
  id: { id: string };
  configuration: { widgets: Record<string, { config: { title: string } }>; [field: string]: unknown };
}

const create = (program: Program, configuration: object): Promise<Stored> => call(program, "POST", "/api/dashboard", { title: "Edited", configuration });
const text = (title: string): object => ({ typeFullFqn: "system.cards.markdown_card", type: "static", sizeX: 4, sizeY: 3, config: { title, settings: { markdownTextPattern: title } }, strange: { kept: true } });
const TWO = {
  unknown: { kept: true },
  widgets: { a: text("A"), b: text("B") },
  states: { default: { name: "Default", root: true, layouts: { main: { widgets: { a: { col: 0, row: 0, sizeX: 4, sizeY: 3 }, b: { col: 4, row: 0, sizeX: 4, sizeY: 3 } }, gridSettings: { columns: 24 } } } } },
};

test("a dashboard with a chart and alarms is built from nothing, and lives", async ({ page, program }) => {
  await program.send(TOKEN, { temperature: 20.5 });
  await logIn(page, program, "TENANT_ADMIN", "/dashboards");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByLabel("Title").fill("Plant");
  await drawer.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("button", { name: "Add a widget" }).click();
  await page.getByRole("menuitem", { name: "Value", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "The chosen widget" });
  await panel.getByLabel("Title", { exact: true }).fill("Boiler");
  await panel.getByRole("combobox", { name: "Choose an entity" }).fill(DEVICE);
  await page.getByRole("option", { name: DEVICE }).click();
  await expect(panel.getByRole("combobox", { name: "Data of" })).toHaveValue(DEVICE);
  await panel.getByRole("button", { name: "Add a key" }).click();
  await panel.getByLabel("Key", { exact: true }).fill("temperature");
  await expect(page.getByRole("region", { name: "Boiler" })).toContainText("20.5");
  await page.getByRole("button", { name: "Duplicate" }).click();
  await panel.getByLabel("Title", { exact: true }).fill("Course");
  await panel.getByRole("combobox", { name: "Drawn as" }).click();
  await page.getByRole("option", { name: "Chart over time" }).click();
  const course = page.getByRole("region", { name: "Course" });
  await expect(course.locator("button[aria-pressed]", { hasText: "temperature" })).toBeVisible();
  await panel.getByRole("checkbox", { name: "Show the legend" }).uncheck();
  await expect(course.locator("button[aria-pressed]", { hasText: "temperature" }), "a setting changes the chart at once").toHaveCount(0);
  await page.getByRole("button", { name: "Add a widget" }).click();
  await page.getByRole("menuitem", { name: "Alarms", exact: true }).click();
  await page.evaluate(AXE);
  const findings = await page.evaluate(() => (window as unknown as { axe: { run: () => Promise<{ violations: { id: string; nodes: unknown[] }[] }> } }).axe.run());
  expect(findings.violations.map(({ id, nodes }) => `${id}: ${JSON.stringify(nodes).slice(0, 400)}`)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/dashboard_edit.png" });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Nothing to save")).toBeVisible();
  await page.getByRole("button", { name: "Done" }).click();
  await program.send(TOKEN, { temperature: 33.25 });
  await expect(page.getByRole("region", { name: "Boiler" })).toContainText("33.25");
  await expect(page.getByRole("region", { name: "Course" }).locator("canvas")).toBeVisible();
  await expect(page.getByRole("region", { name: "Alarms" })).toBeVisible();
});

test("widgets are moved by pointer and keys, never onto another, and undone", async ({ page, program }) => {
  const { id } = await create(program, TWO);
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  const a = page.getByRole("button", { name: /^A: / });
  await expect(a).toHaveAccessibleName("A: column 0, row 0, 4 × 3");
  await a.press("ArrowRight");
  await expect(a, "B is there").toHaveAccessibleName("A: column 0, row 0, 4 × 3");
  await a.press("ArrowDown");
  await a.press("Shift+ArrowDown");
  await expect(a).toHaveAccessibleName("A: column 0, row 1, 4 × 4");
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  await expect(a).toHaveAccessibleName("A: column 0, row 0, 4 × 3");
  await page.keyboard.press("Control+y");
  await expect(a).toHaveAccessibleName("A: column 0, row 1, 4 × 3");
  const box = await page.getByRole("button", { name: /^B: / }).boundingBox();
  if (box === null) {
    throw new Error("B is not shown");
  }
  const cell = box.width / 4;
  await page.mouse.move(box.x + 20, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 20 + 5 * cell, box.y + 20 + 2 * cell, { steps: 5 });
  await page.mouse.up();
  await expect(page.getByRole("button", { name: /^B: / })).toHaveAccessibleName("B: column 9, row 2, 4 × 3");
  await page.keyboard.press("Control+s");
  await expect(page.getByText("Nothing to save")).toBeVisible();
  const saved = await call<Stored>(program, "GET", `/api/dashboard/${id.id}`);
  expect(saved.configuration["unknown"]).toEqual({ kept: true });
  expect(JSON.stringify(saved.configuration.widgets)).toContain('"strange":{"kept":true}');
});

test("two people change different widgets, and both changes are kept", async ({ browser, program }) => {
  const { id } = await create(program, TWO);
  const open = async (): Promise<import("@playwright/test").Page> => {
    const page = await (await browser.newContext()).newPage();
    await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
    return page;
  };
  const rename = async (page: import("@playwright/test").Page, from: string, to: string): Promise<void> => {
    await page.getByRole("button", { name: new RegExp(`^${from}: `) }).click();
    await page.getByRole("complementary", { name: "The chosen widget" }).getByLabel("Title", { exact: true }).fill(to);
    await page.getByRole("button", { name: "Save", exact: true }).click();
  };
  const [first, second] = [await open(), await open()];
  await rename(first, "A", "From the first");
  await expect(first.getByText("Nothing to save")).toBeVisible();
  // The second one is told before saving, and again by the save.
  await second.evaluate(() => window.dispatchEvent(new Event("visibilitychange")));
  await second.getByRole("status").filter({ hasText: /You have saved version \d+ elsewhere/ }).getByRole("button", { name: "See what has changed" }).click();
  const dialog = second.getByRole("dialog", { name: "Somebody else has changed this meanwhile" });
  await expect(dialog.getByRole("region", { name: "What they have changed" })).toContainText("From the first");
  await expect(dialog.getByRole("button", { name: "Keep both" })).toHaveCount(0);
  await dialog.getByRole("button", { name: "Close" }).click();
  await rename(second, "B", "From the second");
  await expect(second.getByText("both can be kept")).toBeVisible();
  // What is changed while both are saved stays a change, beside what the other has changed.
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await second.route("**/api/dashboard", async (route) => {
    await held;
    await route.continue();
  });
  await second.getByRole("button", { name: "Keep both" }).click();
  await expect(second.getByRole("button", { name: "Keep mine alone" })).toBeDisabled();
  await dialog.getByRole("button", { name: "Close" }).click();
  await second.getByRole("button", { name: /^From the second: / }).press("ArrowDown");
  release();
  await expect(second.getByText("Saved", { exact: true })).toBeVisible();
  await expect(second.getByText("Not saved")).toBeVisible();
  await expect(second.getByRole("button", { name: /^From the first: / })).toHaveAccessibleName("From the first: column 0, row 0, 4 × 3");
  await expect(second.getByRole("button", { name: /^From the second: / })).toHaveAccessibleName("From the second: column 4, row 1, 4 × 3");
  await second.unroute("**/api/dashboard");
  await second.getByRole("button", { name: "Save", exact: true }).click();
  await expect(second.getByText("Nothing to save")).toBeVisible();
  const saved = await call<Stored>(program, "GET", `/api/dashboard/${id.id}`);
  expect(Object.values(saved.configuration.widgets).map((widget) => widget.config.title).sort()).toEqual(["From the first", "From the second"]);
});

test("what was not saved is back after the session has ended in mid-edit", async ({ page, program }) => {
  const { id } = await create(program, TWO);
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: /^A: / }).press("ArrowDown");
  await expect(page.getByText("Not saved")).toBeVisible();
  await page.waitForFunction(() => Object.keys(localStorage).some((key) => key.startsWith("fieldline_dashboard_draft")));
  await page.evaluate(() => ["jwt_token", "refresh_token"].forEach((key) => localStorage.removeItem(key)));
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}`);
  await page.getByRole("button", { name: "Go on editing" }).click();
  await expect(page.getByText("Your changes that were not saved are back.")).toBeVisible();
  await expect(page.getByRole("button", { name: /^A: / })).toHaveAccessibleName("A: column 0, row 1, 4 × 3");
  await page.getByRole("button", { name: "Discard them" }).click();
  await expect(page.getByRole("button", { name: /^A: / })).toHaveAccessibleName("A: column 0, row 0, 4 × 3");
});

test("a customer user is offered no editing", async ({ page, program }) => {
  await logIn(page, program, "CUSTOMER_USER", "/dashboards");
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByRole("button", { name: "Edit", exact: true })).toHaveCount(0);
});

test("a public link shows the dashboard without account and menu, until it is withdrawn", async ({ browser, page, program }) => {
  const { id } = await create(program, TWO);
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}`);
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByRole("button", { name: "Make it public" }).click();
  const link = await page.getByRole("textbox", { name: "Link" }).inputValue();
  const visitor = await (await browser.newContext()).newPage();
  await visitor.goto(link);
  await expect(visitor.getByRole("region", { name: "A", exact: true })).toBeVisible();
  await expect(visitor.getByRole("button", { name: "Edit", exact: true })).toHaveCount(0);
  await expect(visitor.getByRole("navigation")).toHaveCount(0);
  expect(await visitor.evaluate(() => localStorage.getItem("jwt_token")), "a visitor's tokens stay in the page").toBeNull();
  await visitor.goto(`${link}&embedded=true`);
  await expect(visitor.getByRole("region", { name: "A", exact: true })).toBeVisible();
  await expect(visitor.getByRole("button", { name: "Full screen" })).toHaveCount(0);
  await page.goto(link);
  await expect(page.getByRole("region", { name: "A", exact: true })).toBeVisible();
  await page.goto(`${program.url}/dashboards/${id.id}`);
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByRole("button", { name: "Make it private" }).click();
  await expect(page.getByRole("button", { name: "Make it public" })).toBeVisible();
  await visitor.goto(link);
  await expect(visitor.getByRole("alert")).toBeVisible();
});
