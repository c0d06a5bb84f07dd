import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readMobile, type MobileFunction } from "@/dashboard/mobile";
import { withValue, type FormField, type FormValues } from "@/ui/form/values";
import { readMap } from "../model";
import { settleLayer, settleTiles } from "./defaults";
import { layerFields } from "./layers";
import { mapFields } from "./mapForm";
import { kindsIn, looseSources, shownSettings, withSettings } from "./stored";

const KINDS = ["trips", "markers", "polygons", "circles", "polylines"] as const;
const unknown = (): undefined => undefined;
const pathsOf = (fields: readonly FormField[]): string[] => fields.flatMap(({ name, fields: inner }) => [...(name === "" ? [] : [name]), ...pathsOf(inner ?? [])]);
const offered = (fields: readonly FormField[], values: FormValues): string[] => fields.filter((field) => field.when?.(values) ?? true).map(({ name }) => name);

/** All code that draws maps or reads actions: no form, nothing that makes settings of older ones, and no comments. */
const CODE = ["..", "../..", "../../../dashboard"].flatMap((folder) => {
  const root = join(import.meta.dirname, folder);
  return readdirSync(root).filter((name) => /\.tsx?$/.test(name) && !/\.test\.|^legacy|[fF]orms?\./.test(name) && (folder !== "../.." || ["color.ts", "dates.ts"].includes(name))).map((name) => readFileSync(join(root, name), "utf8"));
}).join("\n").replace(/^\s*(\/\/|\/?\*).*$/gm, "");
/** Names that code takes apart, as in `const { name } = settings` and `({ name }) =>`. */
const TAKEN = new Set([...CODE.matchAll(/\{([^{}=;()"]*)\}(?:\s*=[^=>]|[^{}()=]*\)\s*(?::[^=;{}]*)?=>)/g)].flatMap(([, names = ""]) => names.split(",").map((name) => name.trim().split(":")[0] ?? "")));
/** Names that are read through a table or a function of names. */
const BY_NAME = [...KINDS, "polygonKey", "circleKey", "polylineKey", "markerShape", "markerIcon", "markerImage", "dialogWidth", "dialogHeight"];
/** What only a phone reads. */
const OF_PHONES = ["provisionType"];

function isRead(name: string): boolean {
  return CODE.includes(`["${name}"]`) || TAKEN.has(name) || (BY_NAME.includes(name) && CODE.includes(`"${name}"`)) || readMobile({ type: "takePhoto", [name]: "1" })?.functions[name as MobileFunction] === "1";
}

test("each setting of a map that is offered is read by something that draws", () => {
  const names = new Set(["geoMap", "image"].flatMap((map) => pathsOf(mapFields(map as "geoMap" | "image", true))).flatMap((path) => path.split(".")));
  expect(names.size).toBeGreaterThan(60);
  expect([...names].filter((name) => !isRead(name))).toEqual(OF_PHONES);
  // What code only writes, or is but listed elsewhere, is not read.
  expect(["closesOutside", "popoverStyle"].filter(isRead)).toEqual([]);
});

test("a new layer is drawn as its form says", () => {
  for (const kind of KINDS) {
    const layer = settleLayer(kind, "geoMap")({}, {});
    const [read] = readMap("system.trip_map", { settings: { mapType: "geoMap", [kind]: [layer] } }).layers;
    const [plain] = readMap("system.trip_map", { settings: { mapType: "geoMap", [kind]: [{ dsType: "entity" }] } }).layers;
    expect({ ...read, keys: [], x: [], y: [], tooltip: read?.tooltip.show, trip: { ...read?.trip, arrowColor: undefined, pointTooltip: undefined }, marker: { ...read?.marker } }, kind).toEqual({
      ...plain, keys: [], x: [], y: [], tooltip: plain?.tooltip.show, trip: { ...plain?.trip, arrowColor: undefined, pointTooltip: undefined }, marker: { ...plain?.marker },
    });
    expect(read?.keys.map(({ type, name }) => `${type} ${name}`), kind).toEqual(plain?.keys.map(({ type, name }) => `${type} ${name}`));
  }
  expect(settleLayer("markers", "image")({}, {})).toMatchObject({ xKey: { name: "xPos", type: "attribute", label: "xPos" }, yKey: { name: "yPos" }, markerShape: { shape: "markerShape1", size: 34 }, edit: { attributeScope: "SERVER_SCOPE" } });
});

test("what is set of a layer changes what is drawn", () => {
  const fields = pathsOf(layerFields("markers", "geoMap"));
  const put = (values: FormValues, path: string, value: unknown): FormValues => {
    expect(fields).toContain(path);
    return withValue(values, path, value);
  };
  let layer: FormValues = settleLayer("markers", "geoMap")({}, {});
  layer = put(put(layer, "dsEntityAliasId", "a"), "markerType", "icon");
  layer = put(put(layer, "markerIcon.color.type", "range"), "markerIcon.color.rangeKey", { name: "t", label: "t", type: "timeseries" });
  layer = put(put(layer, "tooltip.offsetY", -2), "additionalDataSources", [{ dsType: "entity", dsEntityAliasId: "b" }]);
  const map = readMap("system.map", { settings: { mapType: "geoMap", markers: [layer], additionalDataSources: [{ dsType: "entity", dsEntityAliasId: "c", dataKeys: [{ name: "k", label: "k", type: "attribute" }] }] } });
  expect(map.layers[0]).toMatchObject({ source: 0, moreSources: [1], marker: { type: "icon", color: { rangeKey: { name: "t" } } }, tooltip: { offset: [0, -2] } });
  expect(map.sources.map(({ aliasId, dataKeys }) => [aliasId, dataKeys.map(({ name }) => name)])).toEqual([["a", ["latitude", "longitude", "t"]], ["b", ["latitude", "longitude", "t"]], ["c", ["k"]]]);
  expect(map.beside).toMatchObject([{ source: 2, keys: [{ name: "k" }] }]);
});

test("fields are offered where they count", () => {
  const marker = layerFields("markers", "geoMap");
  expect(offered(marker, {})).toEqual(expect.arrayContaining(["dsEntityAliasId", "markerShape.shape", "label.pattern", "tooltip.pattern", "edit.enabledActions", "markerClustering.enable"]));
  expect(offered(marker, { markerType: "image", dsType: "function", label: { show: false } })).not.toEqual(expect.arrayContaining(["markerShape.shape"]));
  expect(offered(marker, { label: { show: false } })).not.toContain("label.pattern");
  expect(offered(layerFields("polygons", "geoMap"), {})).toEqual(expect.arrayContaining(["polygonKey", "fillColor.color", "strokeWeight"]));
  expect(offered(layerFields("polylines", "geoMap"), {})).not.toContain("fillType");
  expect(offered(layerFields("trips", "geoMap"), { showPath: false })).not.toContain("pathStrokeWeight");
  expect(mapFields("geoMap", false).map(({ name }) => name)).not.toContain("trips");
  expect(offered(mapFields("image", false), { mapType: "image" })).not.toEqual(expect.arrayContaining(["layers"]));
});

test("a layer follows its source, and a background its provider", () => {
  const settle = settleLayer("circles", "geoMap");
  const before = { ...settle({}, {}), own: 1 };
  const madeUp = settle({ ...before, dsType: "function" }, before);
  expect(madeUp).toMatchObject({ own: 1, circleKey: { type: "function", label: "perimeter" } });
  expect(settle({ ...madeUp, dsType: "entity" }, madeUp)).toMatchObject({ circleKey: { type: "attribute", name: "perimeter" } });
  expect(settleTiles({}, {})).toEqual({ provider: "openstreet", layerType: "OpenStreetMap.Mapnik" });
  const here = settleTiles({ label: "Mine", provider: "here", layerType: "OpenStreetMap.Mapnik", referenceLayer: "openstreetmap_hybrid" }, { provider: "openstreet" });
  expect(here).toEqual({ label: "Mine", provider: "here", layerType: "HEREv3.normalDay", apiKey: "", referenceLayer: "openstreetmap_hybrid" });
  const light = { layerType: "CartoDB.Positron" };
  expect(settleTiles({ ...light, label: "Light" }, light)).toEqual({ ...light, label: "Light" });
  expect(settleTiles({ ...light, provider: "openfreemap" }, light)).toEqual({ provider: "openfreemap", layerType: "bright" });
  const custom = settleTiles({ provider: "custom" }, {});
  expect(readMap("system.map", { settings: { layers: [custom] } }).tiles).toMatchObject([{ provider: "custom", tileUrl: "https://{s}.tile.openstreetmap.org/{z}/{x}/{y}.png" }]);
});

test("a map of sources alone has the layers that are drawn of them, and keeps what is unheard of", () => {
  const config = { strange: 1, settings: { own: true }, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [{ name: "latitude", label: "latitude", type: "attribute" }, { name: "speed", label: "speed", type: "timeseries" }] }] };
  expect(looseSources(config)).toHaveLength(1);
  const next = withSettings("system.map", config, (name) => (name === "longitude" ? true : undefined), (before) => ({ ...before, fitMapBounds: false }));
  expect(next).toMatchObject({
    strange: 1,
    datasources: [],
    settings: {
      own: true,
      mapType: "geoMap",
      fitMapBounds: false,
      zoomActions: ["scroll", "doubleClick", "controlButtons"],
      markers: [{ dsType: "entity", dsEntityAliasId: "a", xKey: { name: "latitude", type: "attribute" }, yKey: { name: "longitude", type: "timeseries" }, additionalDataKeys: [{ name: "speed" }], markerType: "shape" }],
    },
  });
  expect(looseSources(next)).toEqual([]);
  const again = withSettings("system.map", { settings: { markers: [{}], zoomActions: [] }, datasources: [{}] }, unknown, (before) => before);
  expect(again).toEqual({ settings: { mapType: "geoMap", markers: [{}], zoomActions: [] }, datasources: [{}] });
  expect(shownSettings("system.trip_map", { settings: {}, datasources: [{ type: "device", deviceId: "d" }] }, unknown)).toMatchObject({ trips: [{ dsType: "device", dsDeviceId: "d", xKey: { type: "timeseries" } }], tripTimeline: { showTimelineControl: true } });
  expect(shownSettings("system.image_map", { settings: {} }, unknown)).toMatchObject({ mapType: "image" });
});

test("a place stays where it may be until it is certain, and a source without data stays a source", () => {
  const [single, several, current] = [{ type: "singleEntity", singleEntity: { entityType: "DEVICE", id: "1" } }, { type: "entityType", resolveMultiple: true }, { type: "singleEntity", singleEntity: { entityType: "CURRENT_USER", id: "1" } }];
  const filters: Record<string, FormValues> = { single, several, current, state: { type: "stateEntity" } };
  const names: Record<string, string[]> = { timeseries: ["longitude", "both"], attribute: ["latitude", "both"] };
  const kinds = (...sources: FormValues[]): (boolean | undefined)[] => ["longitude", "latitude", "both", "neither"].map(kindsIn(sources, (alias) => filters[alias], (kind) => names[kind] ?? []));
  const of = (entityAliasId: string): FormValues => ({ type: "entity", entityAliasId });
  const certain = [true, false, undefined, undefined];
  const nothing = certain.map(unknown);
  expect([kinds(of("single")), kinds({ type: "device", deviceId: "d" }), kinds({ type: "entity" }, of("single"))]).toEqual([certain, certain, certain]);
  expect([kinds(of("several")), kinds(of("state")), kinds(of("current")), kinds(of("gone")), kinds(of("single"), of("single")), kinds()]).toEqual(Array(6).fill(nothing));

  const waiting = { type: "entity", dataKeys: [{ name: "speed", label: "speed", type: "timeseries" }] };
  const config = { settings: {}, datasources: [of("a"), waiting, of("b")] };
  const next = withSettings("system.map", config, unknown, (before) => ({ ...before, fitMapBounds: false }));
  const either = (name: string): object[] => [{ name, type: "attribute" }, { name, type: "timeseries" }];
  const layer = { xKey: either("latitude"), yKey: either("longitude") };
  expect(next).toMatchObject({ datasources: [waiting], settings: { markers: [{ dsEntityAliasId: "a", ...layer }, { dsEntityAliasId: "b", ...layer }] } });
  expect(readMap("system.map", next).layers.map(({ x }) => x.map(({ type }) => type))).toEqual([["attribute", "timeseries"], ["attribute", "timeseries"]]);
  expect(withSettings("system.map", { datasources: [waiting] }, unknown, (before) => before)).toMatchObject({ datasources: [waiting] });
});

test("actions of links follow their own type, not that of another one", () => {
  const [a, b] = [{ name: "A", type: "openURL", url: "/" }, { name: "B", type: "custom", customFunction: "", url: "strange" }];
  const before = { ...settleLayer("markers", "geoMap")({}, {}), tooltip: { tagActions: [a, b] } };
  expect(settleLayer("markers", "geoMap")({ ...before, tooltip: { tagActions: [b] } }, before)).toMatchObject({ tooltip: { tagActions: [b] } });
  const field = layerFields("markers", "geoMap").find(({ name }) => name === "tooltip.tagActions");
  expect(field?.settle?.({ ...a, type: "custom" }, a)).toEqual({ name: "A", type: "custom" });
  const around = { values: {}, names: {} };
  expect([field?.rowTitle?.(a, around), field?.rowTitle?.({ type: "strange" }, around)]).toEqual([{ title: "A", note: "Opens an address" }, { title: "", note: "strange" }]);
});
