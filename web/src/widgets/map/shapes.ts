// Polygons, circles and lines on the plane.

import type { LineString, MultiLineString, MultiPolygon, Polygon } from "geojson";
import L from "leaflet";
import { imageUrl } from "@/ui/images";
import type { MapItem } from "./items";
import { cleanMarkup } from "./markup";
import type { Plane } from "./plane";
import type { MarkerEvents } from "./markers";
import classes from "./map.module.css";

const SVG = "http://www.w3.org/2000/svg";
/** More shapes than these are drawn on a canvas, where each costs less but can't have a pattern. */
const MOST_ELEMENTS = 500;

function svgElement(name: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, String(value)));
  return element;
}

let nextPattern = 1;

/** Makes the pattern of a shape that is filled with stripes or a picture. */
function patternOf(item: MapItem): SVGElement | undefined {
  const { fillType, fillImage, stripe } = item.layer.shape;
  const id = `map-fill-${nextPattern++}`;
  if (fillType === "stripe") {
    const width = stripe.weight + stripe.spaceWeight;
    const pattern = svgElement("pattern", { id, width, height: width, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${stripe.angle - 90})` });
    pattern.append(svgElement("rect", { width, height: width, fill: stripe.space.color }), svgElement("rect", { width: stripe.weight, height: width, fill: stripe.color.color }));
    return pattern;
  }
  if (fillType === "image" && fillImage.link !== "") {
    const pattern = svgElement("pattern", { id, width: 1, height: 1, patternContentUnits: "objectBoundingBox" });
    const image = svgElement("image", { width: 1, height: 1, opacity: fillImage.opacity, preserveAspectRatio: fillImage.keepsAspect ? "xMidYMid slice" : "none", transform: `translate(0.5 0.5) rotate(${fillImage.angle}) scale(${fillImage.scale}) translate(-0.5 -0.5)` });
    void imageUrl(fillImage.link).then((url) => image.setAttribute("href", url), () => undefined);
    pattern.append(image);
    return pattern;
  }
  return undefined;
}

interface Drawn {
  layer: L.Circle | L.Polyline<LineString | MultiLineString | Polygon | MultiPolygon>;
  look: string;
  shape: string;
  pattern: SVGElement | undefined;
}

export class Shapes {
  private readonly drawn = new Map<string, Drawn>();
  private readonly byId = new Map<string, MapItem>();
  private readonly svg = L.svg({ padding: 0.5 });
  private readonly canvas = L.canvas({ padding: 0.3 });

  constructor(
    private readonly map: L.Map,
    private readonly plane: () => Plane,
    private readonly events: MarkerEvents,
  ) {}

  show(items: MapItem[]): void {
    const renderer = items.length > MOST_ELEMENTS ? this.canvas : this.svg;
    this.byId.clear();
    items.forEach((item) => {
      this.byId.set(item.id, item);
      this.draw(item, renderer);
    });
    for (const [id, { layer, pattern }] of this.drawn) {
      if (!this.byId.has(id)) {
        layer.remove();
        pattern?.remove();
        this.drawn.delete(id);
      }
    }
  }

  layerOf(id: string): Drawn["layer"] | undefined {
    return this.drawn.get(id)?.layer;
  }

  /** Draws a shape as its values say, which was reshaped by hand. */
  restore(id: string): void {
    const [item, known] = [this.byId.get(id), this.drawn.get(id)];
    if (item !== undefined && known !== undefined) {
      known.shape = "";
      this.reshape(item, known);
    }
  }

  private make(item: MapItem, renderer: L.Renderer): Drawn["layer"] | undefined {
    const plane = this.plane();
    if (item.circle !== undefined) {
      return L.circle(plane.toLatLng(item.circle.center), { radius: plane.toRadius(item.circle.radius), renderer });
    }
    const places = item.line === undefined ? undefined : plane.toLatLngs(item.line);
    return places === undefined ? undefined : item.layer.kind === "polylines" ? L.polyline(places, { renderer }) : L.polygon(places, { renderer });
  }

  private draw(item: MapItem, renderer: L.Renderer): void {
    const look = JSON.stringify([item.color, item.stroke, item.label]);
    let known = this.drawn.get(item.id);
    if (known === undefined) {
      const layer = this.make(item, renderer);
      if (layer === undefined) {
        return;
      }
      const current = (): MapItem => this.byId.get(item.id) ?? item;
      layer.on("click", () => this.events.click(current()));
      layer.on("mouseover", () => this.events.hover(current(), true));
      layer.on("mouseout", () => this.events.hover(current(), false));
      layer.addTo(this.map);
      const pattern = renderer === this.svg ? patternOf(item) : undefined;
      if (pattern !== undefined) {
        const element = layer.getElement();
        element?.parentNode?.insertBefore(pattern, element);
      }
      known = { layer, look: "", shape: this.shapeOf(item), pattern };
      this.drawn.set(item.id, known);
    }
    this.reshape(item, known);
    if (known.look !== look) {
      known.look = look;
      this.style(item, known);
    }
  }

  private shapeOf({ line, circle }: MapItem): string {
    return JSON.stringify([line, circle, this.plane().aspect]);
  }

  private reshape(item: MapItem, known: Drawn): void {
    const shape = this.shapeOf(item);
    if (known.shape === shape) {
      return;
    }
    known.shape = shape;
    const plane = this.plane();
    if (known.layer instanceof L.Circle && item.circle !== undefined) {
      known.layer.setLatLng(plane.toLatLng(item.circle.center)).setRadius(plane.toRadius(item.circle.radius));
    } else if (known.layer instanceof L.Polyline && item.line !== undefined) {
      known.layer.setLatLngs(plane.toLatLngs(item.line));
    }
  }

  private style(item: MapItem, { layer, pattern }: Drawn): void {
    const { shape } = item.layer;
    layer.setStyle({
      color: item.stroke,
      opacity: shape.strokeOpacity,
      weight: shape.strokeWeight,
      fill: item.layer.kind !== "polylines",
      fillColor: pattern === undefined ? item.color : `url(#${pattern.id})`,
      fillOpacity: pattern === undefined ? shape.fillOpacity : 1,
    });
    layer.unbindTooltip();
    if (item.label !== undefined && item.label !== "") {
      const element = document.createElement("div");
      element.append(cleanMarkup(item.label));
      layer.bindTooltip(element, { permanent: true, direction: "center", className: classes["shapeLabel"] ?? "" });
    }
  }
}
