// One layer of a map: markers, shapes or trips of the entities of one source.

import { list, number, object, readKey, text, type DataKey, type Json } from "@/dashboard/model";
import { safeColor } from "../color";
import { bodyOf } from "@/dashboard/actions";

export type LayerKind = "trips" | "markers" | "polygons" | "circles" | "polylines";
export type EditAction = "add" | "edit" | "move" | "remove";

/** A text of a thing: a pattern, or the body of a function that makes it. */
export interface Written {
  show: boolean;
  pattern: string;
  body: string | undefined;
}

export interface Tooltip extends Written {
  onHover: boolean;
  autoclose: boolean;
  /** How far from the place it stands, as shares of the marker's size; downwards is positive. */
  offset: [number, number];
}

export interface LayerColor {
  color: string;
  rangeKey: DataKey | undefined;
  range: unknown;
  body: string | undefined;
}

export interface MarkerLook {
  type: "shape" | "icon" | "image";
  shape: string;
  icon: string;
  size: number;
  color: LayerColor;
  image: string;
  imageBody: string | undefined;
  images: string[];
  /** Which point of the picture lies on the place, as shares of its size. */
  anchor: [number, number];
}

export interface ShapeLook {
  fillType: "color" | "image" | "stripe";
  fill: LayerColor;
  fillOpacity: number;
  fillImage: { link: string; opacity: number; keepsAspect: boolean; angle: number; scale: number };
  stripe: { color: LayerColor; space: LayerColor; weight: number; spaceWeight: number; angle: number };
  stroke: LayerColor;
  strokeOpacity: number;
  strokeWeight: number;
}

export interface TripLook {
  showMarker: boolean;
  rotate: boolean;
  offsetAngle: number;
  showPath: boolean;
  pathWeight: number;
  pathColor: LayerColor;
  arrows: boolean;
  /** Whether what lies along the path is dashes instead of arrowheads. */
  dashes: boolean;
  arrowColor: string | undefined;
  arrowSize: number;
  showPoints: boolean;
  pointSize: number;
  pointColor: LayerColor;
  pointTooltip: Tooltip;
}

export interface Clustering {
  enabled: boolean;
  radius: number;
  maxZoom: number | undefined;
  /** Whether a click on a group opens it. */
  zoomOnClick: boolean;
}

export interface MapLayer {
  kind: LayerKind;
  id: string;
  /** Which of the map's sources has its entities, and which have more of them. */
  source: number;
  moreSources: number[];
  /** All keys that it reads. */
  keys: DataKey[];
  /** Keys that have the place; the first one with a value counts. Shapes have theirs in `x`. */
  x: DataKey[];
  y: DataKey[];
  label: Written;
  tooltip: Tooltip;
  groups: string[];
  edit: { actions: ReadonlySet<EditAction>; scope: string };
  marker: MarkerLook;
  shape: ShapeLook;
  trip: TripLook;
  clustering: Clustering;
  positionBody: string | undefined;
  actions: Json;
}

/** Under which name the widget's actions have those of a layer. */
export function actionSource(layerId: string, kind: "click" | "tag"): string {
  return `map ${layerId} ${kind}`;
}

const BLUE = "#307FE5";
const SHAPE_KEYS: Partial<Record<LayerKind, string>> = { polygons: "polygonKey", circles: "circleKey", polylines: "polylineKey" };
const EDIT_ACTIONS = ["add", "edit", "move", "remove"] as const;

function readWritten(value: unknown, show: boolean, pattern: string): Written {
  const stored = object(value);
  return {
    show: typeof stored["show"] === "boolean" ? stored["show"] : show,
    pattern: text(stored["pattern"]) ?? pattern,
    body: stored["type"] === "function" ? bodyOf(stored["patternFunction"]) : undefined,
  };
}

