// The settings of a map as its form shows them. A map that was made of sources alone has the layers that are drawn of them.

import { list, object, text, type Json } from "@/dashboard/json";
import { merged } from "../../symbol/symbol";
import type { LayerKind } from "../layer";
import { nameOf } from "../kinds";
import { defaultLayers, drawsLayer } from "../legacy";
import { layerDefaults, type MapKind } from "./defaults";

const KINDS: readonly LayerKind[] = ["trips", "markers", "polygons", "circles", "polylines"];
/** All ways to zoom, which a map has that says nothing of them. */
const ZOOMS = ["scroll", "doubleClick", "controlButtons"];

export function mapKind(fqn: string, settings: Json): MapKind {
  return (settings["mapType"] ?? (nameOf(fqn) === "image_map" ? "image" : undefined)) === "image" ? "image" : "geoMap";
}

/** Returns the sources that a map draws because it has no layers; none where it has some. */
export function looseSources(config: Json): Json[] {
  const settings = object(config["settings"]);
  return KINDS.some((kind) => list(settings[kind]).length > 0) ? [] : list(config["datasources"]).map(object);
}

/** Tells of a name whether telemetry has it or an attribute; nothing where that isn't certain. */
export type IsSeries = (name: string) => boolean | undefined;

/** Returns what tells kinds of names by those that are known of the first source. It is certain only of one source with one entity that is always the same. */
export function kindsIn(sources: readonly Json[], filterOf: (alias: string) => Json | undefined, known: (kind: string) => readonly string[]): IsSeries {
  const [source = {}, ...others] = sources.filter(drawsLayer);
  const filter = object(filterOf(text(source["entityAliasId"]) ?? ""));
  const isOne = source["type"] === "device" || (filter["type"] === "singleEntity" && !String(object(filter["singleEntity"])["entityType"]).startsWith("CURRENT_"));
  return (name) => {
    const [series, attribute] = [known("timeseries").includes(name), known("attribute").includes(name)];
    return !isOne || others.length > 0 || series === attribute ? undefined : series;
  };
}

/** Takes one of several keys that a place may have. Where it isn't certain which one has it, all of them stay, and the first with a value counts. */
function oneKey(value: unknown, isSeries: IsSeries): unknown {
  const keys = list(value).map(object);
  return Array.isArray(value) ? (keys.length === 1 ? keys[0] : (keys.find(({ type, name }) => (type === "timeseries") === isSeries(text(name) ?? "")) ?? value)) : value;
}

/** Returns the settings with all that the form shows. */
export function shownSettings(fqn: string, config: Json, isSeries: IsSeries): Json {
  const settings = object(config["settings"]);
  const map = mapKind(fqn, settings);
  const begin = { mapType: map, zoomActions: ZOOMS };
  if (looseSources(config).length === 0) {
    return { ...begin, ...settings };
  }
  const { tripTimeline, ...lists } = defaultLayers(nameOf(fqn), config);
  const layers = Object.entries(lists).map(([kind, all]) => [
    kind,
    list(all).map(object).map((layer) => {
      const [xKey, yKey] = [oneKey(layer["xKey"], isSeries), oneKey(layer["yKey"], isSeries)];
      const rest = list(layer["additionalDataKeys"]).filter((key) => key !== xKey && key !== yKey);
      return merged(layerDefaults(kind as LayerKind, map), { ...layer, xKey, yKey, additionalDataKeys: rest });
    }),
  ]);
  return { ...begin, ...(tripTimeline === undefined ? {} : { tripTimeline }), ...settings, ...(Object.fromEntries(layers) as Json) };
}

/** Returns a configuration with other settings. Sources that have become layers are no sources of their own any more; the others stay. */
export function withSettings(fqn: string, config: Json, isSeries: IsSeries, update: (settings: Json) => Json): Json {
  const next = { ...config, settings: update(shownSettings(fqn, config, isSeries)) };
  const loose = looseSources(config);
  return loose.length === 0 ? next : { ...next, datasources: loose.filter((source) => !drawsLayer(source)) };
}
