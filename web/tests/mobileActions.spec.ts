// Actions for phones are made in the editor of a dashboard, as ThingsBoard stores them, and run where they are used.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

interface Stored {
  id: { id: string };
  configuration: { widgets: { w: { config: { actions: Record<string, object[]> } } } };
}

test("a mobile action is made, changed, stored as ThingsBoard has it, and runs", async ({ page, program, context }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1500, height: 1000 });
  await context.grantPermissions(["geolocation"]);
  await context.setGeolocation({ latitude: 48.25, longitude: 11.5 });
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Carried", type: "carried" });
  const widget = {
    typeFullFqn: "system.cards.entities_table",
    config: {
      title: "Table",
      settings: {},
      datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [{ name: "latitude", type: "attribute", label: "Latitude", settings: {} }] }],
      actions: { actionCellButton: [{ id: "old", name: "Scan", icon: "edit", type: "mobileAction", own: "kept", mobileAction: { type: "scanQrCode", own: 1, processQrCodeFunction: { body: "log(code)", modules: { lib: "tb-resource;/api/resource/js_module/tenant/lib.js" } } } }] },
    },
  };
  const board = await program.call<Stored>("TENANT_ADMIN", "/api/dashboard", {
    title: "Carried",
    configuration: {
      widgets: { w: widget },
      states: { default: { name: "One", root: true, layouts: { main: { widgets: { w: { col: 0, row: 0, sizeX: 16, sizeY: 8 } }, gridSettings: {} } } } },
      entityAliases: { a: { id: "a", alias: "A", filter: { type: "deviceType", deviceTypes: ["carried"], resolveMultiple: true } } },
    },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}?edit=true`);
  await page.getByRole("button", { name: /^Table: / }).click();
  const panel = page.getByRole("complementary", { name: "The chosen widget" });
  await panel.getByRole("tab", { name: "Actions" }).click();
  const choose = async (name: string, option: string): Promise<void> => {
    await panel.getByRole("combobox", { name, exact: true }).click();
    await page.getByRole("option", { name: option, exact: true }).click();
  };

  // One that is there keeps its modules and what this editor doesn't know.
  await panel.getByRole("button", { name: /^Scan/ }).click();
  await expect(panel.getByText("Modules: lib")).toBeVisible();
  await panel.getByRole("textbox", { name: "What is done with the code: function" }).fill("log(code, format)");
  await panel.getByRole("button", { name: /^Scan/ }).click();

  await choose("Where", "Button in each row");
  await panel.getByRole("button", { name: "Add an action" }).click();
  await panel.getByRole("button", { name: /^Action 2/ }).click();
  await panel.getByRole("textbox", { name: "Name", exact: true }).fill("Locate");
  await choose("What it does", "Mobile action");
  await choose("What the phone does", "Takes a photo");
  await expect(panel.getByRole("textbox", { name: "What is done with the picture: function" })).toHaveValue(/imageUrl/);
  await panel.getByRole("checkbox", { name: "Save the picture to the gallery" }).check();
  await choose("What the phone does", "Gets the position of the phone");
  await expect(panel.getByRole("textbox", { name: "What is done with the position: function" })).toHaveValue(/latitude/);
  await panel.getByRole("textbox", { name: "Without the mobile app: function" }).fill("widgetContext.showErrorToast('no phone');");
  await page.screenshot({ path: "test-results/screens/mobile-action.png" });
  expect(await findings(page)).toEqual([]);

  await panel.getByRole("button", { name: "Add an action" }).click();
  await panel.getByRole("button", { name: /^Action 3/ }).click();
  await panel.getByRole("textbox", { name: "Name", exact: true }).last().fill("Provision");
  await panel.getByRole("combobox", { name: "What it does" }).last().click();
  await page.getByRole("option", { name: "Mobile action" }).click();
  await panel.getByRole("combobox", { name: "What the phone does" }).last().click();
  await page.getByRole("option", { name: "Provisions a device" }).click();
  await panel.getByRole("combobox", { name: "How the device is reached" }).click();
  await page.getByRole("option", { name: "Bluetooth LE" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();

  const { configuration } = await program.call<Stored>("TENANT_ADMIN", `/api/dashboard/${board.id.id}`);
  const [scan, locate, provision] = configuration.widgets.w.config.actions["actionCellButton"] ?? [];
  expect(scan).toMatchObject({ own: "kept", mobileAction: { type: "scanQrCode", own: 1, processQrCodeFunction: { body: "log(code, format)", modules: { lib: "tb-resource;/api/resource/js_module/tenant/lib.js" } } } });
  expect(locate).toEqual({
    id: expect.any(String),
    name: "Locate",
    icon: "more_horiz",
    type: "mobileAction",
    mobileAction: {
      type: "getLocation",
      processLocationFunction: expect.stringContaining("latitude"),
      handleEmptyResultFunction: "",
      handleErrorFunction: "widgetContext.showErrorToast(error);",
      handleNonMobileFallbackFunction: "widgetContext.showErrorToast('no phone');",
    },
  });
  expect(provision).toMatchObject({ type: "mobileAction", mobileAction: { type: "deviceProvision", provisionType: "ble", handleProvisionSuccessFunction: expect.stringContaining("deviceName") } });

  // What it begins with works as it is; what needs the mobile app says so.
  await page.goto(`${program.url}/dashboards/${board.id.id}`);
  const row = page.getByRole("region", { name: "Table" }).locator("tbody tr[data-row]");
  await row.getByRole("button", { name: "Provision", exact: true }).click();
  await expect(page.getByText("“Provision” needs what this browser can't do here. It is an action for the mobile app.")).toBeVisible();
  await row.getByRole("button", { name: "Locate", exact: true }).click();
  await page.getByRole("dialog", { name: "Locate" }).getByRole("button", { name: "Tell where I am" }).click();
  await page.getByRole("dialog", { name: "May this dashboard act with your rights?" }).getByRole("button", { name: "Allow for this dashboard" }).click();
  await expect(row).toContainText("48.25");
  const stored = await program.call<{ key: string; value: unknown }[]>("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${device.id.id}/values/attributes/SERVER_SCOPE`);
  expect(stored.find(({ key }) => key === "longitude")?.value).toBe(11.5);
});
