// Trips: the path of something, the points at which it told its place, and where it is at a moment.

import L from "leaflet";
import { imageUrl } from "@/ui/images";
import { safeColor, rangeColor } from "../color";
import { bearing, placeAt, type Place, type Step } from "./geometry";
import type { MapItem } from "./items";
import { isPicture, lookOf, markerElement } from "./markerElement";
import type { MarkerEvents } from "./markers";
import type { Plane } from "./plane";

interface Drawn {
  layers: L.LayerGroup;
  path: L.Polyline;
  points: L.LayerGroup;
  arrows: L.LayerGroup;
  marker: L.Marker | undefined;
  look: string;
  steps: readonly Step[];
}

export interface TripEvents extends MarkerEvents {
  point: (item: MapItem, step: Step, at: L.LatLng) => void;
}

/** A path has this many arrows at most. */
const MOST_ARROWS = 40;

/** Returns the direction in which something goes at a step; at the last one that of the step before. */
export function directionAt(steps: readonly Step[], n: number, kind: "geo" | "image"): number {
  for (let at = Math.min(n, steps.length - 2); at >= 0; at--) {
    const [from, to] = [steps[at]?.place, steps[at + 1]?.place];
    if (from !== undefined && to !== undefined && (from[0] !== to[0] || from[1] !== to[1])) {
      return bearing(from, to, kind);
    }
  }
  return 0;
}

function pointColor(item: MapItem, step: Step): string {
  const { color, rangeKey, range } = item.layer.trip.pointColor;
  const value = rangeKey === undefined ? undefined : item.entity.points.get(rangeKey.name)?.find(({ ts }) => ts === step.ts)?.value;
  return (value === undefined ? undefined : rangeColor(range, Number(value))) ?? safeColor(color) ?? "#307FE5";
}

export class Trips {
  private readonly drawn = new Map<string, Drawn>();
  private readonly byId = new Map<string, MapItem>();
  private readonly canvas = L.canvas({ padding: 0.3 });
  private moment: number | undefined;

  constructor(
    private readonly map: L.Map,
    private readonly plane: () => Plane,
    private readonly events: TripEvents,
    /** Whether things are only where they told to be. */
    private readonly snaps: boolean,
  ) {}

  show(items: MapItem[]): void {
    this.byId.clear();
    items.forEach((item) => {
      this.byId.set(item.id, item);
      this.draw(item);
    });
    for (const [id, { layers }] of this.drawn) {
      if (!this.byId.has(id)) {
        layers.remove();
        this.drawn.delete(id);
      }
    }
  }

  /** Moves markers to where they were at a moment; to the last known places if it is left out. */
  readonly at = (moment: number | undefined): void => {
    this.moment = moment;
    this.byId.forEach((item) => this.place(item));
  };

  /** Returns where an item is drawn now. */
  placeOf(item: MapItem): Place | undefined {
    return placeAt(item.steps, this.moment ?? Infinity, this.snaps)?.place;
  }

  private draw(item: MapItem): void {
    const known = this.drawn.get(item.id) ?? this.begin(item);
    const { trip } = item.layer;
    if (known.steps !== item.steps) {
      known.steps = item.steps;
      known.path.setLatLngs(trip.showPath ? item.steps.map(({ place }) => this.plane().toLatLng(place)) : []);
      this.drawPoints(item, known);
      this.drawArrows(item, known);
    }
    known.path.setStyle({ color: item.stroke, weight: trip.pathWeight, opacity: 1 });
    this.place(item);
  }

  private begin(item: MapItem): Drawn {
    const path = L.polyline([], { renderer: this.canvas, interactive: false });
    const [points, arrows] = [L.layerGroup(), L.layerGroup()];
    const known: Drawn = { layers: L.layerGroup([path, points, arrows]).addTo(this.map), path, points, arrows, marker: undefined, look: "", steps: [] };
    this.drawn.set(item.id, known);
    return known;
  }

  private drawPoints(item: MapItem, { points }: Drawn): void {
    points.clearLayers();
    const { trip } = item.layer;
    if (!trip.showPoints) {
      return;
    }
    for (const step of item.steps) {
      const at = this.plane().toLatLng(step.place);
      const point = L.circleMarker(at, { renderer: this.canvas, radius: trip.pointSize / 2, stroke: false, fillOpacity: 1, fillColor: pointColor(item, step) });
      if (trip.pointTooltip.show) {
        point.on(trip.pointTooltip.onHover ? "mouseover" : "click", () => this.events.point(this.byId.get(item.id) ?? item, step, at));
      }
      points.addLayer(point);
    }
  }

  private drawArrows(item: MapItem, { arrows }: Drawn): void {
    arrows.clearLayers();
    const { steps, layer } = item;
    if (!layer.trip.arrows || steps.length < 2) {
      return;
    }
    const every = Math.max(1, Math.ceil(steps.length / MOST_ARROWS));
    for (let n = Math.floor(every / 2); n < steps.length - 1; n += every) {
      const step = steps[n];
      if (step !== undefined) {
        const element = document.createElement("div");
        const { arrowColor, arrowSize, dashes } = layer.trip;
        element.textContent = dashes ? "❙" : "▲";
        element.style.cssText = `color: ${arrowColor ?? item.stroke}; transform: rotate(${directionAt(steps, n, this.plane().kind)}deg); font-size: ${arrowSize * 1.4}px; line-height: 16px; text-align: center`;
        arrows.addLayer(L.marker(this.plane().toLatLng(step.place), { icon: L.divIcon({ html: element, className: "", iconSize: [16, 16] }), interactive: false, keyboard: false }));
      }
    }
  }

  private place(item: MapItem): void {
    const known = this.drawn.get(item.id);
    const now = placeAt(item.steps, this.moment ?? Infinity, this.snaps);
    const { trip, marker: style } = item.layer;
    if (known === undefined || now === undefined || !trip.showMarker) {
      known?.marker?.remove();
      return;
    }
    const at = this.plane().toLatLng(now.place);
    const look = lookOf(item);
    known.marker ??= this.beginMarker(item, at);
    if (!known.layers.hasLayer(known.marker)) {
      known.layers.addLayer(known.marker);
    }
    if (known.look !== look) {
      const size = item.imageSize;
      known.look = look;
      const element = markerElement(item, (link, show) => void imageUrl(link).then(show, () => undefined).then(() => this.place(item)));
      known.marker.setIcon(L.divIcon({ html: element, className: "", iconSize: [size, size], iconAnchor: [size * style.anchor[0], size * style.anchor[1]] }));
    }
    known.marker.setLatLng(at);
    const drawing = known.marker.getElement()?.querySelector<HTMLElement>("[data-look]");
    if (trip.rotate && drawing instanceof Element) {
      // Our shapes look up, pictures look to the right, as ThingsBoard has them.
      const turn = directionAt(item.steps, now.n, this.plane().kind) + trip.offsetAngle - (isPicture(item) ? 90 : 0);
      drawing.style.transform = `rotate(${turn.toFixed(1)}deg)`;
    }
  }

  private beginMarker(item: MapItem, at: L.LatLng): L.Marker {
    // Leaflet's own picture is none of ours: what the marker looks like follows.
    const marker = L.marker(at, { title: item.entity.name, zIndexOffset: 1_000, icon: L.divIcon({ className: "", iconSize: [0, 0] }) });
    const current = (): MapItem => this.byId.get(item.id) ?? item;
    marker.on("click", () => this.events.click(current()));
    marker.on("mouseover", () => this.events.hover(current(), true));
    marker.on("mouseout", () => this.events.hover(current(), false));
    return marker;
  }
}
