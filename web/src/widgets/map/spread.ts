// Markers of one place, spread around it so that each can be clicked.

import L from "leaflet";
import { spreadOffsets } from "./geometry";

/** Lines from a place to the markers that stand around it. */
export class Spread {
  readonly places: L.LatLng[];
  private readonly lines: L.LayerGroup;

  constructor(map: L.Map, middle: L.LatLng, count: number) {
    const from = map.latLngToLayerPoint(middle);
    this.places = spreadOffsets(count).map((offset) => map.layerPointToLatLng(from.add(offset)));
    this.lines = L.layerGroup(this.places.map((to) => L.polyline([middle, to], { color: "#777", weight: 1, interactive: false }))).addTo(map);
  }

  end(): void {
    this.lines.remove();
  }
}
