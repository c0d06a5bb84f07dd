// Every screen of the menu by every role: it opens, says its name, and axe finds nothing.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";
import { menuFor } from "../src/app/menu";
import { expect, logIn, test, USERS, type Role } from "./program";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const runner = (window as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe;
    const { violations } = await runner.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
  });
}

for (const role of Object.keys(USERS) as Role[]) {
  test(`screens of ${role}`, async ({ page, program }) => {
    test.setTimeout(180_000);
    await logIn(page, program, role);
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      for (const { items } of menuFor(role)) {
        for (const { path, label } of items) {
          await page.goto(program.url + path);
          await expect(page.getByRole("heading", { level: 1, name: label })).toBeVisible();
          await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
          await expect(page.getByRole("alert")).toHaveCount(0);
          expect(await findings(page), `${path} ${scheme}`).toEqual([]);
          await page.screenshot({ path: `test-results/screens/${role}${path.replaceAll("/", "_")}_${scheme}.png` });
        }
      }
    }
  });
}

test("the log-in page has no findings either", async ({ page, program }) => {
  await page.goto(`${program.url}/login`);
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

test("the pages of a device and of its dashboard have no findings", async ({ page, program }) => {
  test.setTimeout(120_000);
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Axe" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  await program.send(credentialsId, { temperature: 21, door: "open" });
  await logIn(page, program, "TENANT_ADMIN");
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.goto(`${program.url}/entities/devices/${device.id.id}`);
    for (const tab of ["Details", "Connect", "Latest telemetry", "Dashboard", "Attributes", "Alarms", "Commands", "Relations", "Audit log"]) {
      await page.getByRole("tab", { name: tab }).click();
      await expect(page.getByRole("tabpanel")).toBeVisible();
      await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
      if (tab === "Dashboard") {
        await expect(page.locator("[data-value]").first()).toHaveText("21");
      }
      expect(await findings(page), `${tab} ${scheme}`).toEqual([]);
      await page.screenshot({ path: `test-results/screens/device_${tab.replaceAll(" ", "_")}_${scheme}.png` });
    }
  }
});
