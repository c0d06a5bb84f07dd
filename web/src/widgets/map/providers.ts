// Where the tiles of a map come from, and what the server's own map stands for.

import type { TileChoice } from "./model";

interface Tiles {
  url: string;
  attribution: string;
  maxZoom: number;
  /** What was asked for can't be shown with plain pictures; this is the nearest that can. */
  approximated?: true;
  /** The server's own map, where there is one, takes the place of these; it shows the same. */
  ownFirst?: true;
}

const OSM_CREDIT = '&copy; <a href="https://www.openstreetmap.org/copyright">OpenStreetMap</a> contributors';
const ESRI_CREDIT = "Tiles &copy; Esri";
const OSM: Tiles = { url: "https://tile.openstreetmap.org/{z}/{x}/{y}.png", attribution: OSM_CREDIT, maxZoom: 19, ownFirst: true };
const esri = (name: string): Tiles => ({ url: `https://server.arcgisonline.com/ArcGIS/rest/services/${name}/MapServer/tile/{z}/{y}/{x}`, attribution: ESRI_CREDIT, maxZoom: 18 });
const carto = (name: string): Tiles => ({ url: `https://{s}.basemaps.cartocdn.com/${name}/{z}/{x}/{y}.png`, attribution: `${OSM_CREDIT} &copy; CARTO`, maxZoom: 20 });
const here = (style: string, key: string): Tiles => ({
  url: `https://maps.hereapi.com/v3/base/mc/{z}/{x}/{y}/png8?style=${style}&apiKey=${encodeURIComponent(key)}`,
  attribution: "&copy; HERE",
  maxZoom: 20,
});

const IMAGERY = esri("World_Imagery");
const LANDSCAPE = esri("World_Topo_Map");
const LIGHT = carto("light_all");
const KNOWN: Record<string, Tiles> = {
  "OpenStreetMap.Mapnik": OSM,
  "OpenStreetMap.HOT": { ...OSM, url: "https://{s}.tile.openstreetmap.fr/hot/{z}/{x}/{y}.png" },
  "Esri.WorldStreetMap": esri("World_Street_Map"),
  "Esri.WorldTopoMap": LANDSCAPE,
  "Esri.WorldImagery": IMAGERY,
  "CartoDB.Positron": LIGHT,
  "CartoDB.DarkMatter": carto("dark_all"),
};
const HERE_STYLES: Record<string, string> = {
  "HEREv3.normalDay": "explore.day",
  "HEREv3.normalNight": "explore.night",
  "HEREv3.hybridDay": "explore.satellite.day",
  "HEREv3.terrainDay": "topo.day",
};

/** Names and borders, which lie over other tiles. */
export const NAMES = esri("Reference/World_Boundaries_and_Places");

/** Returns where the tiles of a choice come from. */
export function tilesOf({ provider, layerType, tileUrl, apiKey, attribution }: TileChoice): Tiles {
  if (provider === "custom") {
    const isPictures = /^https?:\/\//i.test(tileUrl) && tileUrl.includes("{z}");
    return isPictures ? { url: tileUrl, attribution, maxZoom: 20 } : { ...OSM, approximated: true };
  }
  if (provider === "openstreet") {
    return KNOWN[layerType] ?? OSM;
  }
  if (provider === "here" && apiKey !== "") {
    return here(HERE_STYLES[layerType] ?? "explore.day", apiKey);
  }
  // Google and Tencent need programs of their own, OpenFreeMap draws vectors.
  const pictures = /satellite|hybrid/i.test(layerType) ? IMAGERY : /terrain/i.test(layerType) ? LANDSCAPE : undefined;
  return pictures === undefined ? { ...(/positron/i.test(layerType) ? LIGHT : OSM), approximated: true, ownFirst: true } : { ...pictures, approximated: true };
}

/** What is shown behind the things of a map. */
export type Background = "pictures" | "own" | "wait";

/**
 * Chooses between the pictures that a map's settings name and the server's own map, which is drawn where it shows the same, or where the
 * pictures don't come. `covers` is whether the own map reaches here: unknown until it is read, and false where there is none.
 */
export function backgroundOf(tiles: Pick<Tiles, "ownFirst">, failed: boolean, covers: boolean | undefined): Background {
  if (tiles.ownFirst !== true && !failed) {
    return "pictures";
  }
  if (covers === undefined) {
    // Nobody elsewhere is asked before that is known.
    return failed ? "pictures" : "wait";
  }
  return covers ? "own" : "pictures";
}
