// The editor of symbols: what is made in it is in the file as ThingsBoard has it, and works on a dashboard.

import type { Locator } from "@playwright/test";
import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

const DRAWING = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:tb="https://thingsboard.io/svg" viewBox="0 0 200 100"><rect x="1" y="1" width="198" height="98" fill="#eef"/><rect tb:tag="bar" x="20" y="20" width="10" height="60"/><circle cx="170" cy="50" r="20"/></svg>`;

async function contentOf(program: Program, link: string): Promise<string> {
  return (await fetch(program.url + link, { headers: { "X-Authorization": `Bearer ${await program.token("TENANT_ADMIN")}` } })).text();
}

test("a symbol is made of a drawing, tried, saved, and used", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1500, height: 1100 });
  const link = await program.symbol("TENANT_ADMIN", "Gauge", DRAWING);
  await logIn(page, program, "TENANT_ADMIN", "/resources/scada-symbols");
  await page.getByRole("row", { name: /Gauge/ }).click();
  await page.getByRole("link", { name: "Edit the symbol" }).click();
  await expect(page).toHaveURL(new RegExp(`/resources/scada-symbols/tenant/`));
  const preview = page.frameLocator('iframe[title="Preview"]');
  await expect(preview.locator("[tb\\:tag=bar]")).toHaveAttribute("width", "10");

  // What is still missing is told before anything is stored.
  await page.getByRole("textbox", { name: "Description" }).fill("Shows a level");
  await page.getByRole("button", { name: /^Save Ctrl/ }).click();
  await expect(page.getByText("A symbol needs a title.")).toBeVisible();
  await page.getByRole("textbox", { name: "Title" }).fill("Level gauge");

  await page.getByRole("tab", { name: "Behavior" }).click();
  await page.getByRole("button", { name: "Add to: Behavior" }).click();
  const choose = async (name: string, option: string, nth = 0): Promise<void> => {
    await page.getByRole("combobox", { name }).nth(nth).click();
    await page.getByRole("option", { name: option, exact: true }).click();
  };
  await page.getByRole("textbox", { name: "Id" }).fill("level");
  await page.getByRole("textbox", { name: "Name" }).fill("Level");
  await choose("Type of the value", "Number");
  await choose("Comes from", "Telemetry");
  await page.getByRole("textbox", { name: "Key" }).fill("level");
  await page.getByRole("button", { name: "Add to: Behavior" }).click();
  await page.getByRole("textbox", { name: "Id" }).nth(1).fill("push");
  await page.getByRole("textbox", { name: "Name" }).nth(1).fill("Push");
  await choose("Kind", "A value that it sets", 1);
  await choose("Type of the value", "Number", 1);
  await page.screenshot({ path: "test-results/screens/symbol-editor-behavior.png" });
  expect(await findings(page)).toEqual([]);

  await page.getByRole("tab", { name: "Properties" }).click();
  await page.getByRole("button", { name: "Add to: Properties" }).click();
  await page.getByRole("textbox", { name: "Id", exact: true }).fill("color");
  await page.getByRole("textbox", { name: "Name" }).fill("Color of the bar");
  await choose("Kind", "Color");
  await page.getByRole("textbox", { name: "To begin with" }).fill("#ff8800");

  // One element has its tag from a click on it, another from the list.
  await page.getByRole("tab", { name: "Elements" }).click();
  await page.frameLocator('iframe[title="Elements of the drawing"]').locator("circle").click();
  await expect(page.getByRole("combobox", { name: "Element" })).toHaveValue("3 circle");
  await page.getByRole("textbox", { name: "Its tag" }).fill("knob");
  await page.getByRole("button", { name: "Give it this tag" }).click();
  await expect(page.getByRole("combobox", { name: "Element" })).toHaveValue("3 circle – knob");
  await choose("Element", "1 rect");
  await expect(page.frameLocator('iframe[title="Elements of the drawing"]').locator("[data-chosen]")).toHaveAttribute("width", "198");
  await page.screenshot({ path: "test-results/screens/symbol-editor-elements.png" });
  expect(await findings(page)).toEqual([]);

  await page.getByRole("tab", { name: "Tags" }).click();
  const type = async (label: string, code: string): Promise<void> => {
    await page.getByRole("textbox", { name: label }).click();
    await page.keyboard.insertText(code);
  };
  await type("How “bar” is drawn", "element.width(ctx.values.level); element.fill(ctx.properties.color);");
  await page.getByRole("navigation", { name: "Tags" }).getByRole("button", { name: "knob" }).click();
  await type("What a click on “knob” does", "ctx.api.callAction(event, 'push', ctx.values.level + 1);");
  await expect(page.getByRole("navigation", { name: "Tags" }).getByRole("button", { name: /bar/ })).toContainText("drawn");
  await page.getByRole("button", { name: /^Run/ }).click();
  await page.getByRole("textbox", { name: "Level", exact: true }).fill("75");
  await expect(preview.locator("[tb\\:tag=bar]")).toHaveAttribute("width", "75");
  await expect(preview.locator("[tb\\:tag=bar]")).toHaveAttribute("fill", "#ff8800");
  await preview.getByRole("button", { name: "knob" }).click();
  await expect(page.getByText("A click asked for “push” with 76.")).toBeVisible();
  await page.screenshot({ path: "test-results/screens/symbol-editor.png" });
  expect(await findings(page)).toEqual([]);

  await page.getByRole("button", { name: /^Save Ctrl/ }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  await expect(page.getByRole("heading", { level: 1, name: "Level gauge" })).toBeVisible();
  const content = await contentOf(program, link);
  const metadata = JSON.parse(/<tb:metadata[^>]*><!\[CDATA\[([\s\S]*?)\]\]>/.exec(content)?.[1] ?? "") as object;
  expect(metadata).toMatchObject({
    title: "Level gauge",
    widgetSizeX: 2,
    widgetSizeY: 1,
    tags: [{ tag: "bar", stateRenderFunction: "element.width(ctx.values.level); element.fill(ctx.properties.color);" }, { tag: "knob", actions: { click: { actionFunction: "ctx.api.callAction(event, 'push', ctx.values.level + 1);" } } }],
    behavior: [{ id: "level", type: "value", valueType: "DOUBLE", defaultGetValueSettings: { action: "GET_TIME_SERIES", getTimeSeries: { key: "level" } } }, { id: "push", type: "action", valueType: "DOUBLE", defaultSetValueSettings: { action: "EXECUTE_RPC" } }],
    properties: [{ id: "color", type: "color", default: "#ff8800" }],
  });
  expect((await program.call<{ title: string }>("TENANT_ADMIN", `${link}/info`)).title).toBe("Level gauge");

  // A dashboard takes it as it is.
  await program.send("A1_TEST_TOKEN", { level: 33 });
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "With a symbol",
    configuration: {
      widgets: { s: { typeFullFqn: "system.scada_symbol", type: "rpc", config: { title: "Own symbol", showTitle: true, targetDevice: { type: "entity", entityAliasId: "a1" }, settings: { scadaSymbolUrl: `tb-image;${link}`, scadaSymbolObjectSettings: { behavior: {}, properties: {} } } } } },
      states: { default: { name: "d", root: true, layouts: { main: { widgets: { s: { col: 0, row: 0, sizeX: 8, sizeY: 6 } }, gridSettings: { columns: 24 } } } } },
      entityAliases: { a1: { id: "a1", alias: "a1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1" } } },
    },
  });
  await page.goto(`${program.url}/dashboards/${board.id.id}`);
  await expect(page.frameLocator('iframe[title="Own symbol"]').locator("[tb\\:tag=bar]")).toHaveAttribute("width", "33");
});

test("nobody's changes of a symbol are lost, and a broken drawing is not stored", async ({ page, program }) => {
  const link = await program.symbol("TENANT_ADMIN", "Shared", DRAWING.replace("><rect", `><tb:metadata xmlns=""><![CDATA[{"title":"Shared","custom":1,"tags":[],"behavior":[],"properties":[]}]]></tb:metadata><rect`));
  await logIn(page, program, "TENANT_ADMIN", `${link.replace("/api/images/", "/resources/scada-symbols/")}/edit`);
  await page.getByRole("textbox", { name: "Description" }).fill("mine");
  const theirs = new FormData();
  theirs.append("file", new File([DRAWING], "Shared.svg", { type: "image/svg+xml" }));
  await fetch(program.url + link, { method: "PUT", headers: { "X-Authorization": `Bearer ${await program.token("TENANT_ADMIN")}` }, body: theirs });
  await page.getByRole("button", { name: /^Save Ctrl/ }).click();
  await page.getByRole("dialog", { name: "Somebody else has changed this meanwhile" }).getByRole("button", { name: "Keep mine" }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  // What this editor doesn't know is kept.
  expect(await contentOf(program, link)).toMatch(/"custom": 1[\s\S]*"description": "mine"|"description": "mine"[\s\S]*"custom": 1/);

  await page.getByRole("tab", { name: "Drawing" }).click();
  const before = await contentOf(program, link);
  await page.getByRole("textbox", { name: "Drawing" }).click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText("<svg><g></svg>");
  await page.getByRole("button", { name: /^Save Ctrl/ }).click();
  await expect(page.getByText(/The drawing is no correct SVG/)).toBeVisible();
  expect(await contentOf(program, link)).toBe(before);
});

test("what behaviours and properties begin with is set without JSON, and the rest of them stays", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1500, height: 1300 });
  const metadata = {
    title: "Valve",
    tags: [],
    behavior: [{ id: "on", name: "On", type: "value", valueType: "BOOLEAN", own: 1, defaultGetValueSettings: { action: "EXECUTE_RPC", own: 2, executeRpc: { method: "getOn", own: 3 }, dataToValue: { type: "FUNCTION", compareToValue: true, dataToValueFunction: { body: "return data;", modules: { lib: "tb-resource;/api/resource/js_module/tenant/lib.js" } } } } }],
    properties: [{ id: "kind", name: "Kind of valve", type: "select", own: 4, items: [{ value: 1, label: "Ball" }, { value: 2, label: "Gate" }], default: 1 }],
  };
  const link = await program.symbol("TENANT_ADMIN", "Valve", DRAWING.replace("><rect", `><tb:metadata xmlns=""><![CDATA[${JSON.stringify(metadata)}]]></tb:metadata><rect`));
  await logIn(page, program, "TENANT_ADMIN", `${link.replace("/api/images/", "/resources/scada-symbols/")}/edit`);
  const choose = async (place: Locator, name: string, option: string): Promise<void> => {
    await place.getByRole("combobox", { name, exact: true }).click();
    await page.getByRole("option", { name: option, exact: true }).click();
  };

  await page.getByRole("tab", { name: "Behavior" }).click();
  await page.getByRole("button", { name: /^On A value that it shows/ }).click();
  const on = page.getByRole("region", { name: /^On/ });
  await on.getByRole("spinbutton", { name: "Wait at most (milliseconds)" }).or(on.getByRole("textbox", { name: "Wait at most (milliseconds)" })).fill("7000");
  await on.getByRole("textbox", { name: "Function of data" }).fill("return data.on;");
  await choose(on, "Is so when it equals: type", "Text");
  await on.getByRole("textbox", { name: "Is so when it equals", exact: true }).fill("RUN");
  await page.screenshot({ path: "test-results/screens/symbol-editor-get.png" });
  expect(await findings(page)).toEqual([]);

  await page.getByRole("button", { name: "Add to: Behavior" }).click();
  const added = page.getByRole("region", { name: /^(without a name|Alarm) / });
  await added.getByRole("textbox", { name: "Name", exact: true }).fill("Alarm");
  await added.getByRole("textbox", { name: "Id", exact: true }).fill("alarm");
  await choose(added, "Comes from", "Whether there are active alarms");
  await added.getByRole("combobox", { name: "Severities" }).press("ArrowDown");
  await page.getByRole("option", { name: "Critical", exact: true }).click();
  await page.keyboard.press("Escape");
  await added.getByRole("combobox", { name: "Types of alarms" }).or(added.getByRole("textbox", { name: "Types of alarms" })).fill("Leak");
  await page.keyboard.press("Enter");

  await page.getByRole("button", { name: "Add to: Behavior" }).click();
  const click = page.getByRole("region", { name: /^(without a name|Details) / });
  await click.getByRole("textbox", { name: "Name", exact: true }).fill("Details");
  await click.getByRole("textbox", { name: "Id", exact: true }).fill("details");
  await choose(click, "Kind", "An action of the widget");
  await choose(click, "What it does", "Opens a state");
  await click.getByRole("textbox", { name: "State", exact: true }).fill("details");
  await click.getByRole("checkbox", { name: "In a dialog" }).check();
  await click.getByRole("textbox", { name: "Title of the dialog" }).fill("All of it");
  await page.screenshot({ path: "test-results/screens/symbol-editor-action.png", fullPage: true });
  expect(await findings(page)).toEqual([]);

  await page.getByRole("tab", { name: "Properties" }).click();
  await page.getByRole("button", { name: /^Kind of valve/ }).click();
  await choose(page.getByRole("region", { name: /^Kind of valve/ }), "To begin with", "Gate");
  await page.getByRole("button", { name: "Add to: Properties", exact: true }).click();
  const group = page.getByRole("region", { name: /^(without a name|Look) / }).first();
  await group.getByRole("textbox", { name: "Name", exact: true }).fill("Look");
  await group.getByRole("textbox", { name: "Id", exact: true }).fill("look");
  await choose(group, "Kind", "Group of properties");
  await group.getByRole("button", { name: "Add to: Properties within" }).click();
  const within = group.getByRole("region");
  await within.getByRole("textbox", { name: "Name", exact: true }).fill("Unit of it");
  await within.getByRole("textbox", { name: "Id", exact: true }).fill("unit");
  await choose(within, "Kind", "Unit");
  await within.getByRole("combobox", { name: "To begin with" }).or(within.getByRole("textbox", { name: "To begin with" })).fill("°C");
  await page.keyboard.press("Escape");
  await within.getByRole("checkbox", { name: "One for each system of units" }).check();
  await within.getByLabel("Imperial", { exact: true }).fill("°F");
  await page.keyboard.press("Escape");
  await group.getByRole("button", { name: "Add to: Properties within" }).click();
  const font = group.getByRole("region").last();
  await font.getByRole("textbox", { name: "Name", exact: true }).fill("Font of it");
  await font.getByRole("textbox", { name: "Id", exact: true }).fill("font");
  await choose(font, "Kind", "Font");
  await font.getByLabel("Size", { exact: true }).fill("20");
  await choose(font, "Weight", "bold");
  await page.screenshot({ path: "test-results/screens/symbol-editor-properties.png", fullPage: true });
  expect(await findings(page)).toEqual([]);

  await page.getByRole("button", { name: /^Save Ctrl/ }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  const kept = JSON.parse(/<tb:metadata[^>]*><!\[CDATA\[([\s\S]*?)\]\]>/.exec(await contentOf(program, link))?.[1] ?? "") as object;
  expect(kept).toMatchObject({
    behavior: [
      { id: "on", own: 1, defaultGetValueSettings: { action: "EXECUTE_RPC", own: 2, executeRpc: { method: "getOn", own: 3, requestTimeout: 7000 }, dataToValue: { type: "FUNCTION", compareToValue: "RUN", dataToValueFunction: { body: "return data.on;", modules: { lib: "tb-resource;/api/resource/js_module/tenant/lib.js" } } } } },
      { id: "alarm", type: "value", valueType: "BOOLEAN", defaultGetValueSettings: { action: "GET_ALARM_STATUS", getAlarmStatus: { severityList: ["CRITICAL"], typeList: ["Leak"] } } },
      { id: "details", type: "widgetAction", defaultWidgetActionSettings: { type: "openDashboardState", targetDashboardStateId: "details", openInSeparateDialog: true, dialogTitle: "All of it" } },
    ],
    properties: [
      { id: "kind", type: "select", own: 4, default: 2 },
      {
        id: "look",
        type: "fieldset",
        properties: [
          { id: "unit", type: "units", default: { from: "°C", METRIC: "°C", IMPERIAL: "°F", HYBRID: "°C" } },
          { id: "font", type: "font", default: { family: "Roboto", size: 20, sizeUnit: "px", weight: "bold" } },
        ],
      },
    ],
  });
});

test("the address that ThingsBoard has for a symbol opens its editor, also when the page is loaded again", async ({ page, program }) => {
  const link = await program.symbol("TENANT_ADMIN", "Linked", DRAWING);
  const path = link.replace("/api/images/", "/resources/scada-symbols/");
  expect(path).toMatch(/\.svg$/);
  await logIn(page, program, "TENANT_ADMIN", path);
  await expect(page.getByRole("heading", { level: 1, name: "Linked" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { level: 1, name: "Linked" })).toBeVisible();
  await expect(page.getByRole("tab", { name: "Behavior" })).toBeVisible();
});
