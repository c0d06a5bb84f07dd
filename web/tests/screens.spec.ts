// Pages that no menu leads to: axe finds nothing there either. roles.spec.ts walks the others.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

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
        await expect(page.locator("[data-value]").first()).toHaveText("21 °C");
      }
      expect(await findings(page), `${tab} ${scheme}`).toEqual([]);
      await page.screenshot({ path: `test-results/screens/device_${tab.replaceAll(" ", "_")}_${scheme}.png` });
    }
  }
});
