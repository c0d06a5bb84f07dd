// Forms for the layers of a map: markers, trips, areas, circles and lines.

import { ICON_NAMES } from "@/icons/names";
import type { FormField } from "@/ui/form/values";
import { actionFields } from "../../form/actions";
import { heading, only, usuallyOn } from "../../form/parts";
import type { LayerKind } from "../layer";
import { newKey, placeNames, settleLayer, SHAPE_KEYS, type MapKind } from "./defaults";
import { isAt, isOff, isOn, labelFields, LATEST_KEYS, layerColors, sourceFields, TAG_ACTIONS, titleOf, TOOLTIP_PLACE, tooltipFields } from "./parts";

const LISTS: readonly { kind: LayerKind; label: string }[] = [
  { kind: "trips", label: "Trips" },
  { kind: "markers", label: "Markers" },
  { kind: "polygons", label: "Areas" },
  { kind: "circles", label: "Circles" },
  { kind: "polylines", label: "Lines" },
];
/** Keys that have a place, and those that have a course. */
const PLACES = ["attribute", "timeseries"];
const COURSES = ["timeseries"];

const MARKER_TYPES = [
  { value: "shape", label: "Shape" },
  { value: "icon", label: "Icon" },
  { value: "image", label: "Picture" },
];
const SHAPES = [
  { value: "markerShape1", label: "Pin" },
  { value: "markerShape2", label: "Filled pin" },
  { value: "markerShape3", label: "Sign" },
  { value: "markerShape4", label: "Filled sign" },
  { value: "markerShape5", label: "Rhombus" },
  { value: "markerShape6", label: "Pinhead" },
  { value: "markerShape7", label: "Flag" },
  { value: "markerShape8", label: "Bubble" },
  { value: "markerShape9", label: "Cone" },
  { value: "markerShape10", label: "Target" },
];
const TRIP_SHAPES = [
  { value: "tripMarkerShape1", label: "Arrowhead" },
  { value: "tripMarkerShape2", label: "Arrowhead in a circle" },
  { value: "tripMarkerShape3", label: "Triangle" },
  { value: "tripMarkerShape4", label: "Arrow" },
  { value: "tripMarkerShape5", label: "Car" },
  { value: "tripMarkerShape6", label: "Block with a tip" },
  { value: "tripMarkerShape7", label: "Boat" },
  { value: "tripMarkerShape8", label: "Plane" },
  { value: "tripMarkerShape9", label: "Disc" },
  { value: "tripMarkerShape10", label: "Two chevrons" },
];
const IMAGE_TYPES = [
  { value: "image", label: "Always the same" },
  { value: "function", label: "What a function makes of it" },
];
const FILL_TYPES = [
  { value: "color", label: "Color" },
  { value: "stripe", label: "Stripes" },
  { value: "image", label: "Picture" },
];
const EDIT_ACTIONS = [
  { value: "add", label: "Placing" },
  { value: "edit", label: "Reshaping" },
  { value: "move", label: "Moving" },
  { value: "remove", label: "Taking off the map" },
];
const SCOPES = [
  { value: "SERVER_SCOPE", label: "Server attribute" },
  { value: "SHARED_SCOPE", label: "Shared attribute" },
];

const isType = (...types: string[]): NonNullable<FormField["when"]> => isAt("markerType", "shape", ...types);
const size = (name: string): FormField => ({ name, label: "Size, pixels", type: "number", least: 8, most: 300 });
const share = (name: string, label: string): FormField => ({ name, label, type: "number", least: 0, most: 1 });

function keyFields(kind: LayerKind, map: MapKind): FormField[] {
  const options = kind === "trips" ? COURSES : PLACES;
  const key = (name: string, title: { label: string }, usual: string): FormField => ({ name, ...title, type: "own", drawnBy: "layerKey", options, initial: newKey(usual, options[0] ?? "attribute") });
  const more: FormField = { name: "additionalDataKeys", label: "Further keys", type: "own", drawnBy: "layerKeys", options: kind === "trips" ? [...COURSES, "attribute", "entityField"] : LATEST_KEYS };
  if (kind !== "markers" && kind !== "trips") {
    return [key(SHAPE_KEYS[kind], { label: "Key of the shape" }, "perimeter"), more];
  }
  const [x, y] = placeNames(map);
  const [xLabel, yLabel] = map === "image" ? [{ label: "Key of the place across" }, { label: "Key of the place down" }] : [{ label: "Key of the latitude" }, { label: "Key of the longitude" }];
  return [key("xKey", xLabel, x), key("yKey", yLabel, y), more];
}

