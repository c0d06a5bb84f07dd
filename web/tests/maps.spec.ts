// Maps: things appear where they say they are and move live; texts of tenants are shown and don't run.

import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { expect, logIn, test, type Program } from "./program";

const AXE = readFileSync("node_modules/axe-core/axe.min.js", "utf8");

/** What axe finds wrong with the maps. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const runner = (window as unknown as { axe: { run: (what: string) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe;
    const { violations } = await runner.run("[data-placed], [role=region]");
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
  });
}

const PIXELS = "data:image/svg+xml;utf8," + encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="400" height="200"><rect width="400" height="200" fill="#cde"/><rect x="20" y="20" width="160" height="160" fill="#fff"/></svg>');
const place = (name: string, type = "timeseries"): object => ({ name, type, label: name, settings: {} });
const layer = (more: object = {}): object => ({ dsType: "entity", dsEntityAliasId: "vans", xKey: place("latitude"), yKey: place("longitude"), ...more });
const HOSTILE = "<img src=x onerror='top.hacked = 1'><b>Bold</b> ${note} <link-act name='more'>More</link-act>";

function widget(fqn: string, title: string, settings: object, more: object = {}): object {
  return { typeFullFqn: fqn, config: { title, showTitle: true, settings, datasources: [], ...more } };
}

const widgets: Record<string, object> = {
  globe: widget("system.map", "Globe", {
    mapType: "geoMap",
    layers: [{ label: "Nowhere", provider: "custom", tileUrl: "http://127.0.0.1:9/{z}/{x}/{y}.png" }],
    markers: [
      layer({
        groups: ["Vans"],
        additionalDataKeys: [place("note")],
        label: { show: true, type: "function", patternFunction: "return data.entityName + ' <i>' + (data.latitude > 50 ? 'north' : 'south') + '</i>';" },
        tooltip: { show: true, type: "pattern", pattern: HOSTILE, tagActions: [{ name: "more", type: "openDashboardState", targetDashboardStateId: "other" }] },
        markerShape: { shape: "markerShape1", size: 34, color: { type: "range", color: "#307FE5", rangeKey: place("latitude"), range: [{ from: 50, to: null, color: "#00ff00" }] } },
        edit: { enabledActions: ["add", "move", "remove"], attributeScope: "SERVER_SCOPE" },
      }),
    ],
    polygons: [layer({ polygonKey: place("area", "attribute"), fillType: "stripe" })],
    mapActionButtons: [{ label: "Elsewhere", color: "#c92a2a", action: { type: "openDashboardState", targetDashboardStateId: "other" } }],
  }),
  plan: widget("system.image_map", "Plan", { mapType: "image", imageSource: { sourceType: "image", url: PIXELS }, markers: [layer({ xKey: place("xPos"), yKey: place("yPos") })] }),
  many: widget("system.map", "Many", { mapType: "geoMap", markers: [layer({ dsEntityAliasId: "many", xKey: place("latitude", "attribute"), yKey: place("longitude", "attribute"), markerClustering: { enable: true } })] }),
  trip: widget("system.trip_map", "Trip", { mapType: "geoMap", trips: [layer({ showPoints: true })], tripTimeline: { showTimelineControl: true, timeStep: 1_000, timestampFormat: { format: "yyyy-MM-dd HH:mm:ss" } } }),
  old: widget(
    "system.maps_v2.openstreetmap",
    "Old",
    { latKeyName: "latitude", lngKeyName: "longitude", useColorFunction: true, colorFunction: "top.hacked = 1; return 'red';", useLabelFunction: true, labelFunction: "return tinycolor.mix('blue', 'red', data.latitude > 0 ? 100 : 0).toHexString();", label: "${entityName}" },
    { datasources: [{ type: "entity", entityAliasId: "vans", dataKeys: [place("latitude"), place("longitude")] }] },
  ),
};
const aliasOf = (id: string, name: string): object => ({ id, alias: id, filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: name, resolveMultiple: true } });
const places = Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: (n % 2) * 12, row: Math.floor(n / 2) * 8, sizeX: 12, sizeY: 8 }]));
const configuration = {
  widgets,
  states: {
    default: { name: "Maps", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } },
    other: { name: "Other ${entityName}", root: false, layouts: { main: { widgets: {}, gridSettings: { columns: 24 } } } },
  },
  entityAliases: { vans: aliasOf("vans", "Test Device A1"), many: aliasOf("many", "Parked") },
  timewindow: { selectedTab: 0, realtime: { timewindowMs: 300_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } },
};

async function prepare(program: Program): Promise<{ van: string; board: string }> {
  const now = Date.now();
  const route = Array.from({ length: 5 }, (_, n) => ({ ts: now - 50_000 + n * 10_000, values: { latitude: 48 + n * 0.1, longitude: 9 + n * 0.2 } }));
  await program.send("A1_TEST_TOKEN", route as unknown as Record<string, unknown>);
  await program.send("A1_TEST_TOKEN", { latitude: 48.5, longitude: 10, xPos: 0.25, yPos: 0.5, note: "<img src=x onerror='top.hacked = 1'>" });
  const van = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/tenant/devices?deviceName=Test%20Device%20A1");
  await program.call("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${van.id.id}/SERVER_SCOPE`, { area: [[48.2, 9.5], [48.8, 9.5], [48.8, 10.5], [48.2, 10.5]] }).catch(() => undefined);
  for (let n = 0; n < 4; n++) {
    const parked = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: `Parked ${n}`, type: "default" });
    await program.call("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${parked.id.id}/SERVER_SCOPE`, { latitude: n < 3 ? 48 + n * 1e-4 : 49, longitude: 9 }).catch(() => undefined);
  }
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Maps", configuration });
  return { van: van.id.id, board: board.id.id };
}

test("maps show and follow places, and foreign text and code stay harmless", async ({ page, program }) => {
  await page.setViewportSize({ width: 1400, height: 1900 });
  // No test asks the world for its tiles.
  await page.route(/^https:/, (route) => route.abort());
  const { board } = await prepare(program);
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const globe = region("Globe");
  const van = globe.locator(".leaflet-marker-icon");
  await expect(van).toHaveText("Test Device A1 south");
  await expect(van.locator("path")).toHaveAttribute("fill", "#307FE5");
  await expect(globe.getByText("The map's pictures can't be loaded.")).toBeVisible();
  await expect(globe.locator("path.leaflet-interactive")).toHaveAttribute("fill", /^url\(#map-fill/);
  await expect(region("Old").locator(".leaflet-marker-icon path")).toHaveAttribute("fill", "#FE7569");
  await expect(region("Old").locator(".leaflet-marker-icon")).toHaveText("#ff0000");
  await expect(region("Plan").locator(".leaflet-marker-icon")).toBeVisible();
  await expect(region("Many").getByRole("button", { name: "3 here. Zooms in." })).toBeVisible();
  await page.screenshot({ path: "test-results/screens/maps.png" });

  // A popup is cleaned, and its links do what the widget declares.
  await van.click();
  const popup = globe.locator(".leaflet-popup-content");
  await expect(popup.locator("b")).toHaveText("Bold");
  await expect(popup).toContainText("<img src=x");
  expect(await popup.locator("[onerror]").count()).toBe(0);

  const before = await van.boundingBox();
  await program.send("A1_TEST_TOKEN", { latitude: 50.5, longitude: 11 });
  await expect(van).toHaveText("Test Device A1 north");
  await expect(van.locator("path")).toHaveAttribute("fill", "#00ff00");
  expect((await van.boundingBox())?.y).not.toBe(before?.y);

  // Trips: the slider moves the marker back to where it was.
  const trip = region("Trip");
  await expect(trip.locator(".leaflet-marker-icon")).toBeVisible();
  const newest = await trip.locator(".leaflet-marker-icon").boundingBox();
  await trip.getByRole("slider", { name: "Moment" }).focus();
  await page.keyboard.press("Home");
  await expect(trip.locator("output")).toHaveText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  await expect(globe.getByRole("button", { name: "Elsewhere" })).toHaveCSS("color", "rgb(201, 42, 42)");
  await expect.poll(async () => (await trip.locator(".leaflet-marker-icon").boundingBox())?.y).toBeGreaterThan(newest?.y ?? Infinity);

  // The list leads to things without a pointer.
  await region("Many").getByRole("button", { name: "List", exact: true }).click();
  await region("Many").getByRole("textbox", { name: "Search on the map" }).fill("parked 3");
  await region("Many").getByRole("listitem").getByRole("button", { name: "Parked 3" }).press("Enter");
  await expect(region("Many").locator(".leaflet-popup-content")).toContainText("Parked 3");
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  await page.screenshot({ path: "test-results/screens/maps-after.png" });
  expect(await findings(page)).toEqual([]);

  await globe.getByRole("button", { name: "Groups" }).click();
  await page.getByRole("checkbox", { name: "Vans" }).click();
  await expect(van).toHaveCount(0);
  await page.getByRole("checkbox", { name: "Vans" }).click();
  await page.keyboard.press("Escape");
  await globe.getByRole("button", { name: "Show all" }).click();
  await van.click();
  await popup.getByRole("button", { name: "More" }).click();
  await expect(page).toHaveURL(/state=/);
});

test("markers of one place are spread by a click, and a trip keeps to the places that were told", async ({ page, program }) => {
  await page.route(/^https:/, (route) => route.abort());
  for (let n = 0; n < 3; n++) {
    const stacked = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: `Stacked ${n}`, type: "default" });
    await program.call("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${stacked.id.id}/SERVER_SCOPE`, { latitude: 48, longitude: 9 }).catch(() => undefined);
  }
  const now = Date.now();
  await program.send("A1_TEST_TOKEN", [48, 49].map((latitude, n) => ({ ts: now - 40_000 + n * 20_000, values: { latitude, longitude: 9 } })) as unknown as Record<string, unknown>);
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Stacked",
    configuration: {
      ...configuration,
      widgets: {
        stack: widget("system.map", "Stack", {
          mapType: "geoMap",
          mapPageSize: 2,
          markers: [layer({ dsEntityAliasId: "stacked", xKey: place("latitude", "attribute"), yKey: place("longitude", "attribute"), markerClustering: { enable: true } })],
          mapActionButtons: [{ label: "", icon: "mdi:map-marker", action: { type: "openDashboardState", targetDashboardStateId: "other" } }],
        }),
        trip: widget("system.trip_map", "Trip", { mapType: "geoMap", trips: [layer()], tripTimeline: { showTimelineControl: true, timeStep: 1_000, snapToRealLocation: true } }),
      },
      states: { ...configuration.states, default: { name: "Maps", root: true, layouts: { main: { widgets: { stack: places["globe"], trip: places["plan"] }, gridSettings: { columns: 24 } } } } },
      entityAliases: { ...configuration.entityAliases, stacked: aliasOf("stacked", "Stacked") },
    },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const stack = page.getByRole("region", { name: "Stack", exact: true });
  await expect(stack.getByText("2 of 3 entities are shown")).toBeVisible();
  await expect(stack.getByRole("button", { name: "Map marker" }).locator("svg")).toBeVisible();
  await stack.getByRole("button", { name: "2 here. Zooms in." }).click();
  const markers = stack.locator(".leaflet-marker-icon");
  await expect(markers).toHaveText([/Stacked/, /Stacked/]);
  const [one, other] = await Promise.all([0, 1].map((n) => markers.nth(n).boundingBox()));
  expect(Math.hypot((one?.x ?? 0) - (other?.x ?? 0), (one?.y ?? 0) - (other?.y ?? 0))).toBeGreaterThan(60);
  await markers.first().click();
  await expect(stack.locator(".leaflet-popup-content")).toContainText("Stacked");

  const trip = page.getByRole("region", { name: "Trip", exact: true });
  const marker = trip.locator(".leaflet-marker-icon");
  await trip.getByRole("slider", { name: "Moment" }).focus();
  await page.keyboard.press("Home");
  await expect.poll(async () => trip.locator("output").textContent()).not.toBe("");
  const start = await marker.boundingBox();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  expect((await marker.boundingBox())?.y).toBe(start?.y);
  await page.keyboard.press("End");
  await expect.poll(async () => (await marker.boundingBox())?.y).toBeLessThan(start?.y ?? 0);
});

test("a thing is placed on the plan, and its place is kept", async ({ page, program }) => {
  const kept = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "New thing", type: "default" });
  const settings = {
    mapType: "image",
    imageSource: { sourceType: "image", url: PIXELS },
    markers: [layer({ dsEntityAliasId: "new", xKey: place("xPos", "attribute"), yKey: place("yPos", "attribute"), edit: { enabledActions: ["add", "move", "remove"], attributeScope: "SERVER_SCOPE" } })],
  };
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Placing",
    configuration: { ...configuration, widgets: { plan: widget("system.image_map", "Plan", settings) }, entityAliases: { new: aliasOf("new", "New thing") }, states: { default: { name: "d", root: true, layouts: { main: { widgets: { plan: { col: 0, row: 0, sizeX: 24, sizeY: 12 } }, gridSettings: { columns: 24 } } } } } },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const plan = page.getByRole("region", { name: "Plan", exact: true });
  await expect(plan.locator("img.leaflet-image-layer")).toBeVisible();
  await plan.getByRole("button", { name: "Edit map" }).click();
  await plan.getByRole("combobox", { name: "Place something" }).click();
  await page.getByRole("option", { name: "New thing" }).click();
  await plan.getByRole("button", { name: "Take the middle of the map" }).click();
  await expect(plan.locator(".leaflet-marker-icon")).toBeVisible();
  const stored = (): Promise<{ key: string; value: unknown }[]> => program.call("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${kept.id.id}/values/attributes/SERVER_SCOPE`);
  expect((await stored()).find(({ key }) => key === "xPos")?.value).toBeCloseTo(0.5, 1);
  await plan.locator(".leaflet-marker-icon").click();
  await plan.getByRole("button", { name: "Take off the map" }).click();
  await expect(plan.locator(".leaflet-marker-icon")).toHaveCount(0);
  expect((await stored()).some(({ key }) => key === "xPos")).toBe(false);
});

test("areas with holes and parts are reshaped", async ({ page, program }) => {
  await page.setViewportSize({ width: 1300, height: 900 });
  const field = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Field", type: "default" });
  const outer = [[0.05, 0.1], [0.05, 0.9], [0.55, 0.9], [0.55, 0.1]];
  const hole = [[0.2, 0.4], [0.2, 0.6], [0.4, 0.6]];
  const far = [[0.7, 0.2], [0.7, 0.8], [0.95, 0.8], [0.95, 0.2]];
  await program.call("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${field.id.id}/SERVER_SCOPE`, { area: [[outer, hole], [far]] }).catch(() => undefined);
  const stored = async (): Promise<number[][][][]> => (await program.call<{ key: string; value: number[][][][] }[]>("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${field.id.id}/values/attributes/SERVER_SCOPE`)).find(({ key }) => key === "area")?.value ?? [];
  const settings = {
    mapType: "image",
    imageSource: { sourceType: "image", url: PIXELS },
    polygons: [layer({ dsEntityAliasId: "field", polygonKey: place("area", "attribute"), edit: { enabledActions: ["edit", "move"], attributeScope: "SERVER_SCOPE" } })],
  };
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Areas",
    configuration: { ...configuration, widgets: { plan: widget("system.image_map", "Plan", settings) }, entityAliases: { field: aliasOf("field", "Field") }, states: { default: { name: "d", root: true, layouts: { main: { widgets: { plan: { col: 0, row: 0, sizeX: 24, sizeY: 12 } }, gridSettings: { columns: 24 } } } } } },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const plan = page.getByRole("region", { name: "Plan", exact: true });
  await expect(plan.locator("path.leaflet-interactive")).toBeVisible();
  await plan.getByRole("button", { name: "Edit map" }).click();
  const picture = await plan.locator("img.leaflet-image-layer").boundingBox();
  const at = (x: number, y: number): [number, number] => [(picture?.x ?? 0) + x * (picture?.width ?? 0), (picture?.y ?? 0) + y * (picture?.height ?? 0)];
  await page.mouse.click(...at(0.8, 0.5));
  const corners = plan.getByTitle("Corner; double click removes it");
  const holes = plan.getByTitle("Corner of a hole; double click removes it");
  await expect(corners).toHaveCount(8);
  await expect(holes).toHaveCount(3);
  await page.screenshot({ path: "test-results/screens/maps-hole.png" });
  const drag = async (from: [number, number], to: [number, number]): Promise<void> => {
    await page.mouse.move(...at(...from));
    await page.mouse.down();
    await page.mouse.move(...at(...to), { steps: 4 });
    await page.mouse.up();
  };
  // What was dragged stays in hand, and the next drag begins from it, stored or not.
  await drag([0.4, 0.6], [0.45, 0.7]);
  await drag([0.45, 0.7], [0.45, 0.75]);
  await expect.poll(async () => (await stored())[0]?.[1]?.[2]?.map((value) => Math.round(value * 100) / 100)).toEqual([0.45, 0.75]);
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  await page.route("**/SERVER_SCOPE", async (route) => {
    const response = await route.fetch();
    await answered;
    await route.fulfill({ response });
  });
  await drag([0.2, 0.4], [0.15, 0.4]);
  await expect.poll(async () => (await stored())[0]?.[1]?.[0]?.map((value) => Math.round(value * 100) / 100)).toEqual([0.15, 0.4]);
  expect((await stored())[0]?.[0]).toEqual(outer);
  expect((await stored())[1]?.[0]).toEqual(far);

  // An answer that comes late takes nothing out of hand.
  await page.mouse.click(...at(0.8, 0.5));
  const late = page.waitForResponse("**/SERVER_SCOPE");
  answer();
  await (await late).finished();
  await page.unroute("**/SERVER_SCOPE");

  // The last three corners of a hole go together; the area around it stays.
  await expect(holes).toHaveCount(3);
  await holes.first().dblclick();
  await expect.poll(stored).toEqual([[outer], [far]]);
  await page.mouse.click(...at(0.8, 0.5));
  await expect(corners).toHaveCount(8);
  await drag([0.5, 0.5], [0.52, 0.5]);
  await expect.poll(async () => Math.round(((await stored())[1]?.[0]?.[0]?.[0] ?? 0) * 100)).toBe(72);
  expect(await findings(page)).toEqual([]);
});
