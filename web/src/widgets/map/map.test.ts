import { describe, expect, test } from "vitest";
import type { EntityValues } from "@/dashboard/source";
import { readKey } from "@/dashboard/model";
import { marked } from "marked";
import { escapeMarkdown, fillMarkup, formatted } from "./formatted";
import { bearing, mapRings, placeAt, placeOf, readCircle, readLine, ringsOf, spreadOffsets, stepsOf, withRings, type Nested, type Place } from "./geometry";
import { isOwnImage, ItemMaker } from "./items";
import { isPicture } from "./markerElement";
import { readMap } from "./model";
import { withActionTags } from "./markup";

const entity = (latest: Record<string, string>, points: Record<string, [number, string][]> = {}): EntityValues => ({
  id: { entityType: "DEVICE", id: "d1" },
  name: "Van <1>",
  latest: new Map(Object.entries(latest).map(([key, value]) => [key, { ts: 1, value }])),
  points: new Map(Object.entries(points).map(([key, all]) => [key, all.map(([ts, value]) => ({ ts, value }))])),
});
const key = (name: string, type = "attribute") => readKey({ name, type, label: name });

describe("settings", () => {
  const layer = (more: object): object => ({ dsType: "entity", dsEntityAliasId: "a", xKey: { name: "lat", type: "attribute", label: "latitude" }, yKey: { name: "lon", type: "attribute", label: "longitude" }, ...more });

  test("layers of the same entities share a source with all their keys", () => {
    const map = readMap("system.map", {
      settings: { mapType: "geoMap", markers: [layer({}), layer({ dsEntityAliasId: "b" })], polygons: [layer({ polygonKey: { name: "area", type: "attribute", label: "area" } })] },
    });
    expect(map.sources.map((source) => [source.aliasId, source.dataKeys.map(({ name }) => name)])).toEqual([["a", ["lat", "lon", "area"]], ["b", ["lat", "lon"]]]);
    expect(map.layers.map((one) => [one.kind, one.source])).toEqual([["markers", 0], ["markers", 1], ["polygons", 0]]);
  });

  test("trips ask for points of their places and for the latest of the rest", () => {
    const series = { name: "lat", type: "timeseries", label: "latitude" };
    const map = readMap("system.trip_map", { settings: { trips: [layer({ xKey: series, yKey: { ...series, name: "lon" }, additionalDataKeys: [{ name: "driver", type: "attribute", label: "driver" }] })] } });
    expect(map.sources[0]?.dataKeys.map(({ name }) => name)).toEqual(["lat", "lon"]);
    expect(map.sources[0]?.latestKeys.map(({ name }) => name)).toEqual(["driver"]);
  });

  test("actions of layers get names, and a map without layers takes the chosen source", () => {
    const map = readMap("system.map", { settings: { markers: [layer({ click: { type: "openDashboardState", targetDashboardStateId: "x" } })] } });
    expect(Object.keys(map.actions)).toEqual(["map markers 0 click"]);
    const plain = readMap("system.map", { settings: {}, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [] }] });
    expect(plain.sources[0]?.dataKeys.map(({ name, type }) => `${type} ${name}`)).toEqual(["attribute latitude", "timeseries latitude", "attribute longitude", "timeseries longitude"]);
  });

  test("old maps are converted: markers, areas, tiles, actions", () => {
    const map = readMap("system.maps_v2.openstreetmap", {
      settings: { latKeyName: "lat", lngKeyName: "lon", useColorFunction: true, colorFunction: "return 'red';", showPolygon: true, polygonKeyName: "area", polygonColor: "#ff0000", polygonOpacity: 0.4, useCustomProvider: true, customProviderTileUrl: "https://t/{z}/{x}/{y}.png", useClusterMarkers: true, draggableMarker: true, disableScrollZooming: true },
      datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [{ name: "lat", label: "lat", type: "timeseries" }, { name: "lon", label: "lon", type: "timeseries" }, { name: "area", label: "area", type: "attribute" }] }],
      actions: { markerClick: [{ type: "openDashboardState" }], tooltipAction: [{ name: "delete", type: "openURL" }] },
    });
    const [markers, areas] = map.layers;
    expect([markers?.kind, markers?.marker.color.body, markers?.clustering.enabled, [...(markers?.edit.actions ?? [])].length]).toEqual(["markers", "return 'red';", true, 4]);
    expect([areas?.kind, areas?.shape.fill.color, areas?.shape.fillOpacity]).toEqual(["polygons", "#ff0000", 0.4]);
    expect(map.tiles[0]).toMatchObject({ provider: "custom", tileUrl: "https://t/{z}/{x}/{y}.png" });
    expect(Object.keys(map.actions).sort()).toEqual(["map markers 0 click", "map markers 0 tag", "map polygons 0 tag"]);
    expect(map.zoomBy.scroll).toBe(false);
  });

  test("old pictures and trips too", () => {
    const sources = [{ type: "entity", entityAliasId: "a", dataKeys: ["xPos", "yPos", "latitude", "longitude"].map((name) => ({ name, label: name, type: "timeseries" })) }];
    expect(readMap("system.maps_v2.image_map", { settings: { mapImageUrl: "tb-image;/api/images/tenant/a" }, datasources: sources })).toMatchObject({ kind: "image", image: { url: "tb-image;/api/images/tenant/a" } });
    const trip = readMap("system.maps_v2.test", { settings: { normalizationStep: 5_000, showPoints: true }, datasources: sources });
    expect([trip.layers[0]?.kind, trip.timeline?.step, trip.layers[0]?.trip.showPoints]).toEqual(["trips", 5_000, true]);
    expect(readMap("system.maps_v2.route_map", { settings: {}, datasources: sources }).timeline).toBeUndefined();
  });
});

