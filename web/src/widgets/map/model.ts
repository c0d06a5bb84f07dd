// What the settings of a map widget say: its layers of things, its background, and which values it needs.

import { list, number, object, readKey, readSource, text, type DataKey, type Datasource, type Json } from "@/dashboard/model";
import { actionsOf } from "@/dashboard/actions";
import { safeColor } from "../color";
import { readLayer, type LayerKind, type MapLayer } from "./layer";
import { keyWords, plainWords } from "@/dashboard/words";
import { convertOldMap, defaultLayers } from "./legacy";

export interface TileChoice {
  label: string;
  provider: string;
  layerType: string;
  tileUrl: string;
  apiKey: string;
  attribution: string;
  /** Whether names and borders lie over it. */
  hybrid: boolean;
}

export interface Timeline {
  step: number;
  speeds: number[];
  showTime: boolean;
  /** Whether things are only shown where they told to be, and not on the way between. */
  snaps: boolean;
  /** How the moment is written; as the language does without one. */
  timeFormat: unknown;
}

export interface MapModel {
  kind: "geo" | "image";
  layers: MapLayer[];
  sources: Datasource[];
  /** Sources with the keys of which functions know more than what is on the map. */
  beside: { source: number; keys: DataKey[] }[];
  tiles: TileChoice[];
  /** The picture of an image map: an address, or the key that has it. */
  image: { url: string; key: DataKey | undefined; source: number };
  timeline: Timeline | undefined;
  controls: "topleft" | "topright" | "bottomleft" | "bottomright";
  zoomBy: { scroll: boolean; doubleClick: boolean; buttons: boolean };
  scales: { metric: boolean; imperial: boolean };
  dragModeButton: boolean;
  fit: boolean;
  center: [number, number] | undefined;
  zoom: number | undefined;
  /** The closest zoom that fitting chooses. */
  fitZoom: number;
  /** Buttons over the map, with the names under which their actions are found. */
  buttons: { label: string; icon: string; name: string; color: string | undefined; source: string }[];
  /** Actions of layers, by the names under which a click asks for them. */
  actions: Json;
}

const KINDS: readonly LayerKind[] = ["trips", "markers", "polygons", "circles", "polylines"];
const CORNERS = ["topleft", "topright", "bottomleft", "bottomright"] as const;
/** Of buttons whose colour nobody has chosen: it is one for a light theme. */
const USUAL_BUTTON = "#0000008a";
/** The most entities of a layer, as ThingsBoard asks for them. */
const PAGE = 16_384;

/** Whether a widget type is a map. */
export function isMap(fqn: string): boolean {
  return /^system\.((image_|trip_|route_)?map|maps_v2\.\w+|input_widgets\.markers_placement_\w+)$/.test(fqn);
}

/** Sources of layers, joined where they mean the same entities. */
class Sources {
  private readonly all: Json[] = [];
  private readonly places = new Map<string, number>();

  constructor(private readonly withPoints: boolean) {}

  /** Adds the keys of a layer; those that aren't series of a trip are wanted as latest values. */
  add(layer: Json, keys: DataKey[], isTrip: boolean): number {
    const type = text(layer["dsType"]) ?? "entity";
    const identity = JSON.stringify([type, layer["dsEntityAliasId"], layer["dsDeviceId"], layer["dsFilterId"], ...(type === "function" ? [this.all.length] : [])]);
    const known = this.places.get(identity);
    const place = known ?? this.all.length;
    this.places.set(identity, place);
    const source = this.all[place] ?? {
      type,
      name: layer["dsLabel"],
      entityAliasId: layer["dsEntityAliasId"],
      deviceId: layer["dsDeviceId"],
      filterId: layer["dsFilterId"],
      pageSize: number(layer["pageSize"]) ?? PAGE,
      dataKeys: [] as Json[],
      latestDataKeys: [] as Json[],
    };
    this.all[place] = source;
    for (const key of keys) {
      const where = this.withPoints && !(isTrip && (key.type === "timeseries" || key.type === "other")) ? "latestDataKeys" : "dataKeys";
      const there = source[where] as Json[];
      if (!there.some((one) => one["name"] === key.name && one["type"] === key.raw["type"] && one["label"] === key.raw["label"])) {
        there.push(key.raw);
      }
    }
    return place;
  }

  read(config: Json): Datasource[] {
    return this.all.map((source) => readSource(source, config));
  }
}

function readTile(value: unknown): TileChoice {
  const layer = object(value);
  const label = text(layer["label"]) ?? "";
  return {
    label: label.startsWith("{i18n:") ? (label.split(".").at(-1)?.replace("}", "") ?? "") : label,
    provider: text(layer["provider"]) ?? "openstreet",
    layerType: text(layer["layerType"]) ?? "",
    tileUrl: text(layer["tileUrl"]) ?? "",
    apiKey: text(layer["apiKey"]) ?? "",
    attribution: text(layer["customAttribution"]) ?? "",
    hybrid: text(layer["referenceLayer"]) !== undefined,
  };
}

