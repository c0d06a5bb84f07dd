import { describe, expect, test } from "vitest";
import { readMap, type TileChoice } from "./model";
import { backgroundOf, tilesOf } from "./providers";

const choice = (layer: object): TileChoice => readMap("system.map", { settings: { mapType: "geoMap", layers: [layer] } }).tiles[0] as TileChoice;
const isOwn = (layer: object, failed = false, covers: boolean | undefined = true): string => backgroundOf(tilesOf(choice(layer)), failed, covers);

describe("the server's own map", () => {
  test("stands for OpenStreetMap's streets, and for streets that need a program of their own", () => {
    for (const layer of [
      {},
      { provider: "openstreet", layerType: "OpenStreetMap.Mapnik" },
      { provider: "openstreet", layerType: "OpenStreetMap.HOT" },
      { provider: "openfreemap", layerType: "positron" },
      { provider: "google", layerType: "roadmap", apiKey: "a" },
      { provider: "tencent", layerType: "Tencent.Normal" },
      { provider: "here", layerType: "HEREv3.normalDay" },
      { provider: "custom", tileUrl: "https://example.com/style.json" },
    ]) {
      expect(isOwn(layer), JSON.stringify(layer)).toBe("own");
    }
  });

  test("leaves other pictures alone, as long as they come", () => {
    for (const layer of [
      { provider: "openstreet", layerType: "Esri.WorldImagery" },
      { provider: "openstreet", layerType: "Esri.WorldStreetMap" },
      { provider: "openstreet", layerType: "CartoDB.DarkMatter" },
      { provider: "google", layerType: "satellite" },
      { provider: "google", layerType: "terrain" },
      { provider: "tencent", layerType: "Tencent.Satellite" },
      { provider: "here", layerType: "HEREv3.normalDay", apiKey: "a" },
      { provider: "custom", tileUrl: "https://example.com/{z}/{x}/{y}.png" },
    ]) {
      expect(isOwn(layer), JSON.stringify(layer)).toBe("pictures");
      expect(isOwn(layer, true), JSON.stringify(layer)).toBe("own");
    }
  });

  test("is waited for only where it comes first, and is not drawn where it doesn't reach", () => {
    const streets = {};
    const satellite = { provider: "google", layerType: "satellite" };
    expect(backgroundOf(tilesOf(choice(streets)), false, undefined)).toBe("wait");
    expect(backgroundOf(tilesOf(choice(satellite)), false, undefined)).toBe("pictures");
    expect(backgroundOf(tilesOf(choice(satellite)), true, undefined)).toBe("pictures");
    expect(isOwn(streets, false, false)).toBe("pictures");
    expect(isOwn(satellite, true, false)).toBe("pictures");
  });
});

test("what needs a program of its own gets the nearest pictures", () => {
  const near = (layer: object): unknown[] => {
    const { url, approximated } = tilesOf(choice(layer));
    return [new URL(url.replace("{s}.", "")).hostname, approximated];
  };
  expect(near({ provider: "google", layerType: "hybrid" })).toEqual(["server.arcgisonline.com", true]);
  expect(near({ provider: "openfreemap", layerType: "positron" })).toEqual(["basemaps.cartocdn.com", true]);
  expect(near({ provider: "openfreemap", layerType: "bright" })).toEqual(["tile.openstreetmap.org", true]);
  expect(near({ provider: "openstreet", layerType: "CartoDB.Positron" })).toEqual(["basemaps.cartocdn.com", undefined]);
});