test("pictures of areas, marks along paths, buttons and moments look as stored", () => {
  const map = readMap("system.trip_map", {
    settings: {
      polygons: [{ dsType: "entity", dsEntityAliasId: "a", fillType: "image", fillImage: { image: "x", angle: 45, scale: 2 } }],
      trips: [{ dsType: "entity", dsEntityAliasId: "a", pathDecoratorSymbol: "dash" }],
      mapActionButtons: ["#0000008a", "#c92a2a"].map((color) => ({ label: color, color, action: { type: "openURL" } })),
      tripTimeline: { showTimelineControl: true, timestampFormat: { format: "HH:mm" } },
    },
  });
  const [trip, area] = map.layers;
  expect([trip?.trip.dashes, area?.shape.fillImage.angle, area?.shape.fillImage.scale]).toEqual([true, 45, 2]);
  expect(map.buttons.map(({ color }) => color)).toEqual([undefined, "#c92a2a"]);
  expect(map.timeline?.timeFormat).toEqual({ format: "HH:mm" });
});

describe("geometry", () => {
  test("only what has a valid place has one", () => {
    const layer = { x: [key("lat"), key("lat", "timeseries")], y: [key("lon"), key("lon", "timeseries")] };
    expect(placeOf(layer, entity({ "ATTRIBUTE/lat": "50.1", "ATTRIBUTE/lon": "8.6" }), "geo")).toEqual([50.1, 8.6]);
    expect(placeOf(layer, entity({ "ATTRIBUTE/lat": "", "TIME_SERIES/lat": "1", "TIME_SERIES/lon": "2" }), "geo")).toEqual([1, 2]);
    expect(placeOf(layer, entity({ "ATTRIBUTE/lat": "95", "ATTRIBUTE/lon": "8.6" }), "geo")).toBeUndefined();
    expect(placeOf(layer, entity({ "ATTRIBUTE/lat": "x", "ATTRIBUTE/lon": "8.6" }), "geo")).toBeUndefined();
  });

  test("shapes are read from text, and nonsense is none", () => {
    expect(readLine("[[1,2],[3,4]]", true)).toEqual([[1, 2], [1, 4], [3, 4], [3, 2]]);
    expect(readLine("[[1,2],[3,4],[5,6]]", true)).toEqual([[1, 2], [3, 4], [5, 6]]);
    expect(readLine("[[[1,2],[3,4],[5,6]],[[2,2],[2,3],[3,3]]]", true)).toHaveLength(2);
    expect(readLine('{"a":1}', true)).toBeUndefined();
    expect(readLine("[1,2]", false)).toBeUndefined();
    expect(readCircle('{"latitude":1,"longitude":2,"radius":30}')).toEqual({ center: [1, 2], radius: 30 });
    expect(readCircle("null")).toBeUndefined();
  });

  test("rings of nested areas are changed where they are", () => {
    const outer: Place[] = [[0, 0], [0, 9], [9, 9], [9, 0]];
    const hole: Place[] = [[2, 2], [2, 3], [3, 3]];
    const far: Place[] = [[20, 20], [20, 21], [21, 21]];
    const parts: Nested[] = [[outer, hole], [far]];
    const rings = ringsOf(parts, true);
    expect(rings.map(({ places, isHole }) => [places.length, isHole])).toEqual([[4, false], [3, true], [3, false]]);
    expect(withRings(parts, rings, [outer, [[4, 4], [4, 5], [5, 5]], far])).toEqual([[outer, [[4, 4], [4, 5], [5, 5]]], [far]]);
    // What is left without corners goes, with what it was alone in.
    expect(withRings(parts, rings, [outer, [], []])).toEqual([[outer]]);
    expect(ringsOf([outer, hole], true).map(({ isHole }) => isHole)).toEqual([false, true]);
    expect(ringsOf(outer, true)).toEqual([{ places: outer, isHole: false, repeats: false }]);
    expect(ringsOf([far, hole], false).map(({ isHole }) => isHole)).toEqual([false, false]);
    expect(mapRings(parts, (places) => places.map(([x, y]) => x + y))).toEqual([[[0, 9, 18, 9], [4, 5, 6]], [[40, 41, 42]]]);
  });

  test("a ring whose last corner is the first again stays one", () => {
    const closed: Nested[] = [[[0, 0], [0, 9], [9, 9], [0, 0]]];
    const rings = ringsOf(closed, true);
    expect(rings[0]?.places).toHaveLength(3);
    expect(withRings(closed, rings, [[[1, 1], [0, 9], [9, 9]]])).toEqual([[[1, 1], [0, 9], [9, 9], [1, 1]]]);
    expect(ringsOf(closed, false)[0]?.places).toHaveLength(4);
  });

  test("trips: steps, the place at a moment, the direction", () => {
    const layer = { x: [key("lat", "timeseries")], y: [key("lon", "timeseries")] };
    const steps = stepsOf(layer, entity({}, { lat: [[0, "0"], [10, "10"], [20, "10"]], lon: [[0, "0"], [10, "0"]] }), "geo");
    expect(steps).toHaveLength(2);
    expect(placeAt(steps, 5)?.place).toEqual([5, 0]);
    expect(placeAt(steps, 5, true)?.place).toEqual([0, 0]);
    expect(placeAt(steps, -5)?.place).toEqual([0, 0]);
    expect(placeAt(steps, Infinity)?.place).toEqual([10, 0]);
    expect(bearing([0, 0], [10, 0], "geo")).toBeCloseTo(0);
    expect(bearing([0, 0], [0, 10], "geo")).toBeCloseTo(90);
    expect(bearing([0.5, 0.5], [0.5, 0.9], "image")).toBeCloseTo(180);
  });
});

