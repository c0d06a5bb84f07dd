// What layers of a map begin with, under ThingsBoard's names, and how the rest of one follows what is changed in it.

import { settleAction } from "@/dashboard/edit/mobileAction";
import { object, text, type Json } from "@/dashboard/json";
import { merged } from "../../symbol/symbol";
import type { LayerKind } from "../layer";

export type MapKind = "geoMap" | "image";

const BLUE = { type: "constant", color: "#307FE5" };
const GREY = { type: "constant", color: "#8f8f8f" };
const KEY_COLOR = "#2196f3";

/** Names of the keys that have the place of a point. */
export const placeNames = (map: MapKind): readonly [string, string] => (map === "image" ? ["xPos", "yPos"] : ["latitude", "longitude"]);
/** Which key has the shape of a thing. */
export const SHAPE_KEYS = { polygons: "polygonKey", circles: "circleKey", polylines: "polylineKey" } as const;

/** A key as it begins. */
export const newKey = (name: string, type: string): Json => ({ name, label: name, type, settings: {}, color: KEY_COLOR });

/** Courses with which invented things move about. */
const around = (start: number, step: number): string => `return (prevValue || ${start}) + (Math.random() - 0.5) * ${step};`;
const COURSES: Readonly<Record<string, string>> = {
  latitude: around(48.1, 0.05),
  longitude: around(11.6, 0.05),
  xPos: around(0.4, 0.05),
  yPos: around(0.4, 0.05),
  polygonKey: "return [[48.0, 11.4], [48.2, 11.4], [48.2, 11.8], [48.0, 11.8]];",
  circleKey: "return { latitude: 48.1, longitude: 11.6, radius: 5000 };",
  polylineKey: "return [[48.0, 11.4], [48.1, 11.6], [48.2, 11.5]];",
};

/** The keys that a layer can't be without. */
function neededKeys(kind: LayerKind, map: MapKind, madeUp: boolean): Json {
  const key = (name: string, course: string): Json =>
    madeUp ? { ...newKey("f(x)", "function"), label: name, funcBody: COURSES[course] } : newKey(name, kind === "trips" ? "timeseries" : "attribute");
  if (kind === "markers" || kind === "trips") {
    const [x, y] = placeNames(map);
    return { xKey: key(x, x), yKey: key(y, y) };
  }
  return { [SHAPE_KEYS[kind]]: key("perimeter", SHAPE_KEYS[kind]) };
}

function pointTexts(map: MapKind): string {
  const [x, y] = placeNames(map);
  const [titles, digits] = map === "image" ? [["X", "Y"], 2] : [["Latitude", "Longitude"], 7];
  return `<b>\${entityName}</b><br/><br/><b>${titles[0]}:</b> \${${x}:${digits}}<br/><b>${titles[1]}:</b> \${${y}:${digits}}`;
}

function marker(isTrip: boolean): Json {
  return {
    markerType: "shape",
    markerShape: { shape: isTrip ? "tripMarkerShape2" : "markerShape1", size: 34, color: BLUE },
    markerIcon: { icon: isTrip ? "arrow_forward" : "mdi:lightbulb-on", size: 48, color: BLUE },
    markerImage: { type: "image", image: null, imageSize: 34 },
    markerOffsetX: 0.5,
    markerOffsetY: isTrip ? 0.5 : 1,
    positionFunction: "return {x: origXPos, y: origYPos};",
    ...(isTrip ? {} : { markerClustering: { enable: false, zoomOnClick: true, maxZoom: null, maxClusterRadius: 80 } }),
  };
}

