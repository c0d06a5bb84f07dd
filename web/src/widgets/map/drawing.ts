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

type Outline = Pick<MapItem, "line" | "circle">;

const outlineOf = ({ line, circle }: Outline): string => JSON.stringify([line, circle]);

/**
 * Handles at the corners of a shape, in the middle of its sides, and one that moves it whole.
 *
 * What somebody has dragged counts from then on, before it is stored and comes back: the next drag begins from it.
 */
export class Handles {
  private readonly handles = L.layerGroup();
  private outline: Outline;
  /** What the values said last. */
  private stored: string;
  private isDragging = false;
  private saving = 0;
  /** Shapes are stored one after the other: the last one stays. */
  private last: Promise<unknown> = Promise.resolve();

  /** `save` stores a shape, and says whether it could. */
  constructor(
    private readonly view: MapView,
    private item: MapItem,
    private readonly names: Names,
    private readonly save: (drawn: Drawn) => Promise<boolean>,
  ) {
    this.outline = item;
    this.stored = outlineOf(item);
    this.handles.addTo(view.map);
    this.draw();
  }

  end(): void {
    this.handles.remove();
  }

  /** Takes newer values; a shape that changed elsewhere is followed unless it is changed here at this moment. */
  follow(item: MapItem): void {
    this.item = item;
    const stored = outlineOf(item);
    if (stored !== this.stored) {
      this.stored = stored;
      if (!this.isDragging && this.saving === 0 && stored !== outlineOf(this.outline)) {
        this.outline = item;
        this.draw();
      }
    }
  }

  private async change(drawn: Outline): Promise<void> {
    this.outline = drawn;
    this.draw();
    this.saving += 1;
    const { circle, line = [] } = drawn;
    const turn = this.last.then(() => this.save(circle === undefined ? { line } : { circle }));
    this.last = turn;
    const isSaved = await turn;
    this.saving -= 1;
    if (!isSaved && this.outline === drawn) {
      this.view.shapes.restore(this.item.id);
      this.outline = this.item;
      this.draw();
    }
  }

  private draw(): void {
    this.handles.clearLayers();
    const { circle, line } = this.outline;
    if (circle !== undefined) {
      this.drawCircle(circle);
    } else if (line !== undefined) {
      this.drawLine(line);
    }
  }

  private add(at: L.LatLng, name: string, kind: "corner" | "middle" | "move"): L.Marker {
    const element = document.createElement("div");
    element.className = `${classes["handle"] ?? ""} ${classes[kind] ?? ""}`;
    const handle = L.marker(at, { draggable: true, title: name, zIndexOffset: 2_000, icon: L.divIcon({ html: element, className: "", iconSize: [16, 16] }) });
    handle.on("dragstart", () => (this.isDragging = true));
    handle.on("dragend", () => (this.isDragging = false));
    return handle.addTo(this.handles);
  }

  private get mayEdit(): boolean {
    return this.item.layer.edit.actions.has("edit");
  }

  private drawCircle(circle: Circle): void {
    const { plane, map } = this.view;
    const center = plane.toLatLng(circle.center);
    if (this.item.layer.edit.actions.has("move")) {
      const middle = this.add(center, this.names.move, "move");
      middle.on("dragend", () => void this.change({ line: undefined, circle: { ...circle, center: plane.toPlace(middle.getLatLng()) } }));
    }
    const shape = this.view.shapes.layerOf(this.item.id);
    if (this.mayEdit && shape instanceof L.Circle) {
      const edge = this.add(L.latLng(center.lat, shape.getBounds().getEast()), this.names.radius, "corner");
      edge.on("drag", () => shape.setRadius(map.distance(center, edge.getLatLng())));
      edge.on("dragend", () => void this.change({ line: undefined, circle: { ...circle, radius: plane.fromRadius(map.distance(center, edge.getLatLng())) } }));
    }
  }

  /** Draws the handles of an area or a line: of all its parts, and of what is cut out of them. */
  private drawLine(line: Nested[]): void {
    const { plane } = this.view;
    const closed = this.item.layer.kind === "polygons";
    const rings = ringsOf(line, closed);
    const corners: Corners = rings.map(({ places }) => places.map((place) => plane.toLatLng(place)));
    const change = (changed: Corners): void => void this.change({ circle: undefined, line: withRings(line, rings, changed.map((ring) => ring.map((point) => plane.toPlace(point)))) });
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
      const whole = this.add(center, this.names.move, "move");
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
      const corner = this.add(point, name, "corner");
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
        const middle = this.add(L.latLng((point.lat + next.lat) / 2, (point.lng + next.lng) / 2), this.names.middle, "middle");
        const added = (): L.LatLng[] => [...points.slice(0, n + 1), middle.getLatLng(), ...points.slice(n + 1)];
        middle.on("drag", () => show(added()));
        middle.on("dragend", () => change(added()));
      }
    });
  }
}
