// The background of a map: tiles from the web or the server's own map, and a plain grid where neither can be had.

import L from "leaflet";
import { cleanText } from "./markup";
import type { TileChoice } from "./model";
import type { OwnLook, OwnMap } from "./ownMap";
import { backgroundOf, NAMES, tilesOf, type Background } from "./providers";

export interface BackgroundState {
  /** There is nothing but the grid. */
  missing: boolean;
  /** What was asked for needs a program of its own. */
  approximated: boolean;
  /** The server's own map stands in for pictures that don't come. */
  replaced: boolean;
}

export const NOTHING_AMISS: BackgroundState = { missing: false, approximated: false, replaced: false };

const MAX_ZOOM = 22;

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
  private shown: TileChoice | undefined;
  private drawn: Background = "wait";
  private state = NOTHING_AMISS;
  /** Tiles of the pictures that came, and whether there was one that didn't before any did. */
  private loaded = 0;
  private failed = false;
  /** How the server's own map looks, where there is one. */
  private look: OwnLook | undefined;
  private own: OwnMap | "asked" | "unreadable" | undefined;

  constructor(
    private readonly map: L.Map,
    private readonly onState: (state: BackgroundState) => void,
  ) {
    // What the server's own map doesn't reach is shown by pictures.
    map.on("moveend", () => this.draw());
    map.on("unload", () => (this.shown = undefined));
  }

  show(choice: TileChoice, look: OwnLook | undefined): void {
    const isOther = choice !== this.shown;
    if (isOther || (look !== this.look && this.drawn === "own")) {
      this.failed = this.failed && !isOther;
      this.clear();
    }
    this.shown = choice;
    this.look = look;
    this.draw();
  }

  private draw(): void {
    if (this.shown === undefined) {
      return;
    }
    const tiles = tilesOf(this.shown);
    const next = backgroundOf(tiles, this.failed, this.look === undefined ? false : this.covers());
    if ((tiles.ownFirst === true || this.failed) && this.look !== undefined && this.own === undefined) {
      void this.open();
    }
    if (next === this.drawn) {
      return;
    }
    this.clear();
    this.drawn = next;
    if (next === "pictures") {
      this.addPictures(this.shown);
    } else if (next === "own") {
      this.addOwn(tiles);
    }
  }

  private covers(): boolean | undefined {
    if (typeof this.own === "object") {
      return this.own.covers(this.map.getCenter().wrap(), this.map.getZoom());
    }
    return this.own === "unreadable" ? false : undefined;
  }

  private async open(): Promise<void> {
    this.own = "asked";
    try {
      const { openOwnMap } = await import("./ownMap");
      this.own = await openOwnMap();
    } catch {
      this.own = "unreadable";
    }
    this.draw();
  }

  private clear(): void {
    this.layers.forEach((layer) => layer.remove());
    this.layers = [];
    this.grid.remove();
    this.drawn = "wait";
  }

  private tell(state: Partial<BackgroundState>): void {
    const approximated = this.shown !== undefined && tilesOf(this.shown).approximated === true;
    this.state = { ...NOTHING_AMISS, approximated, ...state };
    this.onState(this.state);
  }

  private add(layers: L.Layer[]): void {
    this.layers = layers;
    layers.forEach((layer) => layer.addTo(this.map));
  }

  private addPictures(choice: TileChoice): void {
    const tiles = tilesOf(choice);
    this.loaded = 0;
    // Tile servers want to know who asks; they are told the origin and no more.
    const options = { maxNativeZoom: tiles.maxZoom, maxZoom: MAX_ZOOM, attribution: cleanText(tiles.attribution), referrerPolicy: "strict-origin" as const };
    const main = L.tileLayer(tiles.url, options);
    main.on("tileload", () => {
      if (this.loaded++ === 0) {
        this.failed = false;
        this.grid.remove();
        this.tell({});
      }
    });
    main.on("tileerror", () => {
      // Each of the tiles in view tells this.
      if (this.loaded > 0 || this.state.missing || this.layers[0] !== main) {
        return;
      }
      this.failed = true;
      this.draw();
      if (this.layers[0] === main) {
        this.grid.addTo(this.map);
        this.tell({ missing: true });
      }
    });
    this.tell({});
    this.add([main, ...(choice.hybrid ? [L.tileLayer(NAMES.url, { ...options, attribution: "" })] : [])]);
  }

  private addOwn({ ownFirst }: { ownFirst?: true }): void {
    if (typeof this.own === "object" && this.look !== undefined) {
      // Beside what the file has there is the grid.
      this.grid.addTo(this.map);
      this.tell({ replaced: ownFirst !== true });
      this.add([this.own.layer(this.look, MAX_ZOOM)]);
    }
  }
}
