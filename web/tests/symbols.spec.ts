// Symbols of plants and values on pictures: drawn with what is stored, clicked, and kept from doing harm.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

const METADATA = {
  title: "Tank",
  widgetSizeX: 3,
  widgetSizeY: 3,
  stateRenderFunction: "ctx.svg.attr('data-drawn', 'yes');",
  tags: [
    { tag: "level", stateRenderFunction: "ctx.api.cssAnimate(element, 200).ease('linear').attr({ height: ctx.values.level }); element.fill(ctx.properties.color);" },
    { tag: "text", stateRenderFunction: "ctx.api.text(element, ctx.api.formatValue(ctx.values.level, 1, ctx.properties.units)); ctx.api.font(element, ctx.properties.font, '#222');" },
    { tag: "sign", stateRenderFunction: "ctx.api.icon(element, ctx.properties.icon, 12, '#123456');" },
    { tag: "valve", stateRenderFunction: "element.fill(ctx.values.open ? '#00aa00' : '#aa0000');", actions: { click: { actionFunction: "ctx.api.callAction(event, 'setOpen', !ctx.values.open);" } } },
    { tag: "flow", stateRenderFunction: "if (ctx.values.open && !ctx.api.connectorAnimation(element)) { ctx.api.connectorAnimate(element, 'M 0 95 L 100 95', 'M 100 95 L 0 95').flowAppearance(4, '#0000ff', 'round', 8, 4).duration(1).direction(true).play(); }" },
    {
      tag: "thief",
      stateRenderFunction: "let reached = 'nothing'; try { top.hacked = 1; reached = top.localStorage.length; } catch (error) {} element.attr('data-reached', String(reached)); fetch('/api/auth/user').then(() => element.attr('data-reached', 'network'), () => undefined);",
    },
  ],
  behavior: [
    { id: "level", name: "Level", type: "value", valueType: "DOUBLE", defaultGetValueSettings: { action: "GET_TIME_SERIES", getTimeSeries: { key: "level" }, defaultValue: 0 } },
    { id: "open", name: "Open", type: "value", valueType: "BOOLEAN", defaultGetValueSettings: { action: "GET_ATTRIBUTE", getAttribute: { key: "open", scope: "SERVER_SCOPE" }, dataToValue: { type: "NONE", compareToValue: true } } },
    { id: "setOpen", name: "Set open", type: "action", valueType: "BOOLEAN", defaultSetValueSettings: { action: "SET_ATTRIBUTE", setAttribute: { key: "open", scope: "SERVER_SCOPE" }, valueToData: { type: "VALUE" } } },
  ],
  properties: [
    { id: "color", name: "Color", type: "color", default: "#3388ff" },
    { id: "icon", name: "Icon", type: "icon", default: "mdi:gauge" },
    { id: "units", name: "Units", type: "units", default: "%" },
    { id: "font", name: "Font", type: "font", default: { family: "Roboto", size: 12, sizeUnit: "px" } },
  ],
};
const SYMBOL = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:tb="https://thingsboard.io/svg" viewBox="0 0 100 100" onload="top.hacked = 1"><tb:metadata xmlns=""><![CDATA[${JSON.stringify(METADATA)}]]></tb:metadata>
<script>top.hacked = 1</script><rect x="1" y="1" width="98" height="98" fill="none" stroke="#333"/><rect tb:tag="level" x="10" y="10" width="30" height="1"/><text tb:tag="text" x="45" y="40">–</text><circle tb:tag="valve" cx="75" cy="70" r="12"/><g tb:tag="flow"/><g tb:tag="sign"/><g tb:tag="thief"/><image href="https://example.org/spy.png"/></svg>`;
const PICTURE = "data:image/svg+xml;utf8," + encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><rect width="300" height="200" fill="#245"/></svg>');
const KEY = { name: "level", type: "timeseries", label: "Level", settings: {} };

const configuration = {
  widgets: {
    tank: {
      typeFullFqn: "system.scada_symbol",
      type: "rpc",
      config: { title: "Tank", showTitle: true, targetDevice: { type: "entity", entityAliasId: "a1" }, settings: { scadaSymbolContent: SYMBOL, scadaSymbolObjectSettings: { behavior: {}, properties: { color: "#ff8800" } } } },
    },
    labels: {
      typeFullFqn: "system.cards.label_widget",
      config: {
        title: "Labels",
        showTitle: true,
        settings: { backgroundImageUrl: PICTURE, labels: [{ pattern: "Level <b>${Level:1}</b><img src=x onerror='top.hacked = 1'>", x: 10, y: 10, font: { size: 12, color: "#ffee00" } }, { pattern: "${#1}", x: 50, y: 70, backgroundColor: "rgba(0,0,0,0.5)" }] },
        datasources: [{ type: "entity", entityAliasId: "a1", dataKeys: [KEY, { ...KEY, name: "note", label: "note" }] }],
      },
    },
  },
  states: { default: { name: "d", root: true, layouts: { main: { widgets: { tank: { col: 0, row: 0, sizeX: 8, sizeY: 8 }, labels: { col: 8, row: 0, sizeX: 12, sizeY: 8 } }, gridSettings: { columns: 24 } } } } },
  entityAliases: { a1: { id: "a1", alias: "a1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: false } } },
};

test("a symbol shows values, can be clicked, and reaches nothing", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 800 });
  await program.send("A1_TEST_TOKEN", { level: 40, note: "<img src=x onerror='top.hacked = 1'>" });
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Plant", configuration });
  const refused: string[] = [];
  page.on("requestfailed", (request) => request.url().includes("spy") && refused.push(request.failure()?.errorText ?? ""));
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const symbol = page.frameLocator('iframe[title="Tank"]');
  await expect(symbol.locator("svg[data-drawn]").first()).toBeVisible();
  await expect(symbol.locator("text")).toHaveText("40 %");
  await expect(symbol.locator('[tb\\:tag="level"]')).toHaveAttribute("fill", "#ff8800");
  await expect.poll(async () => Number(await symbol.locator('[tb\\:tag="level"]').getAttribute("height"))).toBeCloseTo(40, 1);
  await expect(symbol.locator('[tb\\:tag="sign"] path')).toHaveAttribute("fill", "#123456");
  await program.send("A1_TEST_TOKEN", { level: 62.5 });
  await expect(symbol.locator("text")).toHaveText("62.5 %");

  const valve = symbol.getByRole("button", { name: "valve" });
  await expect(valve).toHaveAttribute("fill", "#aa0000");
  await valve.press("Enter");
  await expect(valve).toHaveAttribute("fill", "#00aa00");
  await expect(symbol.locator('[tb\\:tag="flow"] path')).toHaveAttribute("stroke-dasharray", "8 4");
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/tenant/devices?deviceName=Test%20Device%20A1");
  const stored = await program.call<{ key: string; value: unknown }[]>("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${device.id.id}/values/attributes/SERVER_SCOPE`);
  expect(stored.find(({ key }) => key === "open")?.value).toBe(true);

  await expect(symbol.locator('[tb\\:tag="thief"]')).toHaveAttribute("data-reached", "nothing");
  const labels = page.getByRole("region", { name: "Labels" }).locator("[data-label]");
  await expect(labels.first()).toHaveText("Level 62.5");
  await expect(labels.nth(1)).toHaveText("<img src=x onerror='top.hacked = 1'>");
  expect(new Set(refused)).toEqual(new Set(["csp"]));
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  await page.screenshot({ path: "test-results/screens/symbols.png" });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.evaluate(() => localStorage.setItem("mantine-color-scheme-value", "dark"));
  await page.reload();
  await expect(symbol.locator("text")).toHaveText("62.5 %");
  await page.screenshot({ path: "test-results/screens/symbols-dark.png" });
});

