// Markers on the plane; where they would be too many, near ones are drawn as one with their number.

import L from "leaflet";
import { t } from "@/i18n";
import { imageUrl } from "@/ui/images";
import { Grouping, type Found } from "./grouping";
import type { MapItem } from "./items";
import { lookOf, markerElement } from "./markerElement";
import type { Plane } from "./plane";
import { Spread } from "./spread";
import classes from "./map.module.css";

/** More markers than these are grouped, whatever the settings say: each is an element of the page. */
const MOST_SINGLE = 500;
/** How far beyond the visible part markers are kept, as a share of it. */
const PADDING = 0.3;
const MAX_GROUP_ZOOM = 17;
/** What is no further apart than this at the zoom where nothing is grouped would lie over each other there, pixels. */
const OVER = 12;

interface Drawn {
  marker: L.Marker;
  look: string;
}

export interface MarkerEvents {
  click: (item: MapItem) => void;
  hover: (item: MapItem, entered: boolean) => void;
  moved: (item: MapItem, to: L.LatLng) => void;
}

function showImage(link: string, show: (url: string) => void): void {
  void imageUrl(link).then(show, () => undefined);
}

export class Markers {
  private readonly drawn = new Map<string, Drawn>();
  private items: MapItem[] = [];
  /** The items by their ids, once one is asked for. */
  private byId: ReadonlyMap<string, MapItem> | undefined;
  private groups: Grouping | undefined;
  /** The group whose members stand around their place. */
  private spread: { id: string; drawn: Spread } | undefined;
  private draggable: (item: MapItem) => boolean = () => false;

  constructor(
    private readonly map: L.Map,
    private readonly plane: () => Plane,
    private readonly events: MarkerEvents,
  ) {
    map.on("moveend", () => this.refresh());
    map.on("zoomstart click", () => this.gather());
  }

  /** Whether markers are grouped now. */
  get grouped(): boolean {
    return this.groups !== undefined;
  }

  /** Shows these items and no others. */
  show(items: MapItem[], draggable: (item: MapItem) => boolean): void {
    this.items = items;
    this.draggable = draggable;
    this.byId = undefined;
    const clustering = items[0]?.layer.clustering;
    const isGrouped = items.length > MOST_SINGLE || items.some((item) => item.layer.clustering.enabled);
    this.groups = isGrouped ? this.group(items, clustering?.radius ?? 80, clustering?.maxZoom) : undefined;
    this.refresh();
  }

  private group(items: readonly MapItem[], radius: number, maxZoom: number | undefined): Grouping {
    const plane = this.plane();
    return new Grouping(items.length, (n) => plane.toGlobe(items[n]?.place ?? [0, 0]), radius, Math.floor(Math.min(MAX_GROUP_ZOOM, maxZoom ?? MAX_GROUP_ZOOM)));
  }

  /** Returns an item as it is now. */
  private newest(item: MapItem): MapItem {
    this.byId ??= new Map(this.items.map((one) => [one.id, one]));
    return this.byId.get(item.id) ?? item;
  }

  private refresh(): void {
    const wanted = new Set<string>();
    let isSpread = false;
    if (this.groups === undefined) {
      this.items.forEach((item) => {
        wanted.add(item.id);
        this.draw(item);
      });
    } else {
      isSpread = this.refreshGroups(this.groups, wanted);
    }
    if (!isSpread) {
      this.spread?.drawn.end();
      this.spread = undefined;
    }
    for (const [id, { marker }] of this.drawn) {
      if (!wanted.has(id)) {
        marker.remove();
        this.drawn.delete(id);
      }
    }
  }

  /** Returns whether what is spread is still there. */
  private refreshGroups(groups: Grouping, wanted: Set<string>): boolean {
    let isSpread = false;
    const plane = this.plane();
    const view = this.map.getBounds().pad(PADDING);
    const corners = [plane.toGlobe(plane.toPlace(view.getSouthWest())), plane.toGlobe(plane.toPlace(view.getNorthEast()))];
    const [west, south] = corners[0] ?? [-180, -85];
    const [east, north] = corners[1] ?? [180, 85];
    const isWhole = plane.kind === "geo" && view.getEast() - view.getWest() >= 360;
    const zoom = Math.max(0, Math.floor(plane.globeZoom(this.map.getZoom())));
    for (const found of groups.at(zoom, isWhole ? [-180, south, 180, north] : [west, south, east, north])) {
      const { alone, count, lng, lat } = found;
      // Places and number in the name: a group that stays the same is not drawn anew when values change.
      const id = alone === undefined ? `group ${zoom} ${lng.toFixed(5)} ${lat.toFixed(5)} ${count}` : "";
      const spread = this.spread?.id === id ? this.spread.drawn.places : undefined;
      isSpread ||= spread !== undefined;
      if (alone === undefined && spread === undefined) {
        wanted.add(id);
        if (!this.drawn.has(id)) {
          this.drawGroup(id, plane.toLatLng(plane.fromGlobe(lng, lat)), found);
        }
        continue;
      }
      (alone === undefined ? groups.membersOf(found) : [alone]).forEach((member, n) => {
        const item = this.items[member];
        if (item !== undefined) {
          wanted.add(item.id);
          this.draw(item, spread?.[n]);
        }
      });
    }
    return isSpread;
  }

