// Drawing and reshaping by pointer: places, polygons, lines and circles.

import L from "leaflet";
import { ringsOf, withRings, type Circle, type Nested } from "./geometry";
import type { LayerKind } from "./layer";
import type { MapItem } from "./items";
import type { MapView } from "./MapView";
import type { Drawn } from "./saving";
import classes from "./map.module.css";

const STYLE: L.PathOptions = { color: "#e8590c", weight: 2, dashArray: "6 4", interactive: false };

/** Draws something new, point by point. */
export class Drawing {
  private readonly points: L.LatLng[] = [];
  private readonly preview = L.layerGroup();

  constructor(
    private readonly view: MapView,
    private readonly kind: LayerKind,
    private readonly onDone: (drawn: Drawn) => void,
    private readonly onPoints: (n: number) => void,
  ) {
    this.preview.addTo(view.map);
    view.map.doubleClickZoom.disable();
    view.map.on("click", this.clicked);
    view.map.on("dblclick", this.finish);
    view.map.getContainer().classList.add(classes["drawing"] ?? "");
  }

  private readonly clicked = (event: L.LeafletMouseEvent): void => this.add(event.latlng);

  /** Adds the middle of the map as a point, for those who have no pointer. */
  addMiddle(): void {
    this.add(this.view.map.getCenter());
  }

  private add(at: L.LatLng): void {
    this.points.push(at);
    this.onPoints(this.points.length);
    if (this.kind === "markers" || (this.kind === "circles" && this.points.length === 2)) {
      this.finish();
      return;
    }
    this.preview.clearLayers();
    this.points.forEach((point) => this.preview.addLayer(L.circleMarker(point, { ...STYLE, radius: 4 })));
    this.preview.addLayer(this.kind === "polygons" ? L.polygon(this.points, STYLE) : L.polyline(this.points, STYLE));
  }

  /** How many points are needed before it can be finished. */
  get needed(): number {
    return this.kind === "polygons" ? 3 : this.kind === "markers" ? 1 : 2;
  }

  readonly finish = (): void => {
    const { plane, map } = this.view;
    // A double click has added its place twice.
    const places = this.points.filter((point, n) => n === 0 || !point.equals(this.points[n - 1] ?? [0, 0])).map((point) => plane.toPlace(point));
    const [first, second] = this.points;
    if (places.length < this.needed || first === undefined) {
      return;
    }
    const place = plane.toPlace(first);
    this.end();
    if (this.kind === "circles") {
      this.onDone(second === undefined ? undefined : { circle: { center: place, radius: plane.fromRadius(map.distance(first, second)) } });
    } else {
      this.onDone(this.kind === "markers" ? { place } : { line: places });
    }
  };

  end(): void {
    const { map } = this.view;
    map.off("click", this.clicked);
    map.off("dblclick", this.finish);
    map.doubleClickZoom.enable();
    map.getContainer().classList.remove(classes["drawing"] ?? "");
    this.preview.remove();
  }
}

function handle(at: L.LatLng, name: string, kind: "corner" | "middle" | "move"): L.Marker {
  const element = document.createElement("div");
  element.className = `${classes["handle"] ?? ""} ${classes[kind] ?? ""}`;
  return L.marker(at, { draggable: true, title: name, zIndexOffset: 2_000, icon: L.divIcon({ html: element, className: "", iconSize: [16, 16] }) });
}

interface Names {
  corner: string;
  hole: string;
  middle: string;
  move: string;
  radius: string;
}

interface RingHandles {
  closed: boolean;
  /** Whether it can be taken away whole. */
  mayGo: boolean;
  name: string;
  show: (ring: L.LatLng[]) => void;
  change: (ring: L.LatLng[]) => void;
}

/** Corners of the rings or lines of a shape. */
type Corners = L.LatLng[][];

const replaced = <T>(all: readonly T[], at: number, by: T): T[] => all.map((one, n) => (n === at ? by : one));

/** Handles at the corners of a shape, in the middle of its sides, and one that moves it whole. */
export class Handles {
  private readonly handles = L.layerGroup();

  constructor(
    private readonly view: MapView,
    private readonly item: MapItem,
    private readonly names: Names,
    private readonly onChange: (drawn: Drawn) => void,
  ) {
    this.handles.addTo(view.map);
    this.draw();
  }

