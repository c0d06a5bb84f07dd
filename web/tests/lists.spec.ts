// Lists: what somebody sees of one is in the address, can be named, and is saved whole.

import { readFileSync } from "node:fs";
import { findings } from "./axe";
import { expect, logIn, test } from "./program";

test("search, order, columns and views of a list", async ({ page, program }) => {
  test.setTimeout(90_000);
  await page.setViewportSize({ width: 1300, height: 900 });
  const lines = Array.from({ length: 2_300 }, (_, n) => `Listed ${String(n).padStart(5, "0")},${n % 2 === 0 ? "even" : "odd"},L${9 - (n % 10)}`).join("\n");
  const columns = [{ type: "NAME" }, { type: "TYPE" }, { type: "LABEL" }];
  await program.call("TENANT_ADMIN", "/api/asset/bulk_import", { file: lines, mapping: { columns, delimiter: ",", update: true, header: false } });
  await logIn(page, program, "TENANT_ADMIN", "/entities/assets?search=Listed&sort=name:asc");
  const table = page.getByRole("table", { name: "Assets" });
  const rows = table.locator("tbody tr[data-row]");
  const menu = page.getByRole("button", { name: "Columns, filters, file" });
  await expect(rows.first()).toContainText("Listed 00000");
  await expect(page.getByText("2,300 in all")).toBeVisible();
  // A file has them all, though only a screen of them is loaded.
  const saving = page.waitForEvent("download");
  await menu.click();
  await page.getByRole("button", { name: "Save as CSV" }).click();
  const file = readFileSync(await (await saving).path(), "utf8").trimEnd().split("\r\n");
  expect(file).toHaveLength(2_301);
  expect(file[1]).toContain("Listed 00000");
  await page.keyboard.press("Escape");
  // Several orders, once the list is short enough.
  await page.getByRole("textbox", { name: "Search" }).fill("Listed 001");
  await expect(page.getByText("100 in all")).toBeVisible();
  await table.getByRole("button", { name: /^Label/ }).click();
  await table.getByRole("button", { name: /^Name/ }).click({ modifiers: ["Shift"] });
  await expect(page).toHaveURL(/search=Listed\+001&sort=label%3Aasc%2Cname%3Aasc/);
  await expect(rows.nth(0)).toContainText("Listed 00109");
  await expect(rows.nth(1)).toContainText("Listed 00119");
  await expect(rows.nth(10)).toContainText("Listed 00108");
  // The way back finds what was seen.
  await rows.nth(1).click();
  await expect(page.getByRole("heading", { name: "Listed 00119" })).toBeVisible();
  await page.goBack();
  await expect(rows.nth(1)).toContainText("Listed 00119");
  await expect(page.getByRole("textbox", { name: "Search" })).toHaveValue("Listed 001");
  // Columns: by drag, by button, in view while others scroll, out of view.
  const heads = table.locator("thead th");
  const names = async (): Promise<string[]> => (await heads.allTextContents()).map((text) => text.replace(/[▲▼\d\s]+$/u, "").trim());
  const before = await names();
  await heads.filter({ hasText: "Label" }).dragTo(heads.filter({ hasText: "Name" }));
  await expect.poll(names).toEqual([before[0], "Label", ...before.slice(1).filter((name) => name !== "Label")]);
  await menu.click();
  await page.getByRole("button", { name: "Label: one place on" }).click();
  await expect.poll(async () => (await names()).slice(1, 3)).toEqual(["Name", "Label"]);
  await page.getByRole("button", { name: "Label: stays in view" }).click();
  await expect.poll(async () => (await names()).slice(1, 3)).toEqual(["Label", "Name"]);
  await page.getByLabel("Customer", { exact: true }).uncheck();
  await expect(heads.filter({ hasText: "Customer" })).toHaveCount(0);
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await expect(heads.filter({ hasText: "Label" })).toHaveCSS("position", "sticky");
  await page.screenshot({ path: "test-results/screens/list_arranged.png" });
  // It gets a name, with which the list begins from then on, in any browser of the person.
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Keep this view" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Second hundred");
  await page.getByLabel("The list begins with it").check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("fieldline_columns:")).forEach((key) => localStorage.removeItem(key)));
  await page.goto(`${program.url}/entities/assets`);
  await expect(page.getByText("100 in all")).toBeVisible();
  await expect.poll(async () => (await names()).slice(1, 3)).toEqual(["Label", "Name"]);
  // Without the view there is the whole list again; with it, what was kept.
  await page.goto(`${program.url}/entities/assets?search=Listed`);
  await expect(page.getByText("2,300 in all")).toBeVisible();
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Second hundred (at first)" }).click();
  await expect(page.getByText("100 in all")).toBeVisible();
  await page.getByRole("button", { name: "Views" }).click();
  // What stays is read and written back, which the page must not be left before.
  const removed = page.waitForResponse((answer) => answer.request().method() === "PUT" && answer.url().endsWith("/api/user/settings"));
  await page.getByRole("menuitem", { name: "Delete the view Second hundred" }).click();
  await removed;
  await page.goto(`${program.url}/entities/assets`);
  await expect(page.getByText("100 in all")).toHaveCount(0);
  await page.getByRole("button", { name: "Views" }).click();
  await expect(page.getByRole("menuitem")).toHaveText(["Keep this view", "Copy a link to it"]);
});

