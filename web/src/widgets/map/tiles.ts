// The background of a map: tiles from the web, and a plain grid where those can't be had.

import L from "leaflet";
import { cleanText } from "./markup";
import type { TileChoice } from "./model";

interface Tiles {
  url: string;
  attribution: string;
  maxZoom: number;
  /** What was asked for can't be shown with plain pictures; this is the nearest that can. */
  approximated?: boolean;
}

const OSM_CREDIT = '&copy; <a href="https://www.openstreetmap.org/copyright">OpenStreetMap</a> contributors';
const ESRI_CREDIT = "Tiles &copy; Esri";
const OSM: Tiles = { url: "https://tile.openstreetmap.org/{z}/{x}/{y}.png", attribution: OSM_CREDIT, maxZoom: 19 };
const esri = (name: string): Tiles => ({ url: `https://server.arcgisonline.com/ArcGIS/rest/services/${name}/MapServer/tile/{z}/{y}/{x}`, attribution: ESRI_CREDIT, maxZoom: 18 });
const carto = (name: string): Tiles => ({ url: `https://{s}.basemaps.cartocdn.com/${name}/{z}/{x}/{y}.png`, attribution: `${OSM_CREDIT} &copy; CARTO`, maxZoom: 20 });
const here = (style: string, key: string): Tiles => ({
  url: `https://maps.hereapi.com/v3/base/mc/{z}/{x}/{y}/png8?style=${style}&apiKey=${encodeURIComponent(key)}`,
  attribution: "&copy; HERE",
  maxZoom: 20,
});

const KNOWN: Record<string, Tiles> = {
  "OpenStreetMap.Mapnik": OSM,
  "OpenStreetMap.HOT": { ...OSM, url: "https://{s}.tile.openstreetmap.fr/hot/{z}/{x}/{y}.png" },
  "Esri.WorldStreetMap": esri("World_Street_Map"),
  "Esri.WorldTopoMap": esri("World_Topo_Map"),
  "Esri.WorldImagery": esri("World_Imagery"),
  "CartoDB.Positron": carto("light_all"),
  "CartoDB.DarkMatter": carto("dark_all"),
};
const HERE_STYLES: Record<string, string> = {
  "HEREv3.normalDay": "explore.day",
  "HEREv3.normalNight": "explore.night",
  "HEREv3.hybridDay": "explore.satellite.day",
  "HEREv3.terrainDay": "topo.day",
};

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
  const nearest = /satellite|hybrid/i.test(layerType) ? KNOWN["Esri.WorldImagery"] : /terrain/i.test(layerType) ? KNOWN["Esri.WorldTopoMap"] : /positron/i.test(layerType) ? KNOWN["CartoDB.Positron"] : OSM;
  return { ...(nearest ?? OSM), approximated: true };
}

/** A grid with degrees, under tiles that don't come. */
class Graticule extends L.GridLayer {
  protected override createTile(at: L.Coords): HTMLElement {
    const size = this.getTileSize();
    const tile = document.createElement("div");
    const corner = L.CRS.EPSG3857.pointToLatLng(L.point(at.x * size.x, at.y * size.y), at.z);
    const digits = Math.max(0, Math.min(4, Math.floor(at.z / 3)));
    tile.style.cssText = "border-left: 1px solid var(--mantine-color-default-border); border-top: 1px solid var(--mantine-color-default-border); font-size: 0.625rem; padding: 2px 4px; color: var(--soft-text); box-sizing: border-box";
    tile.setAttribute("aria-hidden", "true");
    tile.textContent = `${corner.lat.toFixed(digits)}°, ${((((corner.lng + 180) % 360) + 360) % 360 - 180).toFixed(digits)}°`;
    return tile;
  }
}

/** The background of a map of the globe. */
export class TileBackground {
  private layers: L.Layer[] = [];
  private readonly grid = new Graticule({ pane: "tilePane", zIndex: 0 });
  private loaded = 0;
  private shown: TileChoice | undefined;
  private missing = false;

  constructor(
    private readonly map: L.Map,
    private readonly onState: (state: { missing: boolean; approximated: boolean }) => void,
  ) {}

  show(choice: TileChoice): void {
    if (choice === this.shown) {
      return;
    }
    this.shown = choice;
    this.layers.forEach((layer) => layer.remove());
    this.loaded = 0;
    const tiles = tilesOf(choice);
    const approximated = tiles.approximated === true;
    // Tile servers want to know who asks; they are told the origin and no more.
    const options = { maxNativeZoom: tiles.maxZoom, maxZoom: 22, attribution: cleanText(tiles.attribution), referrerPolicy: "strict-origin" as const };
    const tell = (missing: boolean): void => {
      this.missing = missing;
      this.onState({ missing, approximated });
    };
    const main = L.tileLayer(tiles.url, options);
    main.on("tileload", () => {
      if (this.loaded++ === 0) {
        this.grid.remove();
        tell(false);
      }
    });
    main.on("tileerror", () => {
      // Each of the tiles in view tells this.
      if (this.loaded === 0 && !this.missing) {
        this.grid.addTo(this.map);
        tell(true);
      }
    });
    tell(false);
    this.layers = [main, ...(choice.hybrid ? [L.tileLayer(esri("Reference/World_Boundaries_and_Places").url, { ...options, attribution: "" })] : [])];
    this.layers.forEach((layer) => layer.addTo(this.map));
  }
}
