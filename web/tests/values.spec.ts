// The values and relations of an entity stay quick however many there are, and can be sorted, searched, copied and saved.

import { readFileSync } from "node:fs";
import { findings } from "./axe";
import { expect, logIn, test } from "./program";

const KEYS = 5_000;
const name = (n: number): string => `key_${String(n).padStart(5, "0")}`;

test("five thousand keys are drawn where they are in view alone", async ({ page, context, program }) => {
  await page.setViewportSize({ width: 1300, height: 900 });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Many keys" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  for (let from = 0; from < KEYS; from += 500) {
    await program.send(credentialsId, Object.fromEntries(Array.from({ length: 500 }, (_, n) => [name(from + n), from + n])));
  }
  let asked = 0;
  page.on("request", (request) => (asked += request.url().includes("/values/timeseries?") ? 1 : 0));
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}?tab=telemetry`);
  await expect(page.getByText("5,000 keys")).toBeVisible();
  const table = page.getByRole("table", { name: "Latest telemetry" });
  const rows = table.locator("tbody tr[data-row]");
  await expect(rows.first()).toContainText(name(0));
  expect(await rows.count()).toBeLessThan(100);
  // It stays live.
  await program.send(credentialsId, { [name(1)]: "live" });
  await expect(page.locator(`[data-key="${name(1)}"]`)).toHaveText("live");
  // Only lines in view are asked for.
  await expect(rows.first().getByRole("img")).toHaveCount(0);
  expect(asked).toBeLessThan(10);

  await table.getByRole("button", { name: /^Value/ }).click();
  await table.getByRole("button", { name: /^Value/ }).click();
  await expect(rows.first()).toContainText("live");
  await expect(rows.nth(1)).toContainText(name(KEYS - 1));
  const pane = table.locator("xpath=..");
  await pane.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await expect(rows.last()).toContainText(name(0));
  expect(await rows.count()).toBeLessThan(100);

  await page.getByRole("textbox", { name: "Search" }).fill("key_0432");
  await expect(page.getByText("10 keys")).toBeVisible();
  expect(await findings(page)).toEqual([]);
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Columns, filters, file" }).click();
  await page.getByRole("button", { name: "Save as JSON" }).click();
  const file = JSON.parse(readFileSync(await (await saving).path(), "utf8")) as object[];
  expect(file).toHaveLength(10);
  expect(file[0]).toMatchObject({ Key: name(4_329), Value: "4329" });
  await page.keyboard.press("Escape");

  // A value by its button, a cell by a click, and a row by keys.
  const copied = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole("button", { name: `Copy the value of ${name(4_321)}` }).click();
  await expect.poll(copied).toBe("4321");
  await rows.first().getByText(name(4_329)).click();
  await page.keyboard.press("Control+c");
  await expect.poll(copied).toBe(name(4_329));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Control+c");
  await expect.poll(copied).toBe("4328");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Control+c");
  await expect.poll(copied).toMatch(/^key_04328\t4328\t/);
});

test("relations are sorted, searched and saved, however many", async ({ page, program }) => {
  const hall = await program.call<{ id: object; name: string }>("TENANT_ADMIN", "/api/asset", { name: "Related hall" });
  const lines = Array.from({ length: 400 }, (_, n) => `Related ${String(n).padStart(4, "0")}`).join("\n");
  await program.call("TENANT_ADMIN", "/api/asset/bulk_import", { file: lines, mapping: { columns: [{ type: "NAME" }], delimiter: ",", update: true, header: false } });
  const { data } = await program.call<{ data: { id: object }[] }>("TENANT_ADMIN", "/api/tenant/assets?pageSize=400&page=0&textSearch=Related%200");
  const token = await program.token("TENANT_ADMIN");
  for (let at = 0; at < data.length; at += 50) {
    await Promise.all(data.slice(at, at + 50).map(({ id }) => fetch(`${program.url}/api/relation`, { method: "POST", headers: { "X-Authorization": `Bearer ${token}`, "Content-Type": "application/json" }, body: JSON.stringify({ from: hall.id, to: id, type: "Contains", typeGroup: "COMMON" }) })));
  }
  await logIn(page, program, "TENANT_ADMIN", `/entities/assets/${(hall.id as { id: string }).id}?tab=relations`);
  await expect(page.getByText("400 relations")).toBeVisible();
  const rows = page.getByRole("table", { name: "Relations" }).locator("tbody tr[data-row]");
  await expect(rows.first()).toContainText("Related 0000");
  expect(await rows.count()).toBeLessThan(80);
  await page.getByRole("table", { name: "Relations" }).getByRole("button", { name: /^Entity/ }).click();
  await expect(rows.first()).toContainText("Related 0399");
  await page.getByRole("textbox", { name: "Search" }).fill("related 0123");
  await expect(page.getByText("1 relation", { exact: true })).toBeVisible();
  await rows.first().getByRole("link", { name: "Related 0123" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Related 0123" })).toBeVisible();
});