const TRIP: Json = {
  showMarker: true,
  rotateMarker: true,
  offsetAngle: 0,
  showPath: true,
  pathStrokeWeight: 4,
  pathStrokeColor: BLUE,
  usePathDecorator: false,
  pathDecoratorSymbol: "arrowHead",
  pathDecoratorSymbolSize: 10,
  pathDecoratorSymbolColor: BLUE.color,
  showPoints: false,
  pointSize: 10,
  pointColor: BLUE,
};
const STROKE: Json = { strokeColor: { type: "constant", color: "#3388ff" }, strokeWeight: 3 };
const FILL: Json = {
  fillType: "color",
  fillColor: { type: "constant", color: "rgba(51,136,255,0.2)" },
  fillImage: { type: "image", image: null, preserveAspectRatio: true, opacity: 1, angle: 0, scale: 1 },
  fillStripe: { weight: 3, color: GREY, spaceWeight: 9, spaceColor: { type: "constant", color: "rgba(143,143,143,0)" }, angle: 45 },
};

/** Returns what a layer has where nothing is stored of it, but for whose data it shows. */
export function layerDefaults(kind: LayerKind, map: MapKind): Json {
  const isTrip = kind === "trips";
  const isPoint = isTrip || kind === "markers";
  const moments = "<br/><b>End Time:</b> ${maxTime}<br/><b>Start Time:</b> ${minTime}";
  const pattern = isPoint ? `${pointTexts(map)}${isTrip ? moments : ""}` : "<b>${entityName}</b>";
  const text = { show: isPoint, type: "pattern", pattern, trigger: "click", autoclose: true, offsetX: 0, offsetY: isTrip ? -0.5 : -1 };
  return {
    label: { show: isPoint, type: "pattern", pattern: "${entityName}" },
    tooltip: text,
    click: { type: "doNothing" },
    edit: { enabledActions: [], attributeScope: "SERVER_SCOPE", snappable: false },
    ...(isPoint ? marker(isTrip) : { ...(kind === "polylines" ? {} : FILL), ...STROKE }),
    ...(isTrip ? { ...TRIP, pointTooltip: { ...text, show: true, offsetY: -1 } } : {}),
  };
}

/** Returns a new layer: it shows nothing until somebody chooses whose data it has. */
export function newLayer(kind: LayerKind, map: MapKind): Json {
  return { dsType: "entity", dsLabel: "", ...neededKeys(kind, map, false), additionalDataKeys: [], ...layerDefaults(kind, map) };
}

/** Brings a layer in line with what was changed in it: invented values have keys of their own, an action has what its type has. */
export function settleLayer(kind: LayerKind, map: MapKind): (layer: Json, before: Json) => Json {
  return (layer, before) => {
    if (Object.keys(before).length === 0) {
      return object(merged(newLayer(kind, map), layer));
    }
    const madeUp = layer["dsType"] === "function";
    const other = madeUp !== (before["dsType"] === "function");
    return {
      ...layer,
      ...(other ? { ...neededKeys(kind, map, madeUp), additionalDataKeys: [] } : {}),
      ...(layer["click"] === undefined ? {} : { click: settleAction(object(layer["click"]), object(before["click"])) }),
    };
  };
}

/** What the background of a provider begins with. */
const TILES: Readonly<Record<string, Json>> = {
  openstreet: { layerType: "OpenStreetMap.Mapnik" },
  openfreemap: { layerType: "bright" },
  google: { layerType: "roadmap", apiKey: "" },
  here: { layerType: "HEREv3.normalDay", apiKey: "" },
  tencent: { layerType: "Tencent.Normal" },
  custom: { tileUrl: "https://{s}.tile.openstreetmap.org/{z}/{x}/{y}.png" },
};
const OF_PROVIDERS = ["layerType", "apiKey", "tileUrl", "vectorTiles", "customAttribution"];

/** Brings a background in line with its provider. */
export function settleTiles(tiles: Json, before: Json): Json {
  const providerOf = (one: Json): string => text(one["provider"]) ?? "openstreet";
  const provider = providerOf(tiles);
  const begin = { provider, ...TILES[provider] };
  if (Object.keys(before).length === 0) {
    return { ...begin, ...tiles };
  }
  return provider === providerOf(before) ? tiles : { ...Object.fromEntries(Object.entries(tiles).filter(([name]) => !OF_PROVIDERS.includes(name))), ...begin };
}