test("what a symbol shows, does and looks like is set beside it", async ({ page, program }) => {
  await page.setViewportSize({ width: 1500, height: 1300 });
  await program.send("A1_TEST_TOKEN", { level: 40, other: 55 });
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Set", configuration });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}?edit=true`);
  await page.getByRole("button", { name: /^Tank: / }).click();
  const panel = page.getByRole("complementary", { name: "The chosen widget" });
  await panel.getByRole("button", { name: "Level", exact: true }).click();
  await panel.getByRole("region", { name: "Level", exact: true }).getByRole("textbox", { name: "Key" }).fill("other");
  await expect(page.frameLocator('iframe[title="Tank"]').locator("text")).toHaveText("55 %");
  await panel.getByRole("group", { name: "Properties" }).getByLabel("Size", { exact: true }).fill("9");
  await page.screenshot({ path: "test-results/screens/symbol-settings.png" });
  expect(await findings(page)).toEqual([]);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  const stored = await program.call<{ configuration: { widgets: { tank: { config: { settings: { scadaSymbolObjectSettings: object } } } } } }>("TENANT_ADMIN", `/api/dashboard/${board.id.id}`);
  expect(stored.configuration.widgets.tank.config.settings.scadaSymbolObjectSettings).toEqual({
    behavior: { level: { action: "GET_TIME_SERIES", getTimeSeries: { key: "other" }, defaultValue: 0 } },
    properties: { color: "#ff8800", icon: "mdi:gauge", units: "%", font: { family: "Roboto", size: 9, sizeUnit: "px" } },
  });
});