function readTooltip(value: unknown, show: boolean, pattern: string, above = 1): Tooltip {
  const stored = object(value);
  const offset: [number, number] = [number(stored["offsetX"]) ?? 0, number(stored["offsetY"]) ?? -above];
  return { ...readWritten(value, show, pattern), onHover: stored["trigger"] === "hover", autoclose: stored["autoclose"] !== false, offset };
}

function readColor(value: unknown, otherwise: string): LayerColor {
  const stored = object(value);
  return {
    color: safeColor(stored["color"]) ?? safeColor(value) ?? otherwise,
    rangeKey: stored["type"] === "range" && stored["rangeKey"] !== undefined && stored["rangeKey"] !== null ? readKey(stored["rangeKey"]) : undefined,
    range: stored["range"],
    body: stored["type"] === "function" ? bodyOf(stored["colorFunction"]) : undefined,
  };
}

function readMarker(layer: Json, isTrip: boolean): MarkerLook {
  const type = (["shape", "icon", "image"] as const).find((one) => one === layer["markerType"]) ?? "shape";
  const own = object(layer[{ shape: "markerShape", icon: "markerIcon", image: "markerImage" }[type]]);
  return {
    type,
    shape: text(own["shape"]) ?? (isTrip ? "tripMarkerShape2" : "markerShape1"),
    icon: text(own["icon"]) ?? "",
    size: Math.min(300, Math.max(8, number(own["size"]) ?? number(own["imageSize"]) ?? (type === "icon" ? 48 : 34))),
    color: readColor(own["color"], BLUE),
    image: text(own["image"]) ?? "",
    imageBody: own["type"] === "function" ? bodyOf(own["imageFunction"]) : undefined,
    images: list(own["images"]).flatMap((image) => text(image) ?? []),
    anchor: [number(layer["markerOffsetX"]) ?? 0.5, number(layer["markerOffsetY"]) ?? (isTrip ? 0.5 : 1)],
  };
}

function readShape(layer: Json): ShapeLook {
  const stripe = object(layer["fillStripe"]);
  const image = object(layer["fillImage"]);
  return {
    fillType: (["image", "stripe"] as const).find((one) => one === layer["fillType"]) ?? "color",
    fill: readColor(layer["fillColor"], "rgba(51,136,255,0.2)"),
    fillOpacity: number(layer["fillOpacity"]) ?? 1,
    fillImage: { link: text(image["image"]) ?? "", opacity: number(image["opacity"]) ?? 1, keepsAspect: image["preserveAspectRatio"] !== false, angle: number(image["angle"]) ?? 0, scale: Math.max(0.01, number(image["scale"]) ?? 1) },
    stripe: {
      color: readColor(stripe["color"], "#8f8f8f"),
      space: readColor(stripe["spaceColor"], "rgba(143,143,143,0)"),
      weight: number(stripe["weight"]) ?? 3,
      spaceWeight: number(stripe["spaceWeight"]) ?? 9,
      angle: number(stripe["angle"]) ?? 45,
    },
    stroke: readColor(layer["strokeColor"], "#3388ff"),
    strokeOpacity: number(layer["strokeOpacity"]) ?? 1,
    strokeWeight: number(layer["strokeWeight"]) ?? 3,
  };
}

const TRIP_TOOLTIP = "<b>${entityName}</b><br/><br/><b>Latitude:</b> ${latitude:7}<br/><b>Longitude:</b> ${longitude:7}<br/><b>End Time:</b> ${maxTime}<br/><b>Start Time:</b> ${minTime}";

