// Maps and old types of widgets are set by forms beside them: what is set is drawn at once, and kept under ThingsBoard's names.

import type { Locator, Page } from "@playwright/test";
import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

interface Board {
  id: { id: string };
  configuration: { widgets: Record<string, { config: { settings: Record<string, unknown>; datasources: unknown[] } }> };
}

const PIXEL = '<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256"><rect width="256" height="256" fill="#cde"/></svg>';
const ALIASES = { a: { id: "a", alias: "Pumps", filter: { type: "deviceType", deviceTypes: ["map pump"], resolveMultiple: true } } };

async function open(page: Page, program: Program, widget: object): Promise<{ id: string; panel: Locator; drawn: Locator }> {
  const places = { w: { col: 0, row: 0, sizeX: 24, sizeY: 10 } };
  const configuration = { widgets: { w: widget }, entityAliases: ALIASES, states: { default: { name: "One", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } } };
  const { id } = await program.call<Board>("TENANT_ADMIN", "/api/dashboard", { title: "Forms of widgets", configuration });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id.id}?edit=true`);
  await page.getByRole("button", { name: /^W: / }).click();
  return { id: id.id, panel: page.getByRole("complementary", { name: "The chosen widget" }), drawn: page.getByRole("region", { name: "W" }) };
}

async function choose(page: Page, within: Locator, name: string, option: string): Promise<void> {
  await within.getByRole("combobox", { name, exact: true }).first().click();
  await page.getByRole("option", { name: option, exact: true }).click();
}

async function saved(page: Page, program: Program, id: string): Promise<{ settings: Record<string, unknown>; datasources: unknown[] }> {
  await page.getByRole("button", { name: "Save", exact: true }).first().click();
  await expect(page.getByText("Nothing to save")).toBeVisible();
  const { configuration } = await program.call<Board>("TENANT_ADMIN", `/api/dashboard/${id}`);
  return configuration.widgets["w"]?.config ?? { settings: {}, datasources: [] };
}

/** A device with a place as telemetry; returns its access token. */
async function pump(program: Program, name: string, type: string, values: Record<string, unknown>): Promise<string> {
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name, type });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${id.id}/credentials`);
  await program.send(credentialsId, values);
  return credentialsId;
}

/** Names a key that has to be, and says that it is telemetry. */
async function nameKey(page: Page, layer: Locator, label: string, name: string): Promise<void> {
  const key = layer.getByRole("group", { name: label, exact: true });
  await choose(page, key, "Kind", "Telemetry");
  await key.getByLabel(label, { exact: true }).fill(name);
  await page.keyboard.press("Escape");
}

