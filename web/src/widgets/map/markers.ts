// Markers on the plane; where they would be too many, near ones are drawn as one with their number.

import L from "leaflet";
import { t } from "@/i18n";
import { imageUrl } from "@/ui/images";
import type { Place } from "./geometry";
import { Grouping } from "./grouping";
import type { MapItem } from "./items";
import { lookOf, markerElement } from "./markerElement";
import type { Plane } from "./plane";
import classes from "./map.module.css";

/** More markers than these are grouped, whatever the settings say: each is an element of the page. */
const MOST_SINGLE = 500;
/** How far beyond the visible part markers are kept, as a share of it. */
const PADDING = 0.3;
const MAX_GROUP_ZOOM = 17;

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
  private draggable: (item: MapItem) => boolean = () => false;

  constructor(
    private readonly map: L.Map,
    private readonly plane: () => Plane,
    private readonly events: MarkerEvents,
  ) {
    map.on("moveend", () => this.refresh());
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
    if (this.groups === undefined) {
      this.items.forEach((item) => {
        wanted.add(item.id);
        this.draw(item);
      });
    } else {
      this.refreshGroups(this.groups, wanted);
    }
    for (const [id, { marker }] of this.drawn) {
      if (!wanted.has(id)) {
        marker.remove();
        this.drawn.delete(id);
      }
    }
  }

  private refreshGroups(groups: Grouping, wanted: Set<string>): void {
    const plane = this.plane();
    const view = this.map.getBounds().pad(PADDING);
    const corners = [plane.toGlobe(plane.toPlace(view.getSouthWest())), plane.toGlobe(plane.toPlace(view.getNorthEast()))];
    const [west, south] = corners[0] ?? [-180, -85];
    const [east, north] = corners[1] ?? [180, 85];
    const isWhole = plane.kind === "geo" && view.getEast() - view.getWest() >= 360;
    const zoom = Math.max(0, Math.floor(plane.globeZoom(this.map.getZoom())));
    for (const { alone, count, lng, lat } of groups.at(zoom, isWhole ? [-180, south, 180, north] : [west, south, east, north])) {
      if (alone === undefined) {
        // Places and number in the name: a group that stays the same is not drawn anew when values change.
        const id = `group ${zoom} ${lng.toFixed(5)} ${lat.toFixed(5)} ${count}`;
        wanted.add(id);
        if (!this.drawn.has(id)) {
          this.drawGroup(id, plane.toLatLng(plane.fromGlobe(lng, lat)), count);
        }
      } else {
        const item = this.items[alone];
        if (item !== undefined) {
          wanted.add(item.id);
          this.draw(item);
        }
      }
    }
  }

  private drawGroup(id: string, at: L.LatLng, count: number): void {
    const element = document.createElement("div");
    element.className = classes["group"] ?? "";
    element.textContent = count >= 10_000 ? `${Math.round(count / 1_000)}k` : String(count);
    const size = count < 10 ? 34 : count < 100 ? 40 : count < 1_000 ? 48 : 56;
    const marker = L.marker(at, { icon: L.divIcon({ html: element, className: "", iconSize: [size, size] }), title: t("{n} here. Zooms in.", { n: count }) });
    marker.on("click", () => this.open(at, count));
    marker.addTo(this.map);
    // Its text is the number alone.
    marker.getElement()?.setAttribute("aria-label", t("{n} here. Zooms in.", { n: count }));
    this.drawn.set(id, { marker, look: "" });
  }

  /** Goes closer to a group until it falls apart. */
  private open(at: L.LatLng, count: number): void {
    const [lng, lat] = this.plane().toGlobe(this.plane().toPlace(at));
    const zoom = Math.max(0, Math.floor(this.plane().globeZoom(this.map.getZoom())));
    const near = this.groups?.at(zoom, [lng - 1e-4, lat - 1e-4, lng + 1e-4, lat + 1e-4]).find((one) => one.alone === undefined && one.count === count);
    if (near === undefined || this.groups === undefined) {
      this.map.setView(at, this.map.getZoom() + 2);
      return;
    }
    const places = this.groups.membersOf(near).flatMap((n): Place[] => {
      const place = this.items[n]?.place;
      return place === undefined ? [] : [place];
    });
    const bounds = L.latLngBounds(places.map((place) => this.plane().toLatLng(place)));
    this.map.fitBounds(bounds, { padding: [40, 40], maxZoom: Math.max(this.map.getZoom() + 1, this.map.getMaxZoom() - 4) });
  }

  private draw(item: MapItem): void {
    if (item.place === undefined) {
      return;
    }
    const at = this.plane().toLatLng(item.place);
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
