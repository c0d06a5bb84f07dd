// The map itself, outside React: it takes items in and tells of clicks and moves.

import L from "leaflet";
import "leaflet/dist/leaflet.css";
import type { Json } from "@/dashboard/model";
import { formatTime } from "@/i18n";
import { flat, type Step } from "./geometry";
import { isPlaced, type MapItem } from "./items";
import { Markers } from "./markers";
import type { MapModel, TileChoice } from "./model";
import type { OwnLook } from "./ownMap";
import { Plane } from "./plane";
import { Popups } from "./popups";
import { Shapes } from "./shapes";
import { TileBackground, type BackgroundState } from "./tiles";
import { Trips } from "./trips";

export interface MapEvents {
  click: (item: MapItem) => void;
  tag: (item: MapItem, name: string) => void;
  moved: (item: MapItem, to: L.LatLng) => void;
  background: (state: BackgroundState) => void;
}

/** Redrawing very many things waits until this much time has passed since the last time, milliseconds. */
const MANY = 2_000;
const MANY_REDRAW_MS = 500;
const START_ZOOM = 3;

function times(steps: readonly Step[]): Json {
  const [first, last] = [steps[0], steps.at(-1)];
  return first === undefined || last === undefined ? {} : { minTime: formatTime(first.ts), maxTime: formatTime(last.ts) };
}

export class MapView {
  readonly map: L.Map;
  plane: Plane;
  private items: readonly MapItem[] = [];
  /** Values of entities that functions know besides. */
  private beside: readonly Json[] = [];
  private readonly markers: Markers;
  readonly shapes: Shapes;
  readonly trips: Trips;
  private readonly popups: Popups;
  private readonly tiles: TileBackground | undefined;
  private picture: L.ImageOverlay | undefined;
  private readonly resizing: ResizeObserver;
  private fitted = 0;
  private touched = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private mayMove = false;

  constructor(
    host: HTMLElement,
    readonly model: MapModel,
    private readonly events: MapEvents,
  ) {
    const isGeo = model.kind === "geo";
    this.plane = new Plane(model.kind, 1);
    const { zoomBy, scales } = model;
    this.map = L.map(host, {
      ...(isGeo ? { maxZoom: 22, minZoom: 1, worldCopyJump: true } : { crs: L.CRS.Simple, minZoom: -5, maxZoom: 5, zoomSnap: 0.25 }),
      scrollWheelZoom: zoomBy.scroll,
      doubleClickZoom: zoomBy.doubleClick,
      zoomControl: false,
      attributionControl: isGeo,
      preferCanvas: false,
      center: isGeo ? (model.center ?? [20, 0]) : [0, 0],
      zoom: isGeo ? (model.zoom ?? (model.center === undefined ? START_ZOOM : 8)) : 0,
    });
    this.map.attributionControl?.setPrefix(false);
    if (zoomBy.buttons) {
      L.control.zoom({ position: model.controls }).addTo(this.map);
    }
    if (isGeo && (scales.metric || scales.imperial)) {
      L.control.scale({ metric: scales.metric, imperial: scales.imperial }).addTo(this.map);
    }
    const plane = (): Plane => this.plane;
    const common = {
      click: (item: MapItem) => this.clicked(item),
      hover: (item: MapItem, entered: boolean) => this.hovered(item, entered),
      moved: events.moved,
    };
    this.markers = new Markers(this.map, plane, common);
    this.shapes = new Shapes(this.map, plane, common);
    this.trips = new Trips(this.map, plane, {
      ...common,
      point: (item, step, at) =>
        this.popups.show(item, at, item.layer.trip.pointTooltip, [0, 0], { ...times(item.steps), ...this.valuesAt(item, step.ts), time: step.ts }, true),
    }, model.timeline?.snaps === true);
    this.popups = new Popups(this.map, () => this.items, () => [...this.items.map(({ data }) => data), ...this.beside], events.tag);
    this.tiles = isGeo ? new TileBackground(this.map, events.background) : undefined;
    // Whoever has moved the map is not moved back by new values.
    ["mousedown", "wheel", "keydown", "touchstart"].forEach((name) => host.addEventListener(name, () => (this.touched = true), { passive: true }));
    this.resizing = new ResizeObserver(() => this.resized());
    this.resizing.observe(host);
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.resizing.disconnect();
    this.popups.end();
    this.map.remove();
  }

  showTiles(choice: TileChoice, own: OwnLook | undefined): void {
    this.tiles?.show(choice, own);
  }

  /** Shows a picture as the background of an image map. */
  showPicture(url: string, aspect: number): void {
    this.plane = new Plane("image", aspect);
    this.picture?.remove();
    const picture = L.imageOverlay(url, this.plane.bounds, { alt: "", interactive: false }).addTo(this.map);
    this.picture = picture;
    this.fitPicture();
    this.redraw();
  }

  private fitPicture(): void {
    const { bounds } = this.plane;
    this.map.setMaxBounds(bounds.pad(1));
    this.map.setMinZoom(this.map.getBoundsZoom(bounds) - 1);
    this.map.fitBounds(bounds, { animate: false });
  }

  private resized(): void {
    this.map.invalidateSize({ animate: false });
    if (this.picture !== undefined && !this.touched) {
      this.fitPicture();
    }
  }

