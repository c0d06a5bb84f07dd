// How a marker looks: a shape in its colour, or a picture, with its label below.

import { loadDrawing } from "@/icons/drawings";
import type { MapItem } from "./items";
import { cleanMarkup } from "./markup";
import classes from "./map.module.css";

const SVG = "http://www.w3.org/2000/svg";
const PIN = "M17 33 C 9 21 6 18 6 12 A 11 11 0 0 1 28 12 C 28 18 25 21 17 33 Z";
const HOLE = "M17 6.5 A 5.5 5.5 0 1 0 17.01 6.5 Z";

/** Shapes on 34 by 34, by the end of their names in settings; their tip is at the middle of the lower edge, that of trips in the middle. */
const SHAPES: Record<string, string> = {
  markerShape1: `${PIN} ${HOLE}`,
  markerShape2: PIN,
  markerShape3: "M6 2 H28 V24 H22 L17 33 L12 24 H6 Z M17 7.5 A 5 5 0 1 0 17.01 7.5 Z",
  markerShape4: "M6 2 H28 V24 H22 L17 33 L12 24 H6 Z",
  markerShape5: "M17 1 L28 13 L17 33 L6 13 Z",
  markerShape6: "M15.5 33 V19.8 A 10 10 0 1 1 18.5 19.8 V33 Z",
  markerShape7: "M15 33 V2 H30 L25 9 L30 16 H18 V33 Z",
  markerShape8: "M17 33 L9 24 A 13 13 0 1 1 25 24 Z M17 7 A 6 6 0 1 0 17.01 7 Z",
  markerShape9: "M17 33 L4 8 Q17 -4 30 8 Z",
  markerShape10: "M17 13 A 10 10 0 1 0 17.01 13 Z M17 19 A 4 4 0 1 1 16.99 19 Z",
  tripMarkerShape1: "M17 2 L29 31 L17 25 L5 31 Z",
  tripMarkerShape2: "M17 1 A 16 16 0 1 0 17.01 1 Z M17 6 L26 26 L17 21.5 L8 26 Z",
  tripMarkerShape3: "M17 2 L31 30 H3 Z",
  tripMarkerShape4: "M17 2 L30 16 H22 V32 H12 V16 H4 Z",
  tripMarkerShape5: "M11 4 Q17 0 23 4 L25 12 V30 Q17 34 9 30 V12 Z M12 12 H22 L21 8 Q17 6 13 8 Z",
  tripMarkerShape6: "M9 9 L17 1 L25 9 V33 H9 Z",
  tripMarkerShape7: "M17 1 Q27 12 24 30 L17 33 L10 30 Q7 12 17 1 Z",
  tripMarkerShape8: "M17 1 L20 12 L33 20 V24 L20 20 L19 29 L23 32 V33 H11 V32 L15 29 L14 20 L1 24 V20 L14 12 Z",
  tripMarkerShape9: "M17 3 A 14 14 0 1 0 17.01 3 Z",
  tripMarkerShape10: "M17 5 L29 17 L17 12 L5 17 Z M17 16 L29 28 L17 23 L5 28 Z",
};

function shapeElement(path: string, color: string, size: number): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  const drawn = document.createElementNS(SVG, "path");
  for (const [name, value] of Object.entries({ viewBox: "-1 -1 36 36", width: size, height: size, "aria-hidden": "true" })) {
    svg.setAttribute(name, String(value));
  }
  for (const [name, value] of Object.entries({ d: path, fill: color, stroke: "#fff", "stroke-width": "1", "fill-rule": "evenodd" })) {
    drawn.setAttribute(name, value);
  }
  svg.append(drawn);
  return svg;
}

function svgPart(name: string, attributes: Record<string, string>): SVGElement {
  const part = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => part.setAttribute(key, value));
  return part;
}

/** The sign on a marker with an icon: until it has come, and where no set has it, the first letter of the name. */
function signOf(icon: string, name: string): SVGElement {
  const letter = svgPart("text", { x: "17", y: "20", "text-anchor": "middle", "font-size": "16", "font-weight": "600", fill: "#fff" });
  letter.textContent = name.slice(0, 1).toUpperCase();
  void loadDrawing(icon).then((drawing) => {
    if (drawing !== undefined) {
      letter.replaceWith(svgPart("path", { d: drawing.path, "fill-rule": drawing.rule, transform: "translate(8.5 6) scale(0.7)", fill: "#fff" }));
    }
  });
  return letter;
}

/** Pictures that ThingsBoard's pages bring along are drawn as the shapes that they are. */
function shapeAt(image: string): string | undefined {
  const [, kind, n] = /(?:^|\/)assets\/markers\/(shape|tripShape)(\d+)\.svg$/.exec(image) ?? [];
  return n === undefined ? undefined : SHAPES[`${kind === "shape" ? "markerShape" : "tripMarkerShape"}${n}`];
}

/** Whether a marker is a picture: these look to the right, and shapes up. */
export function isPicture({ layer: { marker }, image }: Pick<MapItem, "layer" | "image">): boolean {
  return marker.type === "image" && image !== "" && shapeAt(image) === undefined;
}

/** What a marker's look depends on; as long as it stays the same, its element does too. */
export function lookOf(item: MapItem): string {
  return JSON.stringify([item.color, item.label, item.image, item.imageSize, item.entity.name]);
}

/** Makes the element of a marker. `imageAt` hands the picture's address on once it is known. */
export function markerElement(item: MapItem, imageAt: (link: string, show: (url: string) => void) => void): HTMLElement {
  const { marker, kind } = item.layer;
  const element = document.createElement("div");
  element.className = classes["marker"] ?? "";
  const shape = (marker.type === "image" ? shapeAt(item.image) : undefined) ?? SHAPES[marker.shape] ?? SHAPES[kind === "trips" ? "tripMarkerShape2" : "markerShape1"] ?? PIN;
  const drawing = shapeElement(marker.type === "icon" ? "M17 33 L9 24 A 13 13 0 1 1 25 24 Z" : shape, item.color, item.imageSize);
  drawing.dataset["look"] = "";
  if (marker.type === "icon") {
    drawing.append(signOf(marker.icon, item.entity.name));
  }
  element.append(drawing);
  if (isPicture(item)) {
    imageAt(item.image, (url) => {
      const image = document.createElement("img");
      image.alt = "";
      image.src = url;
      image.width = item.imageSize;
      image.dataset["look"] = "";
      drawing.replaceWith(image);
    });
  }
  if (item.label !== undefined && item.label !== "") {
    const label = document.createElement("div");
    label.className = classes["label"] ?? "";
    label.append(cleanMarkup(item.label));
    element.append(label);
  }
  return element;
}
