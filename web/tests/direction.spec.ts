// Pages that are read from the right: mirrored, without anything beyond their edges, and without findings.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

const PATHS = ["/home", "/entities/devices", "/alarms/alarms", "/dashboards", "/ruleChains", "/usage", "/account/profile", "/security-settings/auditLogs"];

test("the pages are laid out from the right, and charts, drawings and editors stay as they are", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1280, height: 800 });
  await logIn(page, program, "TENANT_ADMIN", "/home");
  await page.getByRole("button", { name: "tenant@thingsboard.org" }).click();
  await page.getByRole("menuitemradio", { name: "Right to left" }).click();
  await expect(page.locator("html")).toHaveAttribute("dir", "rtl");
  await page.keyboard.press("Escape");
  const menu = page.getByRole("navigation", { name: "Main menu" });
  const check = async (): Promise<void> => {
    const box = await menu.boundingBox();
    expect(box?.x).toBeGreaterThan(900);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0);
    expect(await findings(page)).toEqual([]);
  };
  for (const path of PATHS) {
    // Loaded anew each time: what was chosen is remembered.
    await page.goto(program.url + path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await check();
  }
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/tenant/devices?deviceName=Test%20Device%20A1");
  await program.send("A1_TEST_TOKEN", { temperature: 20 });
  await page.goto(`${program.url}/entities/devices/${device.id.id}?tab=telemetry`);
  await expect(page.getByText("temperature").first()).toBeVisible();
  await check();
  await page.screenshot({ path: "test-results/screens/rtl_device.png" });
  await page.goto(`${program.url}/entities/devices`);
  const table = page.getByRole("table", { name: "Devices" });
  // The first column is at the right, and a wider one grows to the left.
  const name = table.getByRole("columnheader", { name: /^Name/ });
  const [head, created] = [await name.boundingBox(), await table.getByRole("columnheader", { name: /^Created/ }).boundingBox()];
  expect(head?.x).toBeGreaterThan(created?.x ?? Infinity);
  const [x, y] = [head?.x ?? 0, (head?.y ?? 0) + 10];
  await page.mouse.move(x + 4, y);
  await page.mouse.down();
  await page.mouse.move(x - 60, y, { steps: 4 });
  await page.mouse.up();
  await expect.poll(async () => (await name.boundingBox())?.width).toBeGreaterThan((head?.width ?? 0) + 30);
  await page.screenshot({ path: "test-results/screens/rtl_devices.png" });
  await page.getByRole("button", { name: "tenant@thingsboard.org" }).click();
  await page.getByRole("menuitemradio", { name: "Left to right" }).click();
  await expect(page.locator("html")).toHaveAttribute("dir", "ltr");
  expect((await menu.boundingBox())?.x).toBeLessThan(100);
});