test("values in texts of maps are never markup", () => {
  const keys = [key("note"), readKey({ name: "t", type: "timeseries", label: "Temp", decimals: 1 })];
  const data = formatted(entity({ "ATTRIBUTE/note": "<img src=x onerror=alert(1)>", "TIME_SERIES/t": "21.456" }), keys, undefined, 0);
  expect(fillMarkup("<b>${entityName}</b> ${note} ${Temp} ${Temp:2} ${none}", data, keys)).toBe("<b>Van &#60;1&#62;</b> &#60;img src=x onerror=alert(1)&#62; 21.5 21.46 ");
  expect(withActionTags("<link-act name='delete'>Delete</link-act>")).toBe('<a href="#" role="button" data-action="delete">Delete</a>');
});

test("what hasn't changed stays the same item", () => {
  const map = readMap("system.map", { settings: { markers: [{ dsEntityAliasId: "a", xKey: { name: "lat", type: "attribute" }, yKey: { name: "lon", type: "attribute" } }] } });
  const maker = new ItemMaker(map);
  const source = map.sources[0];
  if (source === undefined) {
    throw new Error("no source");
  }
  const one = entity({ "ATTRIBUTE/lat": "1", "ATTRIBUTE/lon": "2" });
  const [first] = maker.make([{ source, entities: [one], problem: undefined, total: 1 }]);
  expect(maker.make([{ source, entities: [one], problem: undefined, total: 1 }])[0]).toBe(first);
  expect(maker.make([{ source, entities: [{ ...one }], problem: undefined, total: 1 }])[0]).not.toBe(first);
});