test("markers and a background are set by a form, and the map follows", async ({ page, program }) => {
  test.setTimeout(240_000);
  await page.setViewportSize({ width: 1400, height: 1000 });
  await page.route(/^https:/, (route) => (route.request().url().startsWith("https://tiles.example/") ? route.fulfill({ contentType: "image/svg+xml", body: PIXEL }) : route.abort()));
  await pump(program, "Pump one", "map pump", { lat: 48.1, lon: 11.5, temperature: 21.46 });
  const { id, panel, drawn } = await open(page, program, { typeFullFqn: "system.map", type: "latest", config: { title: "W", settings: { strange: { kept: true } }, datasources: [] } });
  await expect(panel.getByRole("heading", { name: "Settings" })).toBeVisible();

  const backgrounds = panel.getByRole("group", { name: "Backgrounds", exact: true });
  await backgrounds.getByRole("button", { name: /OpenStreetMap/ }).click();
  await choose(page, backgrounds, "Provider", "Address of tiles");
  await backgrounds.getByRole("textbox", { name: "Address of the tiles" }).fill("https://tiles.example/{z}/{x}/{y}.png");
  await expect(drawn.locator('img.leaflet-tile[src^="https://tiles.example/"]').first()).toBeAttached();

  const layers = panel.getByRole("group", { name: "Markers", exact: true });
  await layers.getByRole("button", { name: "Add to: Markers" }).click();
  await choose(page, layers, "Data of", "Pumps");
  await nameKey(page, layers, "Key of the latitude", "lat");
  await nameKey(page, layers, "Key of the longitude", "lon");
  const marker = drawn.locator(".leaflet-marker-icon");
  await expect(marker).toHaveText("Pump one");
  await expect(marker.locator("path")).toHaveAttribute("fill", "#307FE5");

  await layers.getByRole("button", { name: "Add a key" }).click();
  const more = layers.getByRole("group", { name: "New key" });
  await choose(page, more, "Kind", "Telemetry");
  await more.getByLabel("Key", { exact: true }).fill("temperature");
  await page.keyboard.press("Escape");
  await layers.getByRole("textbox", { name: "Pattern", exact: true }).first().fill("${entityName}: ${temperature:1} °C");
  await expect(marker).toHaveText("Pump one: 21.5 °C");

  // The colour follows the value.
  await choose(page, layers, "Comes from", "By ranges of the value");
  const rangeKey = layers.getByRole("group", { name: "Key of the value", exact: true });
  await choose(page, rangeKey, "Kind", "Telemetry");
  await rangeKey.getByLabel("Key of the value", { exact: true }).fill("temperature");
  await page.keyboard.press("Escape");
  const ranges = layers.getByRole("group", { name: "Ranges with their colors", exact: true });
  await ranges.getByRole("button", { name: "Add to: Ranges with their colors" }).click();
  await ranges.getByLabel("From", { exact: true }).fill("20");
  await ranges.getByLabel("Color", { exact: true }).fill("#00aa00");
  await expect(marker.locator("path")).toHaveAttribute("fill", /^#00aa00/i);
  // The picker that opens below a colour shuts when the field is left.
  await page.keyboard.press("Tab");
  await expect(page.getByRole("slider")).toHaveCount(0);
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/map_form.png" });

  await layers.getByRole("textbox", { name: "Pattern", exact: true }).nth(1).fill("<b>${entityName}</b> is here");
  const { settings, datasources } = await saved(page, program, id);
  expect(datasources).toEqual([]);
  expect(settings).toMatchObject({
    strange: { kept: true },
    mapType: "geoMap",
    layers: [{ provider: "custom", tileUrl: "https://tiles.example/{z}/{x}/{y}.png" }],
    markers: [
      {
        dsType: "entity",
        dsEntityAliasId: "a",
        xKey: { name: "lat", type: "timeseries" },
        yKey: { name: "lon", type: "timeseries" },
        additionalDataKeys: [{ name: "temperature", label: "temperature", type: "timeseries" }],
        label: { show: true, type: "pattern", pattern: "${entityName}: ${temperature:1} °C" },
        tooltip: { show: true, pattern: "<b>${entityName}</b> is here", trigger: "click", autoclose: true },
        markerType: "shape",
        markerShape: { shape: "markerShape1", size: 34, color: { type: "range", rangeKey: { name: "temperature", type: "timeseries" }, range: [{ from: 20 }] } },
        click: { type: "doNothing" },
        edit: { enabledActions: [], attributeScope: "SERVER_SCOPE" },
      },
    ],
  });
  // While it is edited nothing in it can be clicked.
  await page.getByRole("button", { name: "Done", exact: true }).click();
  await marker.click();
  await expect(drawn.locator(".leaflet-popup-content")).toHaveText("Pump one is here");
});

test("a map that was made of a source gets its layer, which can be set", async ({ page, program }) => {
  test.setTimeout(180_000);
  await page.route(/^https:/, (route) => route.abort());
  await pump(program, "Pump two", "map pump two", { latitude: 48.2, longitude: 11.7 });
  const [device] = (await program.call<{ data: { id: { id: string } }[] }>("TENANT_ADMIN", "/api/tenant/devices?pageSize=1&page=0&textSearch=Pump%20two")).data;
  const { id, panel, drawn } = await open(page, program, { typeFullFqn: "system.map", type: "latest", config: { title: "W", settings: {}, datasources: [{ type: "device", deviceId: device?.id.id, dataKeys: [] }] } });
  const marker = drawn.locator(".leaflet-marker-icon");
  await expect(marker).toHaveText("Pump two");
  const layers = panel.getByRole("group", { name: "Markers", exact: true });
  await layers.getByRole("button", { name: /One device/ }).click();
  await choose(page, layers, "Marker", "Icon");
  await expect(layers.getByLabel("Icon", { exact: true })).toHaveValue("mdi:lightbulb-on");
  await layers.getByRole("checkbox", { name: "Show a label" }).click();
  await expect(marker).toBeVisible();
  await expect(marker).toHaveText("");
  const { settings, datasources } = await saved(page, program, id);
  expect(datasources).toEqual([]);
  // The device has no such attribute, so that telemetry is what has its place.
  expect(settings["markers"]).toMatchObject([{ dsType: "device", dsDeviceId: device?.id.id, xKey: { name: "latitude", type: "timeseries" }, yKey: { name: "longitude", type: "timeseries" }, markerType: "icon", label: { show: false } }]);
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await expect(marker).toHaveText("Pump two");
});

test("an old type has the form of its schema", async ({ page, program }) => {
  test.setTimeout(120_000);
  const settingsSchema = JSON.stringify({
    schema: {
      type: "object",
      properties: {
        word: { title: "Word of greeting", type: "string", default: "Hello" },
        loud: { title: "Loud", type: "boolean", default: false },
        sign: { title: "Sign at the end", type: "string", default: "!" },
        names: { title: "Names", type: "array", items: { type: "object", properties: { name: { title: "Name of one", type: "string" } } } },
        matrix: { title: "Matrix", type: "array", items: { type: "array", items: { type: "number" } } },
      },
    },
    form: ["word", "loud", { key: "sign", condition: "model.loud === true" }, { key: "names", items: ["names[].name"] }, "matrix"],
  });
  await program.call("TENANT_ADMIN", "/api/widgetType", {
    name: "Greeting",
    fqn: "greeting",
    descriptor: {
      type: "latest", sizeX: 6, sizeY: 3, resources: [], templateHtml: "<p id='said'></p>", templateCss: "", settingsSchema, dataKeySettingsSchema: "{}", defaultConfig: "{}",
      controllerScript: "self.onInit = self.onDataUpdated = function () { const s = self.ctx.settings; self.ctx.$container[0].querySelector('#said').textContent = (s.word || 'nothing') + (s.names || []).map((one) => ' ' + one.name).join(',') + (s.loud ? s.sign : ''); };",
    },
  });
  const { id, panel, drawn } = await open(page, program, { typeFullFqn: "tenant.greeting", type: "latest", config: { title: "W", settings: { strange: 7 }, datasources: [] } });
  const said = drawn.frameLocator("iframe").locator("#said");
  await expect(said).toHaveText("nothing");
  const word = panel.getByRole("textbox", { name: "Word of greeting" });
  await expect(word).toHaveValue("Hello");
  await word.fill("Welcome");
  await expect(said).toHaveText("Welcome");
  await expect(panel.getByRole("textbox", { name: "Sign at the end" })).toHaveCount(0);
  await panel.getByRole("checkbox", { name: "Loud" }).click();
  await panel.getByRole("textbox", { name: "Sign at the end" }).fill("!!");
  await expect(said).toHaveText("Welcome!!");
  await panel.getByRole("button", { name: "Add to: Names" }).click();
  await panel.getByRole("textbox", { name: "Name of one" }).fill("Ada");
  await expect(said).toHaveText("Welcome Ada!!");
  await panel.getByRole("textbox", { name: "Matrix" }).fill("[[1, 2], [3]]");
  expect(await findings(page)).toEqual([]);
  const { settings } = await saved(page, program, id);
  expect(settings).toEqual({ strange: 7, word: "Welcome", loud: true, sign: "!!", names: [{ name: "Ada" }], matrix: [[1, 2], [3]] });
});

test("a map of an old dashboard is set by a form, and keeps its old names", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.route(/^https:/, (route) => route.fulfill({ contentType: "image/svg+xml", body: PIXEL }));
  await pump(program, "Pump old", "map pump", { latitude: 48.1, longitude: 11.5 });
  const dataKeys = ["latitude", "longitude"].map((name) => ({ name, label: name, type: "timeseries", settings: {} }));
  const { id, panel, drawn } = await open(page, program, { typeFullFqn: "system.maps_v2.openstreetmap", type: "latest", config: { title: "W", settings: { provider: "openstreet-map", strange: { kept: true } }, datasources: [{ type: "entity", entityAliasId: "a", dataKeys }] } });
  const marker = drawn.locator(".leaflet-marker-icon").filter({ hasText: "Pump old" });
  await expect(marker).toBeVisible();
  await panel.getByRole("textbox", { name: "Pattern", exact: true }).first().fill("This is ${entityName}");
  await expect(marker).toHaveText("This is Pump old");
  await choose(page, panel, "Provider", "HERE");
  await panel.getByRole("textbox", { name: "API key" }).fill("secret");
  await choose(page, panel, "Style", "Streets by night");
  expect(await findings(page)).toEqual([]);
  const { settings } = await saved(page, program, id);
  expect(settings).toEqual({ provider: "here", mapProviderHere: "HERE.normalNight", credentials: { apiKey: "secret" }, label: "This is ${entityName}", strange: { kept: true } });
});
