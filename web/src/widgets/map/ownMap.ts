// The server's own map: vector tiles of one file, of which ranges are asked for, drawn on canvases.

import L from "leaflet";
import { EtagMismatch, PMTiles, type Header, type RangeResponse, type Source } from "pmtiles";
import { leafletLayer } from "protomaps-leaflet";
import { api } from "@/api/client";
import type { Scheme } from "../color";

const PATH = "/api/map/tiles.pmtiles";
const CREDIT = '<a href="https://protomaps.com">Protomaps</a> &copy; <a href="https://www.openstreetmap.org/copyright">OpenStreetMap</a> contributors';
const WORLD: L.LatLngBoundsLiteral = [[-90, -180], [90, 180]];

/** How the own map is drawn. */
export interface OwnLook {
  scheme: Scheme;
  /** In which language places are named, where the map knows their names in it. */
  language: string;
}

/** The file, read with the token of whoever is logged in. */
class OwnFile implements Source {
  getKey(): string {
    return PATH;
  }

  async getBytes(offset: number, length: number, signal?: AbortSignal, etag?: string): Promise<RangeResponse> {
    const { data, tag } = await api.part(PATH, offset, length, signal);
    if (etag !== undefined && tag !== etag) {
      // Another file has taken its place: its directory is read again.
      throw new EtagMismatch("The map is another one now.");
    }
    return tag === undefined ? { data } : { data, etag: tag };
  }
}

export class OwnMap {
  private readonly bounds: L.LatLngBounds;

  constructor(
    private readonly file: PMTiles,
    private readonly header: Header,
  ) {
    const { minLat, minLon, maxLat, maxLon } = header;
    this.bounds = L.latLngBounds(minLat < maxLat && minLon < maxLon ? [[minLat, minLon], [maxLat, maxLon]] : WORLD);
  }

  /** Whether it has something to show there. */
  covers(at: L.LatLng, zoom: number): boolean {
    // A tile of the file is twice as wide as one of the map.
    return this.bounds.contains(at) && Math.max(0, zoom - 1) >= this.header.minZoom;
  }

  layer({ scheme, language }: OwnLook, maxZoom: number): L.GridLayer {
    // The library looks for Leaflet where pages without modules have it.
    Object.assign(window, { L });
    return leafletLayer({
      maxZoom,
      url: this.file,
      maxDataZoom: this.header.maxZoom,
      bounds: this.bounds,
      flavor: scheme,
      lang: language,
      attribution: CREDIT,
    }) as unknown as L.GridLayer;
  }
}

let opened: Promise<OwnMap> | undefined;

/** Reads what the own map has; all maps of the page share it. */
export async function openOwnMap(): Promise<OwnMap> {
  opened ??= (async () => {
    const file = new PMTiles(new OwnFile());
    return new OwnMap(file, await file.getHeader());
  })();
  // What failed once may work later.
  opened.catch(() => (opened = undefined));
  return opened;
}