test("functions choose among pictures of here, and those of the layer", () => {
  const marker = { image: "https://own/a.png", images: ["https://own/b.png"] };
  expect(["https://own/a.png", "https://own/b.png", "tb-image;/api/images/tenant/x", "data:image/png;base64,x", "assets/a.png"].every((link) => isOwnImage(link, marker))).toBe(true);
  expect(["https://own/b.png?t=21", "HTTPS://evil/", "//evil/", "x", "tb-image:a;https://evil/"].filter((link) => isOwnImage(link, marker))).toEqual([]);
});

test("values in Markdown are never markup, a link or a picture", () => {
  const filled = fillMarkup("# ${a}", { a: "![x](https://evil/)\n\n[y]: <b> www.evil.example a@evil.example" }, [], escapeMarkdown);
  expect(filled).not.toMatch(/[[\]()<>!\n]/);
  expect(marked.parse(filled, { async: false })).not.toMatch(/<(img|a|b)\b/);
});

test("markers of one place are spread around it, none over another", () => {
  const offsets = spreadOffsets(40);
  expect(offsets).toHaveLength(40);
  const distances = offsets.flatMap(([x, y], n) => [[0, 0], ...offsets.slice(n + 1)].map(([a = 0, b = 0]) => Math.hypot(x - a, y - b)));
  expect(Math.min(...distances)).toBeGreaterThan(35);
  expect(spreadOffsets(0)).toEqual([]);
});

test("buttons have icons, and are told by them where they have no label", () => {
  const open = { type: "openDashboardState", targetDashboardStateId: "a" };
  const { buttons } = readMap("system.map", { settings: { mapActionButtons: [{ label: "", icon: "mdi:map-marker", action: open }, { label: "Go", icon: "", action: open }, { action: open }] } });
  expect(buttons.map(({ label, icon, name }) => [label, icon, name])).toEqual([["", "mdi:map-marker", "Map marker"], ["Go", "", "Go"], ["3", "", "3"]]);
});

test("pictures of ThingsBoard's own pages are shapes, which look up", () => {
  const [layer] = readMap("system.trip_map", { settings: { trips: [{ dsType: "entity", dsEntityAliasId: "a", xKey: {}, yKey: {}, markerType: "image", markerImage: { type: "image", image: "x", imageSize: 34 } }] } }).layers;
  if (layer === undefined) {
    throw new Error("there is no layer");
  }
  expect(["/assets/markers/tripShape1.svg", "assets/markers/shape10.svg", "/assets/markers/tripShape99.svg", "tb-image;/api/images/tenant/van.png", ""].map((image) => isPicture({ layer, image }))).toEqual([false, false, true, true, false]);
});