  private drawGroup(id: string, at: L.LatLng, group: Found): void {
    const { count } = group;
    const element = document.createElement("div");
    element.className = classes["group"] ?? "";
    element.textContent = count >= 10_000 ? `${Math.round(count / 1_000)}k` : String(count);
    const size = count < 10 ? 34 : count < 100 ? 40 : count < 1_000 ? 48 : 56;
    const opens = this.items[0]?.layer.clustering.zoomOnClick !== false;
    const title = opens ? t("{n} here. Zooms in.", { n: count }) : t("{n} here.", { n: count });
    const marker = L.marker(at, { icon: L.divIcon({ html: element, className: "", iconSize: [size, size] }), title });
    if (opens) {
      marker.on("click", () => this.open(id, at, group));
    }
    marker.addTo(this.map);
    // Its text is the number alone.
    marker.getElement()?.setAttribute("aria-label", title);
    this.drawn.set(id, { marker, look: "" });
  }

  /** Goes closer to a group until it falls apart; one that never does is spread around its place. */
  private open(id: string, at: L.LatLng, group: Found): void {
    const places = (this.groups?.membersOf(group) ?? []).flatMap((n): L.LatLng[] => {
      const place = this.items[n]?.place;
      return place === undefined ? [] : [this.plane().toLatLng(place)];
    });
    const bounds = L.latLngBounds(places);
    const closest = this.map.getMaxZoom() - 4;
    const corners = [bounds.getSouthWest(), bounds.getNorthEast()].map((corner) => this.map.project(corner, closest));
    if (corners[0] !== undefined && corners[1] !== undefined && corners[0].distanceTo(corners[1]) <= OVER) {
      this.gather();
      this.spread = { id, drawn: new Spread(this.map, at, places.length) };
      this.refresh();
      return;
    }
    this.map.fitBounds(bounds, { padding: [40, 40], maxZoom: Math.max(this.map.getZoom() + 1, closest) });
  }

  /** Puts what is spread together again. */
  private gather(): void {
    if (this.spread !== undefined) {
      this.spread.drawn.end();
      this.spread = undefined;
      this.refresh();
    }
  }

  private draw(item: MapItem, beside?: L.LatLng): void {
    if (item.place === undefined) {
      return;
    }
    const at = beside ?? this.plane().toLatLng(item.place);
    const look = lookOf(item);
    const known = this.drawn.get(item.id);
    const mayMove = this.draggable(item);
    if (known === undefined) {
      const marker = L.marker(at, { icon: this.icon(item), title: item.entity.name, draggable: mayMove, riseOnHover: true });
      const current = (): MapItem => this.newest(item);
      marker.on("click", () => this.events.click(current()));
      marker.on("mouseover", () => this.events.hover(current(), true));
      marker.on("mouseout", () => this.events.hover(current(), false));
      marker.on("dragend", () => this.events.moved(current(), marker.getLatLng()));
      marker.addTo(this.map);
      this.drawn.set(item.id, { marker, look });
      return;
    }
    const { marker } = known;
    if (mayMove !== (marker.dragging?.enabled() ?? false)) {
      marker.dragging?.[mayMove ? "enable" : "disable"]();
    }
    // What somebody is dragging doesn't jump back under the pointer.
    if (!marker.getLatLng().equals(at) && marker.getElement()?.classList.contains("leaflet-drag-target") !== true) {
      marker.setLatLng(at);
    }
    if (known.look !== look) {
      marker.setIcon(this.icon(item));
      known.look = look;
    }
  }

  private icon(item: MapItem): L.DivIcon {
    const size = item.imageSize;
    const [x, y] = item.layer.marker.anchor;
    return L.divIcon({ html: markerElement(item, showImage), className: "", iconSize: [size, size], iconAnchor: [size * x, size * y] });
  }
}