  /** Shows these items and no others. */
  setItems(items: readonly MapItem[], mayMove: boolean, beside: readonly Json[]): void {
    this.items = items;
    this.beside = beside;
    this.mayMove = mayMove;
    if (items.length < MANY || this.fitted === 0) {
      this.redraw();
    } else {
      this.timer ??= setTimeout(() => this.redraw(), MANY_REDRAW_MS);
    }
  }

  private redraw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const placed = this.items.filter(isPlaced);
    const of = (...kinds: string[]): MapItem[] => placed.filter((item) => kinds.includes(item.layer.kind));
    this.fit(placed);
    this.markers.show(of("markers"), (item) => this.mayMove && item.layer.edit.actions.has("move"));
    this.shapes.show(of("polygons", "circles", "polylines"));
    this.trips.show(of("trips"));
    this.popups.refresh((item) => this.placeOf(item));
  }

  /** Fits the view to all things when there are others than before, or one has left it. */
  private fit(placed: readonly MapItem[]): void {
    if (placed.length === 0 || this.model.kind === "image") {
      return;
    }
    const isFirst = this.fitted !== placed.length;
    this.fitted = placed.length;
    const follows = this.model.fit && this.model.center === undefined && !this.touched;
    const view = this.map.getBounds();
    if (follows && (isFirst || placed.some((item) => item.place !== undefined && !view.contains(this.plane.toLatLng(item.place))))) {
      this.fitAll(placed);
    }
  }

  fitAll(placed: readonly MapItem[] = this.items.filter(isPlaced)): void {
    if (this.model.kind === "image") {
      this.fitPicture();
      return;
    }
    const bounds = L.latLngBounds([]);
    placed.forEach((item) => {
      if (item.place !== undefined && item.steps.length === 0) {
        bounds.extend(this.plane.toLatLng(item.place));
      } else {
        this.boundsOf(item).forEach((at) => bounds.extend(at));
      }
    });
    if (bounds.isValid()) {
      this.map.fitBounds(bounds, { padding: [30, 30], maxZoom: this.model.zoom ?? this.model.fitZoom, animate: false });
    }
  }

  private boundsOf(item: MapItem): L.LatLng[] {
    if (item.circle !== undefined) {
      const center = this.plane.toLatLng(item.circle.center);
      const box = this.plane.kind === "geo" ? center.toBounds(item.circle.radius * 2) : center.toBounds(0);
      return [box.getSouthWest(), box.getNorthEast()];
    }
    const places = item.line === undefined ? (item.steps.length > 0 ? item.steps.map(({ place }) => place) : item.place === undefined ? [] : [item.place]) : flat(item.line);
    return places.map((place) => this.plane.toLatLng(place));
  }

  private placeOf(item: MapItem): L.LatLng | undefined {
    const place = item.layer.kind === "trips" ? this.trips.placeOf(item) : item.place;
    if (place !== undefined) {
      return this.plane.toLatLng(place);
    }
    const bounds = L.latLngBounds(this.boundsOf(item));
    return bounds.isValid() ? bounds.getCenter() : undefined;
  }

  private valuesAt(item: MapItem, ts: number): Json {
    const values: Json = {};
    for (const key of item.layer.keys) {
      const points = item.entity.points.get(key.name) ?? [];
      const point = points.findLast((one) => one.ts <= ts);
      if (key.type !== "attribute" && point !== undefined) {
        values[key.label] = Number.isFinite(Number(point.value)) ? Number(point.value) : point.value;
      }
    }
    return values;
  }

  private openTooltip(item: MapItem): void {
    const at = this.placeOf(item);
    if (at !== undefined && item.layer.tooltip.show) {
      const [x, y] = item.layer.kind === "markers" || item.layer.kind === "trips" ? item.layer.tooltip.offset : [0, 0];
      this.popups.show(item, at, item.layer.tooltip, [x * item.imageSize, y * item.imageSize], item.steps.length > 0 ? times(item.steps) : {});
    }
  }

  private clicked(item: MapItem): void {
    if (!item.layer.tooltip.onHover) {
      this.openTooltip(item);
    }
    this.events.click(item);
  }

  private hovered(item: MapItem, entered: boolean): void {
    if (item.layer.tooltip.onHover) {
      if (entered) {
        this.openTooltip(item);
      } else if (item.layer.tooltip.autoclose) {
        this.popups.hide(item.id);
      }
    }
  }

  /** Goes to an item and opens its tooltip, beside what covers the right of the map. */
  goTo(item: MapItem, covered = 0): void {
    this.touched = true;
    const at = this.placeOf(item);
    if (at === undefined) {
      return;
    }
    const bounds = L.latLngBounds(this.boundsOf(item));
    if (item.place !== undefined && item.steps.length === 0) {
      this.map.setView(at, this.model.kind === "geo" ? Math.max(this.map.getZoom(), Math.min(this.map.getMaxZoom(), this.model.fitZoom)) : this.map.getZoom(), { animate: false });
    } else {
      this.map.fitBounds(bounds, { padding: [30, 30], maxZoom: this.model.fitZoom, animate: false });
    }
    this.map.panBy([covered / 2, 0], { animate: false });
    this.openTooltip(item);
  }
}
