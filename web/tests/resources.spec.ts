// Widget types and bundles, images and scripts, as people keep them.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

interface Made {
  id: { id: string; entityType: string };
}

test("a widget type is written beside its preview, saved by the keyboard, and put into a bundle", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/resources/widgets-library/widget-types");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Big number");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  const preview = page.frameLocator("[data-preview] iframe");
  await expect(preview.locator(".value")).toHaveText(/^\d+\.?\d*$/);
  await page.getByRole("tab", { name: "HTML" }).click();
  await page.getByRole("textbox", { name: "HTML" }).fill('<p class="name"></p><em class="value"></em><script>top.hit = 1</script>');
  await page.keyboard.press("Control+s");
  await expect(page.getByText("Saved")).toBeVisible();
  await expect(preview.locator("em.value")).toHaveText(/^\d+\.?\d*$/);
  await page.goto(`${program.url}/resources/widgets-library/widgets-bundles`);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Title").fill("Our bundle");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("combobox", { name: "Add a widget" }).click();
  await page.getByRole("option", { name: "Big number" }).click();
  await expect(page.getByRole("link", { name: "Big number" })).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

test("an image is uploaded, made public, and deleted after who uses it was told", async ({ page, program }) => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" onload="top.hit = 1"><rect width="40" height="20" fill="teal"/><script>top.hit = 1</script></svg>';
  await logIn(page, program, "TENANT_ADMIN", "/resources/images");
  await page.locator('input[type="file"][accept="image/*"]').setInputFiles({ name: "teal.svg", mimeType: "image/svg+xml", buffer: Buffer.from(svg) });
  const drawer = page.getByRole("dialog", { name: "teal" });
  await expect(drawer.getByRole("img", { name: "teal" })).toBeVisible();
  await expect(drawer.getByText("Public link")).toBeVisible();
  const link = (await drawer.getByText(/^http.*\/api\/images\/public\//).first().textContent()) ?? "";
  expect((await fetch(link)).status).toBe(200);
  await drawer.getByRole("switch", { name: "Anybody with the link can see it" }).press("Space");
  await expect.poll(async () => (await fetch(link)).status).toBe(404);
  expect(await findings(page)).toEqual([]);
  await program.call("TENANT_ADMIN", "/api/dashboard", { title: "Uses teal", image: "tb-image;/api/images/tenant/teal.svg" });
  await drawer.getByRole("button", { name: "Delete" }).click();
  const asked = page.getByRole("dialog", { name: "Delete teal for good?" });
  await asked.getByRole("button", { name: "Delete" }).click();
  await expect(asked.getByRole("link", { name: "Uses teal" })).toBeVisible();
  await asked.getByRole("button", { name: "Delete it all the same" }).click();
  await expect(page.getByRole("row", { name: /teal/ })).toHaveCount(0);
  expect(await page.evaluate(() => (window as unknown as { hit?: number }).hit)).toBeUndefined();
});

test("a script is added to the library and changed in place", async ({ page, program }) => {
  await logIn(page, program, "TENANT_ADMIN", "/resources/javascript-library");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.locator('input[type="file"]').setInputFiles({ name: "tools.js", mimeType: "text/javascript", buffer: Buffer.from("export const one = 1;") });
  const drawer = page.getByRole("dialog", { name: "tools.js" });
  await expect(drawer.getByRole("textbox", { name: "Script" })).toContainText("one = 1");
  await drawer.getByRole("textbox", { name: "Script" }).fill("export const two = 2;");
  await drawer.getByRole("button", { name: "Save the script" }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  await page.reload();
  await page.getByRole("row", { name: /tools\.js/ }).first().click();
  await expect(page.getByRole("textbox", { name: "Script" })).toContainText("two = 2");
});

test("a bundle with its widgets is saved as a file and brought in again", async ({ page, program }) => {
  const type = await program.call<Made>("TENANT_ADMIN", "/api/widgetType", { name: "Packed", descriptor: { type: "latest", sizeX: 4, sizeY: 3, templateHtml: "<b>1</b>", templateCss: "", controllerScript: "", defaultConfig: "{}" } });
  const bundle = await program.call<Made>("TENANT_ADMIN", "/api/widgetsBundle", { title: "Packed bundle" });
  await fetch(`${program.url}/api/widgetsBundle/${bundle.id.id}/widgetTypes`, {
    method: "POST", body: JSON.stringify([type.id.id]), headers: { "Content-Type": "application/json", "X-Authorization": `Bearer ${await program.token("TENANT_ADMIN")}` },
  });
  await logIn(page, program, "TENANT_ADMIN", `/resources/widgets-library/widgets-bundles/${bundle.id.id}`);
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export with its widgets" }).click();
  const file = await (await saving).path();
  await page.goto(`${program.url}/resources/widgets-library/widgets-bundles`);
  await page.locator('input[type="file"]').first().setInputFiles(file);
  await expect(page).toHaveURL(/widgets-bundles\/[0-9a-f-]{36}/);
  expect(page.url()).not.toContain(bundle.id.id);
  await expect(page.getByRole("heading", { level: 1, name: "Packed bundle" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Packed" })).toBeVisible();
});