function readTrip(layer: Json): TripLook {
  return {
    showMarker: layer["showMarker"] !== false,
    rotate: layer["rotateMarker"] !== false,
    offsetAngle: number(layer["offsetAngle"]) ?? 0,
    showPath: layer["showPath"] !== false,
    pathWeight: number(layer["pathStrokeWeight"]) ?? 4,
    pathColor: readColor(layer["pathStrokeColor"], BLUE),
    arrows: layer["usePathDecorator"] === true,
    dashes: layer["pathDecoratorSymbol"] === "dash",
    arrowColor: safeColor(layer["pathDecoratorSymbolColor"]),
    arrowSize: Math.min(60, Math.max(4, number(layer["pathDecoratorSymbolSize"]) ?? 10)),
    showPoints: layer["showPoints"] === true,
    pointSize: number(layer["pointSize"]) ?? 10,
    pointColor: readColor(layer["pointColor"], BLUE),
    pointTooltip: readTooltip(layer["pointTooltip"], true, TRIP_TOOLTIP),
  };
}

function readClustering(layer: Json): Clustering {
  const stored = object(layer["markerClustering"]);
  return {
    enabled: stored["enable"] === true,
    radius: Math.max(1, number(stored["maxClusterRadius"]) ?? 80),
    maxZoom: number(stored["maxZoom"]),
    zoomOnClick: stored["zoomOnClick"] !== false,
  };
}

/** A key of the place; settings may name several, of which the first with a value counts. */
function readPlace(value: unknown, name: string, config: Json, type = "attribute"): DataKey[] {
  const stored = Array.isArray(value) ? value : [value ?? { name, label: name, type }];
  return stored.map((key) => readKey(key, config));
}

/** Reads one layer; its source is not known yet. */
export function readLayer(kind: LayerKind, id: string, layer: Json, mapKind: "geo" | "image", config: Json): MapLayer {
  const shapeKey = SHAPE_KEYS[kind];
  const type = kind === "trips" ? "timeseries" : "attribute";
  const x = shapeKey === undefined ? readPlace(layer["xKey"], mapKind === "geo" ? "latitude" : "xPos", config, type) : readPlace(layer[shapeKey], "perimeter", config);
  const y = shapeKey === undefined ? readPlace(layer["yKey"], mapKind === "geo" ? "longitude" : "yPos", config, type) : [];
  const isPoint = shapeKey === undefined;
  const look = { marker: readMarker(layer, kind === "trips"), shape: readShape(layer), trip: readTrip(layer), clustering: readClustering(layer) };
  const colors = [look.marker.color, look.shape.fill, look.shape.stroke, look.shape.stripe.color, look.trip.pathColor, look.trip.pointColor];
  const edit = object(layer["edit"]);
  const tooltip = object(layer["tooltip"]);
  const places = isPoint ? (mapKind === "geo" ? "<b>Latitude:</b> ${latitude:7}<br/><b>Longitude:</b> ${longitude:7}" : "<b>X:</b> ${xPos:2}<br/><b>Y:</b> ${yPos:2}") : "";
  const click = object(layer["click"]);
  return {
    kind,
    id,
    source: -1,
    moreSources: [],
    keys: [...x, ...y, ...list(layer["additionalDataKeys"]).map((key) => readKey(key, config)), ...colors.flatMap(({ rangeKey }) => rangeKey ?? [])],
    x,
    y,
    label: readWritten(layer["label"], isPoint, "${entityName}"),
    tooltip: readTooltip(tooltip, isPoint, kind === "trips" ? TRIP_TOOLTIP : `<b>\${entityName}</b><br/><br/>${places}`, look.marker.anchor[1]),
    groups: list(layer["groups"]).flatMap((group) => text(group) ?? []),
    edit: {
      actions: new Set(EDIT_ACTIONS.filter((action) => list(edit["enabledActions"]).includes(action))),
      scope: text(edit["attributeScope"]) ?? "SERVER_SCOPE",
    },
    ...look,
    positionBody: mapKind === "image" ? bodyOf(layer["positionFunction"]) : undefined,
    actions: {
      ...(click["type"] === undefined || click["type"] === "doNothing" ? {} : { [actionSource(id, "click")]: [click] }),
      ...(list(tooltip["tagActions"]).length === 0 ? {} : { [actionSource(id, "tag")]: tooltip["tagActions"] }),
    },
  };
}
