// The own sessions: people recognize them, and end those that should not go on.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

test("own sessions are listed; one ends, then all others", async ({ page, browser, program }) => {
  const theirs = await (await browser.newContext({ locale: "en-US" })).newPage();
  await logIn(theirs, program, "CUSTOMER_USER", "/home");
  // A log-in without a browser.
  const token = await program.token("CUSTOMER_USER");
  const statusOf = async (): Promise<number> => (await fetch(`${program.url}/api/auth/user`, { headers: { "X-Authorization": `Bearer ${token}` } })).status;
  expect(await statusOf()).toBe(200);
  await program.token("TENANT_ADMIN");

  await logIn(page, program, "CUSTOMER_USER", "/account/security");
  const rows = page.getByRole("table", { name: "Sessions" }).getByRole("row");
  await expect(rows, "one each, below the head").toHaveCount(4);
  const own = rows.filter({ hasText: "This session" });
  await expect(own).toContainText(/Chrome \d+/);
  await expect(own).toContainText("127.0.0.1");
  await expect(own.getByRole("button")).toHaveCount(0);
  expect(await findings(page)).toEqual([]);

  await rows.filter({ hasText: "Unknown program" }).getByRole("button", { name: /^End session/ }).click();
  await expect(rows).toHaveCount(3);
  expect(await statusOf()).toBe(401);

  await page.getByRole("button", { name: "End all others" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End the other sessions" }).click();
  await expect(rows).toHaveCount(2);
  await expect(page.getByRole("button", { name: "End all others" })).toBeDisabled();
  await theirs.goto(`${program.url}/home`);
  await expect(theirs.getByLabel("E-mail")).toBeVisible();
  await page.reload();
  await expect(own).toBeVisible();
});