function readCenter(settings: Json): [number, number] | undefined {
  if (settings["useDefaultCenterPosition"] !== true) {
    return undefined;
  }
  const [lat, lng] = (text(settings["defaultCenterPosition"]) ?? "0,0").split(",").map(Number);
  return lat !== undefined && lng !== undefined && Number.isFinite(lat) && Number.isFinite(lng) ? [lat, lng] : [0, 0];
}

function hasLayers(settings: Json): boolean {
  return KINDS.some((kind) => list(settings[kind]).length > 0);
}

/** Reads the settings of a map of any age. */
export function readMap(fqn: string, config: Json): MapModel {
  const name = fqn.replace(/^system\./, "");
  const isOld = name.includes(".");
  const stored = object(config["settings"]);
  const settings = isOld ? convertOldMap(name, config) : hasLayers(stored) ? stored : { ...stored, ...defaultLayers(name, config) };
  const kind = (settings["mapType"] ?? (name === "image_map" ? "image" : undefined)) === "image" ? "image" : "geo";
  const withPoints = /^(trip|route)_map$|^maps_v2\.(test|route_map)/.test(name);
  const sources = new Sources(withPoints);
  const actions: Json = {};
  const layers = KINDS.flatMap((layerKind) =>
    list(settings[layerKind]).map((value, n): MapLayer => {
      const id = `${layerKind} ${n}`;
      const layer = readLayer(layerKind, id, object(value), kind, config);
      Object.assign(actions, layer.actions);
      const add = (one: Json): number => sources.add({ ...one, pageSize: settings["mapPageSize"] }, layer.keys, layerKind === "trips");
      return { ...layer, source: add(object(value)), moreSources: list(object(value)["additionalDataSources"]).map((one) => add(object(one))) };
    }),
  );
  const beside = list(settings["additionalDataSources"]).map(object).map((more) => {
    const keys = list(more["dataKeys"]).map((key) => readKey(key, config));
    return { source: sources.add({ ...more, pageSize: settings["mapPageSize"] }, keys, false), keys };
  });
  const buttons = list(settings["mapActionButtons"]).map(object).map((button, n) => {
    const source = `map button ${n}`;
    actions[source] = [{ name: text(button["label"]) ?? source, ...object(button["action"]) }];
    const color = safeColor(button["color"]);
    const [label, icon] = [plainWords(text(button["label"]) ?? ""), text(button["icon"]) ?? ""];
    const name = label || keyWords(icon.replace(/^mdi:/, "")) || String(n + 1);
    return { label: label === "" && icon === "" ? name : label, icon, name, color: color === undefined || color.toLowerCase() === USUAL_BUTTON ? undefined : color, source };
  });
  const image = object(settings["imageSource"]);
  const imageKey = image["sourceType"] === "entityKey" && image["entityKey"] !== undefined ? readKey(image["entityKey"], config) : undefined;
  const timeline = object(settings["tripTimeline"]);
  const zoomActions = settings["zoomActions"] === undefined ? ["scroll", "doubleClick", "controlButtons"] : list(settings["zoomActions"]);
  return {
    kind,
    layers,
    beside,
    tiles: list(settings["layers"]).length === 0 ? [readTile({ provider: "openstreet" })] : list(settings["layers"]).map(readTile),
    image: {
      url: text(image["url"]) ?? "",
      key: imageKey,
      source: imageKey === undefined ? -1 : sources.add({ dsType: "entity", dsEntityAliasId: image["entityAliasId"] }, [imageKey], false),
    },
    timeline:
      timeline["showTimelineControl"] === true
        ? {
            step: Math.max(100, number(timeline["timeStep"]) ?? 1_000),
            speeds: list(timeline["speedOptions"]).flatMap((speed) => number(speed) ?? []),
            showTime: timeline["showTimestamp"] !== false,
            snaps: timeline["snapToRealLocation"] === true,
            timeFormat: timeline["timestampFormat"] ?? undefined,
          }
        : undefined,
    controls: CORNERS.find((corner) => corner === settings["controlsPosition"]) ?? "topleft",
    zoomBy: { scroll: zoomActions.includes("scroll"), doubleClick: zoomActions.includes("doubleClick"), buttons: zoomActions.includes("controlButtons") },
    scales: { metric: list(settings["scales"]).includes("metric"), imperial: list(settings["scales"]).includes("imperial") },
    dragModeButton: settings["dragModeButton"] === true,
    fit: settings["fitMapBounds"] !== false,
    center: readCenter(settings),
    zoom: number(settings["defaultZoomLevel"]),
    fitZoom: number(settings["minZoomLevel"]) ?? 16,
    // What nobody can do here, such as placing by a button, is not offered.
    buttons: buttons.filter(({ source }) => actionsOf({ actions }, source).length > 0),
    actions,
    sources: sources.read(config),
  };
}
