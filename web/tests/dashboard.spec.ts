// A dashboard that ThingsBoard exported is brought in, shows live values and their course, and runs none of its scripts.

import { writeFileSync } from "node:fs";
import { expect, logIn, test } from "./program";

const TOKEN = "A1_TEST_TOKEN";

function widget(fqn: string, title: string, keys: object[], settings: object = {}, entityAliasId = "a1", actions: object = {}): object {
  return {
    typeFullFqn: `system.${fqn}`,
    type: "latest",
    sizeX: 6,
    sizeY: 4,
    config: { title, showTitle: true, settings, actions, datasources: [{ type: "entity", entityAliasId, dataKeys: keys }] },
  };
}

const KEY = { name: "temperature", type: "timeseries", label: "Temperature", color: "#f44336", units: "°C", decimals: 1, settings: {} };

const EXPORTED = {
  title: "Boiler room",
  configuration: {
    widgets: {
      w1: widget("cards.value_card", "Now", [KEY]),
      w2: { ...widget("time_series_chart", "Course", [KEY]), type: "timeseries" },
      w3: widget("cards.entities_table", "Table", [KEY], {}, "a1", { rowClick: [{ name: "open", type: "openDashboardState", targetDashboardStateId: "room", setEntityId: true }] }),
      w4: widget("cards.html_value_card", "Markup", [KEY], { cardHtml: '<b>It is ${Temperature}</b><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>' }),
      w6: widget("cards.simple_card", "${entityName}", [KEY], {}, "chosen"),
      w5: widget("gateway_widgets.config", "Strange", [KEY]),
    },
    states: {
      default: {
        name: "Boiler room",
        root: true,
        layouts: {
          main: {
            widgets: {
              w1: { sizeX: 6, sizeY: 4, row: 0, col: 0 },
              w2: { sizeX: 12, sizeY: 6, row: 0, col: 6 },
              w3: { sizeX: 6, sizeY: 4, row: 4, col: 0 },
              w4: { sizeX: 6, sizeY: 4, row: 6, col: 6 },
              w5: { sizeX: 6, sizeY: 4, row: 6, col: 12 },
            },
            gridSettings: { columns: 24, margin: 10, backgroundColor: "#eeeeee" },
          },
        },
      },
      room: { name: "${entityName}", root: false, layouts: { main: { widgets: { w6: { sizeX: 8, sizeY: 4, row: 0, col: 0 } }, gridSettings: { columns: 24 } } } },
    },
    entityAliases: { chosen: { id: "chosen", alias: "Chosen", filter: { type: "stateEntity" } }, a1: { id: "a1", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: true } } },
    timewindow: { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 300_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } },
  },
};

test("an exported dashboard opens, lives, and harms nobody", async ({ page, program }) => {
  const file = test.info().outputPath("boiler room.json");
  writeFileSync(file, JSON.stringify(EXPORTED));
  await program.send(TOKEN, { temperature: 20.04 });
  await logIn(page, program, "TENANT_ADMIN", "/dashboards");
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Import" }).click();
  await (await choosing).setFiles(file);
  await expect(page.getByRole("heading", { level: 1, name: "Boiler room" })).toBeVisible();

  const value = page.getByRole("region", { name: "Now" }).locator("[data-value]");
  await expect(value).toHaveText("20 °C");
  await program.send(TOKEN, { temperature: 25.26 });
  await expect(value).toHaveText("25.3 °C");
  await expect(page.getByRole("region", { name: "Table" })).toContainText("25.3 °C");
  await expect(page.getByRole("region", { name: "Table" })).toContainText("Test Device A1");
  await expect.poll(async () => Number(await page.getByRole("region", { name: "Course" }).locator("[data-points]").getAttribute("data-points"))).toBeGreaterThan(1);
  await expect(page.getByRole("region", { name: "Markup" })).toContainText("It is 25.3");
  await expect(page.getByRole("region", { name: "Strange" })).toContainText("system.gateway_widgets.config");
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);

  const [first, second] = await Promise.all(["w1", "w2"].map((id) => page.locator(`[data-widget="${id}"]`).boundingBox()));
  const pitch = ((second?.x ?? 0) - (first?.x ?? 0)) / 6;
  expect(first?.width).toBeCloseTo(6 * pitch - 10, 0);
  expect(first?.height).toBeCloseTo(4 * pitch - 10, 0);

  await page.getByRole("region", { name: "Table" }).getByRole("button", { name: "Test Device A1" }).click();
  const chosen = page.getByRole("region", { name: "Test Device A1" });
  await expect(chosen.locator("[data-value]")).toHaveText("25.3 °C");
  await page.reload();
  await expect(chosen.locator("[data-value]")).toHaveText("25.3 °C");
  await page.goBack();
  await expect(page.getByRole("region", { name: "Table" })).toContainText("25.3 °C");

  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export" }).click();
  expect((await saving).suggestedFilename()).toBe("Boiler room.json");
  await page.screenshot({ path: "test-results/screens/dashboard_light.png" });
  await page.setViewportSize({ width: 420, height: 900 });
  await expect(page.locator('[data-widget="w1"]')).toHaveCSS("left", "10px");
  await page.screenshot({ path: "test-results/screens/dashboard_phone.png" });
});

test("a device has a dashboard that nobody built, and it can be kept", async ({ page, program }) => {
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Pump 3" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  await program.send(credentialsId, { pressure: 3, door: "open" });
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}?tab=dashboard`);
  const values = page.locator("[data-value]");
  await expect(values).toHaveText(["3", "open"]);
  await program.send(credentialsId, { pressure: 4 });
  await expect(values.first()).toHaveText("4");
  await page.getByRole("button", { name: "Save as dashboard" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Pump 3" })).toBeVisible();
  await expect(values).toHaveText(["4", "open"]);
});
