// What a widget shows goes into files: pictures of all that is drawn in the page, and tables with all of their rows.

import { readFileSync } from "node:fs";
import { inflateRawSync } from "node:zlib";
import type { Download, Page } from "@playwright/test";
import { expect, logIn, test } from "./program";

const KEY = { name: "temperature", type: "timeseries", label: "Temperature", units: "°C", settings: {} };

/** Returns the least sheet of a workbook. */
function sheetOf(bytes: Buffer): string {
  const at = bytes.indexOf("xl/worksheets/sheet1.xml");
  const start = at + "xl/worksheets/sheet1.xml".length;
  return inflateRawSync(bytes.subarray(start, start + bytes.readUInt32LE(at - 12))).toString("utf8");
}

/** Counts the pixels of a picture that are nearly of a color. */
async function pixelsOf(page: Page, download: Download, [red, green, blue]: [number, number, number]): Promise<number> {
  const data = readFileSync(await download.path()).toString("base64");
  return page.evaluate(async ([source, ...wanted]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${String(source)}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context?.drawImage(image, 0, 0);
    const { data: pixels } = context?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
    let count = 0;
    for (let n = 0; n < pixels.length; n += 4) {
      count += wanted.every((part, at) => Math.abs((pixels[n + at] ?? 0) - Number(part)) < 24) ? 1 : 0;
    }
    return count;
  }, [data, red, green, blue] as const);
}

test("cards, tables and charts are saved as pictures, and tables whole as workbooks", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1000 });
  await program.send("A1_TEST_TOKEN", { temperature: 20 });
  await program.send("A1_TEST_TOKEN", { temperature: 21 });
  const file = Array.from({ length: 1_200 }, (_, n) => `Export ${String(n).padStart(5, "0")}`).join("\n");
  await program.call("TENANT_ADMIN", "/api/asset/bulk_import", { file, mapping: { columns: [{ type: "NAME" }], delimiter: ",", update: true, header: false } });
  const widget = (fqn: string, title: string, type: string, alias: string, keys: object[], more: object = {}): object => ({ typeFullFqn: `system.${fqn}`, type, config: { title, showTitle: true, settings: {}, ...more, datasources: [{ type: "entity", entityAliasId: alias, dataKeys: keys }] } });
  const widgets = {
    Card: widget("cards.value_card", "Card", "latest", "a1", [KEY], { backgroundColor: "rgb(0, 200, 0)" }),
    Text: widget("cards.markdown_card", "Text", "latest", "a1", [KEY], { settings: { markdownTextPattern: '<div style="background: rgb(200, 0, 200); height: 80px">${Temperature}</div>', useMarkdownTextFunction: false } }),
    Table: widget("cards.entities_table", "Table", "latest", "assets", [{ name: "name", type: "entityField", label: "Name", settings: {} }], { backgroundColor: "rgb(255, 255, 255)" }),
    Course: widget("time_series_chart", "Course", "timeseries", "a1", [{ ...KEY, color: "#ff0000", settings: { lineSettings: { showPoints: true, pointSize: 20, pointShape: "circle" } } }]),
  };
  const named = (id: string, entityType: string, entityNameFilter: string): object => ({ id, alias: id, filter: { type: "entityName", entityType, entityNameFilter, resolveMultiple: true } });
  const configuration = {
    widgets,
    states: { default: { name: "Main", root: true, layouts: { main: { widgets: Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: (n % 2) * 12, row: Math.floor(n / 2) * 7, sizeX: 12, sizeY: 7 }])), gridSettings: { columns: 24 } } } } },
    entityAliases: { a1: named("a1", "DEVICE", "Test Device A1"), assets: named("assets", "ASSET", "Export") },
    timewindow: { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 600_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } },
  };
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Exports", configuration });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const picture = async (name: string): Promise<Download> => {
    await region(name).hover();
    await region(name).getByRole("button", { name: new RegExp(`^(More of|Save what) ${name}`) }).click();
    const saving = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: "PNG" }).click();
    return saving;
  };
  await expect(region("Card")).toContainText("21");
  const card = await picture("Card");
  expect(card.suggestedFilename()).toMatch(/^Card .*\.png$/);
  expect(await pixelsOf(page, card, [0, 200, 0])).toBeGreaterThan(50_000);
  await card.saveAs("test-results/screens/picture_card.png");
  await expect(region("Text")).toContainText("21");
  const text = await picture("Text");
  await text.saveAs("test-results/screens/picture_text.png");
  expect(await pixelsOf(page, text, [200, 0, 200])).toBeGreaterThan(20_000);
  await expect(region("Course").locator("[data-points]")).not.toHaveAttribute("data-points", "0");
  const course = await picture("Course");
  await course.saveAs("test-results/screens/picture_course.png");
  expect(await pixelsOf(page, course, [255, 0, 0])).toBeGreaterThan(100);
  await expect(region("Table")).toContainText("Export 0");
  const table = await picture("Table");
  await table.saveAs("test-results/screens/picture_table.png");
  // Letters are dark on light.
  expect(await pixelsOf(page, table, [20, 30, 26])).toBeGreaterThan(200);

  await region("Table").getByRole("button", { name: "Columns, filters, file" }).click();
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as Excel (XLSX)" }).click();
  const saved = await saving;
  expect(saved.suggestedFilename()).toBe("Table.xlsx");
  const sheet = sheetOf(readFileSync(await saved.path()));
  expect(sheet.match(/<row>/g)).toHaveLength(1_201);
  expect(sheet).toContain(">Export 01199<");
});