function markerFields(isTrip: boolean, map: MapKind): FormField[] {
  return [
    { name: "markerType", label: "Marker", type: "select", required: true, otherwise: "shape", options: MARKER_TYPES },
    ...only(isType("shape"), [
      { name: "markerShape.shape", label: "Shape", type: "select", required: true, otherwise: isTrip ? "tripMarkerShape2" : "markerShape1", options: isTrip ? TRIP_SHAPES : SHAPES },
      size("markerShape.size"),
      ...layerColors("markerShape.color", "Color of the marker"),
    ]),
    ...only(isType("icon"), [
      { name: "markerIcon.icon", label: "Icon", type: "suggest", options: ICON_NAMES },
      size("markerIcon.size"),
      ...layerColors("markerIcon.color", "Color of the marker"),
    ]),
    ...only(isType("image"), [
      { name: "markerImage.type", label: "Comes from", type: "select", required: true, otherwise: "image", options: IMAGE_TYPES },
      { name: "markerImage.image", label: "Picture", type: "image" },
      { name: "markerImage.imageFunction", label: "Function", type: "code", help: "function (data, images, dsData)", when: isAt("markerImage.type", "image", "function") },
      { name: "markerImage.images", label: "Pictures of the function", type: "texts", when: isAt("markerImage.type", "image", "function") },
      size("markerImage.imageSize"),
    ]),
    share("markerOffsetX", "Point of the marker that lies on the place: from the left"),
    share("markerOffsetY", "From the top (1 is its lower edge)"),
    ...(map === "image" ? [{ name: "positionFunction", label: "Place: function", type: "code", help: "function (origXPos, origYPos, data, dsData, aspect)" } as const] : []),
  ];
}

const DECORATORS = [
  { value: "arrowHead", label: "Arrowheads" },
  { value: "dash", label: "Dashes" },
];

const CLUSTERING: FormField[] = [
  heading("Groups of near markers"),
  { name: "markerClustering.enable", label: "Near markers as one with their number", type: "boolean" },
  { name: "markerClustering.maxClusterRadius", label: "As far as so many pixels", type: "number", least: 1, when: isOn("markerClustering.enable") },
  { ...usuallyOn("markerClustering.zoomOnClick", "A click on a group goes closer"), when: isOn("markerClustering.enable") },
  { name: "markerClustering.maxZoom", label: "Up to the zoom", type: "number", least: 0, most: 20, when: isOn("markerClustering.enable") },
];

function tripFields(): FormField[] {
  const hasPath = (values: Record<string, unknown>): boolean => !isOff("showPath")(values);
  return [
    heading("Path"),
    usuallyOn("showPath", "Draw the path"),
    ...only(hasPath, [
      { name: "pathStrokeWeight", label: "Width of the line, pixels", type: "number", least: 0 },
      ...layerColors("pathStrokeColor", "Color of the path"),
    ]),
    { name: "usePathDecorator", label: "Arrows along the path", type: "boolean" },
    ...only(isOn("usePathDecorator"), [
      { name: "pathDecoratorSymbol", label: "What lies along it", type: "select", required: true, otherwise: "arrowHead", options: DECORATORS },
      { name: "pathDecoratorSymbolSize", label: "Size, pixels", type: "number", least: 4, most: 60 },
      { name: "pathDecoratorSymbolColor", label: "Color of the arrows", type: "color" },
    ]),
    heading("Points"),
    { name: "showPoints", label: "Draw the points", type: "boolean" },
    ...only(isOn("showPoints"), [
      { name: "pointSize", label: "Size of the points, pixels", type: "number", least: 0 },
      ...layerColors("pointColor", "Color of the points", { of: COURSES, byFunction: false }),
      ...tooltipFields("pointTooltip", "Tooltip of the points", true),
    ]),
  ];
}

