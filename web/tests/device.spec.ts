// Actions that ask something of the device: what a browser can do, it does after a click that says so; of the rest it tells.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

const PICTURE = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
const toast = (expression: string): string => `widgetContext.showSuccessToast(${expression});`;

test("photos, positions, codes, calls and maps come from the browser, and functions hear of it", async ({ page, program, context }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1300, height: 900 });
  await context.grantPermissions(["geolocation"]);
  await context.setGeolocation({ latitude: 48.25, longitude: 11.5 });
  // No camera and no screen is here: pictures of a canvas stand for both, and one code for all that is seen.
  await page.addInitScript(() => {
    const seen = (): Promise<MediaStream> => {
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width: 64, height: 32 });
      const draw = (): void => canvas.getContext("2d")?.fillRect(0, 0, 64, 32);
      draw();
      setInterval(draw, 50);
      return Promise.resolve(canvas.captureStream(20));
    };
    navigator.mediaDevices.getUserMedia = seen;
    navigator.mediaDevices.getDisplayMedia = seen;
    Object.assign(window, { BarcodeDetector: class { detect(): Promise<object[]> { return Promise.resolve([{ rawValue: "<b>42</b>", format: "qr_code" }]); } } });
  });
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Held", type: "held" });
  const all = { handleErrorFunction: toast("'error: ' + error"), handleEmptyResultFunction: toast("'nothing of ' + entityName"), handleNonMobileFallbackFunction: `let entityId = 'other way'; ${toast("entityId")}` };
  const action = (name: string, mobileAction: object): object => ({ name, icon: "edit", type: "mobileAction", mobileAction: { ...all, ...mobileAction } });
  const save = "widgetContext.attributeService.saveEntityAttributes(entityId, 'SERVER_SCOPE', [{ key: 'photo', value: imageUrl }]).subscribe(() => widgetContext.showSuccessToast('kept'));";
  const widget = {
    typeFullFqn: "system.cards.entities_table",
    config: {
      title: "Table",
      settings: {},
      datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [{ name: "photo", type: "attribute", label: "Photo", settings: {} }] }],
      actions: {
        actionCellButton: [
          action("Photo", { type: "takePhoto", processImageFunction: save }),
          action("Shot", { type: "takeScreenshot", processImageFunction: toast("imageUrl.slice(0, 22)") }),
          action("Where", { type: "getLocation", processLocationFunction: toast("'at ' + latitude + ' ' + longitude") }),
          action("Scan", { type: "scanQrCode", processQrCodeFunction: toast("format + ' ' + code.length") }),
          action("Phone", { type: "makePhoneCall", getPhoneNumberFunction: "return '+49 89 ' + 12345;", processLaunchResultFunction: toast("'launched ' + launched") }),
          action("Secret", { type: "makePhoneCall", getPhoneNumberFunction: "return '*#06#';" }),
          action("Map", { type: "mapDirection", getLocationFunction: "return widgetContext.rxjs.of([48.1, 11.2]);", processLaunchResultFunction: toast("'shown ' + launched") }),
          action("Nowhere", { type: "mapLocation", getLocationFunction: "throw new Error('lost');" }),
          action("Provision", { type: "deviceProvision" }),
        ],
      },
    },
  };
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Held",
    configuration: {
      widgets: { w: widget },
      states: { default: { name: "One", root: true, layouts: { main: { widgets: { w: { col: 0, row: 0, sizeX: 24, sizeY: 8 } }, gridSettings: {} } } } },
      entityAliases: { a: { id: "a", alias: "A", filter: { type: "deviceType", deviceTypes: ["held"], resolveMultiple: true } } },
    },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const row = page.getByRole("region", { name: "Table" }).locator("tbody tr[data-row]");
  const press = async (name: string): Promise<void> => row.getByRole("button", { name, exact: true }).click();
  const dialog = (name: string) => page.getByRole("dialog", { name });

  await press("Photo");
  await expect(dialog("Photo")).toContainText("The dashboard gets the photo that you take.");
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/device-photo.png" });
  await expect(dialog("Photo").locator("input[type=file]").or(page.locator("input[type=file][capture]")).first()).toHaveAttribute("capture", "environment");
  await page.locator("input[type=file][capture]").setInputFiles({ name: "a.png", mimeType: "image/png", buffer: PICTURE });
  await page.getByRole("dialog", { name: "May this dashboard act with your rights?" }).getByRole("button", { name: "Allow for this dashboard" }).click();
  await expect(page.getByText("kept", { exact: true })).toBeVisible();
  const stored = await program.call<{ key: string; value: unknown }[]>("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${device.id.id}/values/attributes/SERVER_SCOPE`);
  expect(stored.find(({ key }) => key === "photo")?.value).toBe(`data:image/png;base64,${PICTURE.toString("base64")}`);

  await press("Photo");
  await dialog("Photo").getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByText("nothing of Held")).toBeVisible();

  await press("Shot");
  await dialog("Shot").getByRole("button", { name: "Choose what to show" }).click();
  await expect(page.getByText("data:image/jpeg;base64")).toBeVisible();

  await press("Where");
  await dialog("Where").getByRole("button", { name: "Tell where I am" }).click();
  await expect(page.getByText("at 48.25 11.5")).toBeVisible();

  await press("Scan");
  await expect(page.getByText("QR_CODE 9")).toBeVisible();

  await press("Phone");
  await expect(dialog("Phone")).toContainText("+49 89 12345");
  const call = dialog("Phone").getByRole("link", { name: "Call" });
  await expect(call).toHaveAttribute("href", "tel:+498912345");
  await page.screenshot({ path: "test-results/screens/device-call.png" });
  await call.evaluate((link) => link.addEventListener("click", (event) => event.preventDefault()));
  await call.click();
  await expect(page.getByText("launched true")).toBeVisible();
  await press("Secret");
  await expect(page.getByText("error: The action names no telephone number.")).toBeVisible();

  await press("Map");
  const way = dialog("Map").getByRole("link", { name: "Show the way" });
  await expect(way).toHaveAttribute("href", "https://www.openstreetmap.org/directions?route=%3B48.1%2C11.2");
  await dialog("Map").getByRole("button", { name: "Cancel" }).click();
  await press("Nowhere");
  await expect(page.getByText(/error: .*lost/)).toBeVisible();

  await press("Provision");
  await expect(page.getByText("“Provision” needs what this browser can't do here.")).toBeVisible();
  await expect(page.getByText("other way")).toBeVisible();

  // What may not be had is told to the function for that.
  await context.clearPermissions();
  await press("Where");
  await dialog("Where").getByRole("button", { name: "Tell where I am" }).click();
  await expect(page.getByText("error: The browser may not tell the position. Allow it beside the address of the page.")).toBeVisible();
});