  end(): void {
    this.handles.remove();
  }

  private draw(): void {
    this.handles.clearLayers();
    const { circle, line } = this.item;
    if (circle !== undefined) {
      this.drawCircle(circle);
    } else if (line !== undefined) {
      this.drawLine(line);
    }
  }

  private get mayEdit(): boolean {
    return this.item.layer.edit.actions.has("edit");
  }

  private drawCircle(circle: Circle): void {
    const { plane, map } = this.view;
    const center = plane.toLatLng(circle.center);
    if (this.item.layer.edit.actions.has("move")) {
      const middle = handle(center, this.names.move, "move").addTo(this.handles);
      middle.on("dragend", () => this.onChange({ circle: { ...circle, center: plane.toPlace(middle.getLatLng()) } }));
    }
    const shape = this.view.shapes.layerOf(this.item.id);
    if (this.mayEdit && shape instanceof L.Circle) {
      const edge = handle(L.latLng(center.lat, shape.getBounds().getEast()), this.names.radius, "corner").addTo(this.handles);
      edge.on("drag", () => shape.setRadius(map.distance(center, edge.getLatLng())));
      edge.on("dragend", () => this.onChange({ circle: { ...circle, radius: plane.fromRadius(map.distance(center, edge.getLatLng())) } }));
    }
  }

  /** Draws the handles of an area or a line: of all its parts, and of what is cut out of them. */
  private drawLine(line: Nested[]): void {
    const { plane } = this.view;
    const closed = this.item.layer.kind === "polygons";
    const rings = ringsOf(line, closed);
    const corners: Corners = rings.map(({ places }) => places.map((place) => plane.toLatLng(place)));
    const change = (changed: Corners): void => this.onChange({ line: withRings(line, rings, changed.map((ring) => ring.map((point) => plane.toPlace(point)))) });
    const shape = this.view.shapes.layerOf(this.item.id);
    const show = (changed: Corners): void => {
      if (shape instanceof L.Polyline) {
        shape.setLatLngs(withRings(line, rings, changed) as L.LatLng[][]);
      }
    };
    if (this.mayEdit) {
      rings.forEach(({ isHole }, at) => {
        const put = (ring: L.LatLng[]): Corners => replaced(corners, at, ring);
        // A hole goes with its third last corner, and so does one line of several with its last but one.
        const mayGo = closed ? isHole : rings.length > 1;
        this.drawRing(corners[at] ?? [], { closed, mayGo, name: isHole ? this.names.hole : this.names.corner, show: (ring) => show(put(ring)), change: (ring) => change(put(ring)) });
      });
    }
    if (this.item.layer.edit.actions.has("move")) {
      const center = L.latLngBounds(corners.flat()).getCenter();
      const whole = handle(center, this.names.move, "move").addTo(this.handles);
      const moved = (): Corners => {
        const to = whole.getLatLng();
        return corners.map((ring) => ring.map((point) => L.latLng(point.lat + to.lat - center.lat, point.lng + to.lng - center.lng)));
      };
      whole.on("drag", () => show(moved()));
      whole.on("dragend", () => change(moved()));
    }
  }

  private drawRing(points: L.LatLng[], { closed, mayGo, name, show, change }: RingHandles): void {
    points.forEach((point, n) => {
      const corner = handle(point, name, "corner").addTo(this.handles);
      const moved = (): L.LatLng[] => replaced(points, n, corner.getLatLng());
      corner.on("drag", () => show(moved()));
      corner.on("dragend", () => change(moved()));
      corner.on("dblclick", () => {
        if (points.length > (closed ? 3 : 2)) {
          change(points.filter((_one, at) => at !== n));
        } else if (mayGo) {
          change([]);
        }
      });
      const next = points[n + 1] ?? (closed ? points[0] : undefined);
      if (next !== undefined) {
        const middle = handle(L.latLng((point.lat + next.lat) / 2, (point.lng + next.lng) / 2), this.names.middle, "middle").addTo(this.handles);
        const added = (): L.LatLng[] => [...points.slice(0, n + 1), middle.getLatLng(), ...points.slice(n + 1)];
        middle.on("drag", () => show(added()));
        middle.on("dragend", () => change(added()));
      }
    });
  }
}
