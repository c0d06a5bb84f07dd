// The server's own map: drawn of one file by ranges, instead of pictures of elsewhere or where those don't come.

import type { Locator, Page } from "@playwright/test";
import { mapFile, type Area } from "./pmtiles";
import { expect, logIn, test, type Program } from "./program";

const WORLD: Area = { west: -180, south: -85, east: 180, north: 85 };
const LAND = { light: "#e2dfda", dark: "#1f1f1f" };
const WATER = { light: "#80deea", dark: "#31353f" };
const RED = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==", "base64");

const place = (name: string): object => ({ name, type: "attribute", label: name, settings: {} });
function widget(title: string, background: object): object {
  const settings = {
    mapType: "geoMap",
    layers: [background],
    useDefaultCenterPosition: true,
    defaultCenterPosition: "48,10",
    defaultZoomLevel: 4,
    markers: [{ dsType: "entity", dsEntityAliasId: "none", xKey: place("latitude"), yKey: place("longitude") }],
  };
  return { typeFullFqn: "system.map", config: { title, showTitle: true, settings, datasources: [] } };
}

async function board(program: Program, backgrounds: Record<string, object>): Promise<string> {
  const widgets = Object.fromEntries(Object.entries(backgrounds).map(([title, background]) => [title, widget(title, background)]));
  const places = Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: n * 12, row: 0, sizeX: 12, sizeY: 8 }]));
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Own map",
    configuration: {
      widgets,
      states: { default: { name: "d", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } },
      entityAliases: { none: { id: "none", alias: "none", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "There is none", resolveMultiple: true } } },
    },
  });
  return made.id.id;
}

/** Has the server have a map file; returns the ranges that are asked for, and the addresses of elsewhere. */
async function provide(page: Page, area: Area): Promise<{ ranges: string[]; elsewhere: string[] }> {
  const file = mapFile(area);
  const asked = { ranges: [] as string[], elsewhere: [] as string[] };
  await page.route("**/api/system/params", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), hasMapFile: true } });
  });
  await page.route("**/api/map/tiles.pmtiles", async (route) => {
    const { range = "", "x-authorization": token = "" } = await route.request().allHeaders();
    const [, first = "0", last = "0"] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? [];
    const part = file.subarray(Number(first), Number(last) + 1);
    asked.ranges.push(token.startsWith("Bearer ") ? range : "nobody's");
    const headers = { ETag: '"a"', "Content-Range": `bytes ${first}-${Number(first) + part.length - 1}/${file.length}` };
    await route.fulfill({ status: 206, headers, contentType: "application/vnd.pmtiles", body: part });
  });
  // No test asks the world for its tiles.
  await page.route(/^https:/, async (route) => {
    const url = new URL(route.request().url());
    asked.elsewhere.push(url.hostname);
    await (url.hostname === "tile.openstreetmap.org" ? route.fulfill({ contentType: "image/png", body: RED }) : route.abort());
  });
  return asked;
}

const region = (page: Page, name: string): Locator => page.getByRole("region", { name, exact: true });

/** The colours in the middle of the drawn tiles. */
async function colors(map: Locator): Promise<string[]> {
  const found = await map.locator("canvas.leaflet-tile-loaded").evaluateAll((tiles) =>
    (tiles as HTMLCanvasElement[])
      .filter(({ width }) => width > 0)
      .map((tile) => {
        const pixel = tile.getContext("2d")?.getImageData(tile.width / 2, tile.height / 2, 1, 1).data ?? [];
        return `#${[...pixel].slice(0, 3).map((part) => part.toString(16).padStart(2, "0")).join("")}`;
      }),
  );
  return [...new Set(found)].sort();
}

test("streets are drawn of the server's file, in the colours of the page, and nobody else is asked", async ({ page, program }) => {
  const asked = await provide(page, WORLD);
  const id = await board(program, { Streets: { provider: "openstreet", layerType: "OpenStreetMap.Mapnik" }, Google: { provider: "google", layerType: "roadmap", apiKey: "none" } });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const streets = region(page, "Streets");
  // A tile of the file covers four of the map, so that each of these is land or water alone.
  await expect.poll(() => colors(streets)).toEqual([WATER.light, LAND.light].sort());
  await expect(streets.locator(".leaflet-control-attribution")).toContainText("Protomaps © OpenStreetMap contributors");
  await expect(streets.getByRole("status")).toHaveCount(0);
  await expect(region(page, "Google").getByText("The chosen map needs a program of its own.")).toBeVisible();
  await expect.poll(() => colors(region(page, "Google"))).toEqual([WATER.light, LAND.light].sort());
  await page.screenshot({ path: "test-results/screens/own-map.png" });

  // The header with the directory, and the one tile that all are; never the whole file.
  expect(asked.ranges[0]).toBe("bytes=0-16383");
  expect(new Set(asked.ranges).size).toBe(2);
  expect(asked.ranges.every((range) => /^bytes=\d+-\d+$/.test(range))).toBe(true);
  expect(asked.elsewhere).toEqual([]);

  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(() => colors(streets)).toEqual([WATER.dark, LAND.dark].sort());
});

test("pictures that don't come are replaced, and those that settings name are shown beside the file", async ({ page, program }) => {
  const asked = await provide(page, WORLD);
  const id = await board(program, { Satellite: { provider: "openstreet", layerType: "Esri.WorldImagery" }, Chosen: { provider: "custom", tileUrl: "https://tile.openstreetmap.org/{z}/{x}/{y}.png" } });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const satellite = region(page, "Satellite");
  await expect(satellite.getByText("The map's pictures can't be loaded. This is the server's own map.")).toBeVisible();
  await expect.poll(() => colors(satellite)).toEqual([WATER.light, LAND.light].sort());
  await expect(region(page, "Chosen").locator("img.leaflet-tile-loaded").first()).toBeVisible();
  await expect(region(page, "Chosen").locator("canvas")).toHaveCount(0);
  expect(asked.elsewhere).toContain("server.arcgisonline.com");
});

test("what the file doesn't reach is shown by pictures", async ({ page, program }) => {
  await provide(page, { west: 5, south: 40, east: 15, north: 55 });
  const id = await board(program, { Streets: { provider: "openstreet" } });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${id}`);
  const streets = region(page, "Streets");
  await expect.poll(() => colors(streets)).toEqual([WATER.light, LAND.light].sort());
  const pictures = streets.locator("img.leaflet-tile-loaded");
  await expect(pictures).toHaveCount(0);
  // A map that is still moving takes no key, and a second one would go too far.
  const go = async (key: string, seen: Locator): Promise<void> => {
    await expect(streets.locator(".leaflet-pan-anim")).toHaveCount(0);
    await streets.getByRole("application").press(key);
    await expect(seen.first()).toBeVisible();
  };
  await go("ArrowRight", pictures);
  await expect(streets.locator("canvas")).toHaveCount(0);
  await go("ArrowLeft", streets.locator("canvas.leaflet-tile-loaded"));
  await expect.poll(() => colors(streets)).toEqual([WATER.light, LAND.light].sort());
});