function shapeFields(isLine: boolean): FormField[] {
  const is = (...types: string[]): NonNullable<FormField["when"]> => isAt("fillType", "color", ...types);
  const fill: FormField[] = [
    { name: "fillType", label: "Filled with", type: "select", required: true, otherwise: "color", options: FILL_TYPES },
    ...only(is("color"), layerColors("fillColor", "Color of the filling")),
    ...only(is("stripe"), [
      { name: "fillStripe.color.color", label: "Color of the stripes", type: "color" },
      { name: "fillStripe.weight", label: "Width of the stripes, pixels", type: "number", least: 0 },
      { name: "fillStripe.spaceColor.color", label: "Color between them", type: "color" },
      { name: "fillStripe.spaceWeight", label: "Width between them, pixels", type: "number", least: 0 },
      { name: "fillStripe.angle", label: "Angle, degrees", type: "number", least: 0, most: 180 },
    ]),
    ...only(is("image"), [
      { name: "fillImage.image", label: "Picture", type: "image" },
      share("fillImage.opacity", "Opacity from 0 to 1"),
      usuallyOn("fillImage.preserveAspectRatio", "The picture keeps its shape"),
      { name: "fillImage.angle", label: "Turned by degrees", type: "number", least: 0, most: 360 },
      { name: "fillImage.scale", label: "So many times as large", type: "number", least: 0.01 },
    ]),
  ];
  return [
    ...(isLine ? [] : fill),
    ...(isLine ? layerColors("strokeColor", "Color of the line") : layerColors("strokeColor", "Color of the edge")),
    { name: "strokeWeight", label: "Width of the line, pixels", type: "number", least: 0 },
  ];
}

const BEHAVIOR: FormField[] = [
  heading("Click"),
  ...actionFields("click", { mayDoNothing: true, knowsStates: true }).map((field): FormField => (field.name === "click.type" ? { ...field, otherwise: "doNothing" } : field)),
];
const GROUPS: FormField = { name: "groups", label: "Groups", type: "texts", help: "Readers show and hide groups. Press Enter after each name." };
const EDITING: FormField[] = [
  heading("Editing on the map"),
  { name: "edit.enabledActions", label: "Readers may do", type: "several", options: EDIT_ACTIONS },
  { name: "edit.attributeScope", label: "Places of devices are kept as", type: "select", required: true, otherwise: "SERVER_SCOPE", options: SCOPES },
];

/** Returns the fields of a layer of a kind, as far as it is drawn here. */
export function layerFields(kind: LayerKind, map: MapKind): FormField[] {
  const isTrip = kind === "trips";
  const isPoint = isTrip || kind === "markers";
  return [
    ...sourceFields({ madeUp: true }),
    { name: "additionalDataSources", label: "Further sources", type: "rows", fields: sourceFields({ madeUp: false }), rowTitle: titleOf, when: isAt("dsType", "entity", "entity", "device") },
    heading("Keys"),
    ...keyFields(kind, map),
    heading("Look"),
    ...(isTrip ? [usuallyOn("showMarker", "Draw the marker"), usuallyOn("rotateMarker", "The marker turns where it goes"), { name: "offsetAngle", label: "Turned by degrees more", type: "number" } as const] : []),
    ...(isPoint ? markerFields(isTrip, map) : shapeFields(kind === "polylines")),
    ...labelFields(isPoint),
    ...tooltipFields("tooltip", "Tooltip", isPoint, [...(isPoint ? TOOLTIP_PLACE : []), TAG_ACTIONS]),
    ...(isTrip ? tripFields() : []),
    ...BEHAVIOR,
    GROUPS,
    ...(isTrip ? [] : EDITING),
    ...(kind === "markers" ? CLUSTERING : []),
  ];
}

/** Returns the lists of layers that a map can have; only maps of courses have trips. */
export function layerLists(map: MapKind, hasTrips: boolean): FormField[] {
  return LISTS.filter(({ kind }) => kind !== "trips" || hasTrips).map(({ kind, label }) => ({
    name: kind, label, type: "rows", fields: layerFields(kind, map), rowTitle: titleOf, settle: settleLayer(kind, map),
  }));
}