test("all that match are selected and deleted, and what can't be is told with its reason", async ({ page, program }) => {
  test.setTimeout(120_000);
  const file = Array.from({ length: 120 }, (_, n) => `Doomed ${String(n).padStart(3, "0")}`).join("\n");
  await program.call("TENANT_ADMIN", "/api/asset/bulk_import", { file, mapping: { columns: [{ type: "NAME" }], delimiter: ",", update: true, header: false } });
  interface Made {
    id: { id: string; entityType: string };
  }
  const used = await program.call<Made>("TENANT_ADMIN", "/api/tenant/assets?assetName=Doomed%20007");
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Uses an asset" });
  await program.call("TENANT_ADMIN", "/api/calculatedField", {
    name: "Uses", type: "SIMPLE", entityId: device.id,
    configuration: { type: "SIMPLE", arguments: { a: { refEntityId: used.id, refEntityKey: { key: "a", type: "TS_LATEST" } } }, expression: "a", output: { type: "TIME_SERIES", name: "b" } },
  });
  await logIn(page, program, "TENANT_ADMIN", "/entities/assets?search=Doomed&sort=name:asc");
  await expect(page.getByText("120 in all")).toBeVisible();
  await page.getByLabel("Select all that are loaded").check();
  await expect(page.getByText("100 of 120 are selected.")).toBeVisible();
  await page.getByRole("button", { name: "Select all 120 that match" }).click();
  await expect(page.getByText("All 120 that match are selected.")).toBeVisible();
  expect(await findings(page)).toEqual([]);
  // Another search shows other rows, so that none is selected any more.
  await expect(page.getByRole("button", { name: "Delete 120" })).toBeVisible();
  await page.getByRole("textbox", { name: "Search" }).fill("Doomed 0");
  await expect(page.getByText("100 in all")).toBeVisible();
  await expect(page.getByRole("button", { name: /^Delete/ })).toHaveCount(0);
  await page.getByRole("textbox", { name: "Search" }).fill("Doomed");
  await expect(page.getByText("120 in all")).toBeVisible();
  await page.getByLabel("Select all that are loaded").check();
  await page.getByRole("button", { name: "Select all 120 that match" }).click();
  await page.getByRole("button", { name: "Delete 120" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(dialog.getByText("119 done, 1 failed, 0 not begun")).toBeVisible({ timeout: 60_000 });
  await expect(dialog.getByRole("listitem")).toContainText("Doomed 007");
  await dialog.getByRole("button", { name: "Close" }).click();
  await expect(page.getByText("1 in all")).toBeVisible();
  await expect(page.getByRole("button", { name: /^Delete/ })).toHaveCount(0);
});

test("names in lists lead to what they name, pages have titles, and the keyboard gets past the menu", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/entities/devices?search=Test+Device+A1");
  await expect(page).toHaveTitle("Devices · Fieldline");
  const row = page.locator("tr[data-row]", { hasText: "Test Device A1" });
  await row.getByRole("link", { name: "Customer A" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Customer A" })).toBeVisible();
  await expect(page).toHaveTitle("Customer A · Customer · Fieldline");
  await page.goBack();
  await row.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Test Device A1" })).toBeVisible();
  await expect(page.getByRole("link", { name: "default" })).toBeVisible();
  await expect(page.getByRole("main"), "the row is gone, so the keyboard goes on within the screen").toBeFocused();
  await page.getByRole("link", { name: "Fieldline" }).focus();
  await page.keyboard.press("Shift+Tab");
  await expect(page.getByRole("button", { name: "To the content" })).toBeInViewport();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("main")).toBeFocused();
  // A name of 255 letters without a space breaks no screen, and leaves the other columns in view.
  const name = `Long${"x".repeat(251)}`;
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name });
  const overflow = (): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  for (const path of ["/home", "/entities/devices?search=Long", `/entities/devices/${id.id}`]) {
    await page.goto(`${program.url}${path}`);
    await expect(page.getByText(name).first()).toBeVisible();
    expect(await overflow(), path).toBeLessThanOrEqual(0);
    if (path.includes("search")) {
      await expect(page.getByRole("columnheader", { name: "Profile" })).toBeInViewport();
    }
  }
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy the ID" }).click();
  expect(page.url()).toContain(await page.evaluate(() => navigator.clipboard.readText()));
});
