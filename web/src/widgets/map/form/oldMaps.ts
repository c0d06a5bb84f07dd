// The forms of maps of old dashboards, whose settings lie side by side in one object; what each of them holds is drawn as a map of today.

import type { FormField } from "@/ui/form/values";
import type { FormAround } from "@/ui/form/around";
import { heading, only, usuallyOn } from "../../form/parts";
import type { WidgetForm } from "../../forms";
import { isAt, isOff, isOn, TRIGGERS } from "./parts";
import { STYLES } from "./mapForm";

type Provider = "openstreet-map" | "google-map" | "here" | "tencent-map" | "image-map";

const PROVIDERS = [
  { value: "openstreet-map", label: "OpenStreetMap and others" },
  { value: "google-map", label: "Google" },
  { value: "here", label: "HERE" },
  { value: "tencent-map", label: "Tencent" },
  { value: "image-map", label: "A picture" },
];
const HERE = (STYLES["here"] ?? []).map(({ value, label }) => ({ value: value.replace("HEREv3.", "HERE."), label }));
const GOOGLE = STYLES["google"] ?? [];
const aliases = ({ names }: FormAround) => (names["aliases"] ?? []).map((value) => ({ value, label: value }));

/** What lies under everything; types of one provider keep it where none is stored. */
function background(usual: Provider): FormField[] {
  const is = (...names: Provider[]): NonNullable<FormField["when"]> => isAt("provider", usual, ...names);
  const isGeo = is("openstreet-map", "google-map", "here", "tencent-map");
  const isOwn = isOn("useCustomProvider");
  return [
    { name: "provider", label: "Provider", type: "select", required: true, otherwise: usual, options: PROVIDERS, help: "Google and Tencent need programs of their own. Instead of them, the nearest map without is drawn." },
    ...only(is("openstreet-map"), [
      { name: "useCustomProvider", label: "Tiles from an address of its own", type: "boolean" },
      { name: "mapProvider", label: "Style", type: "select", options: STYLES["openstreet"] ?? [], when: (values) => !isOwn(values) },
      { name: "customProviderTileUrl", label: "Address of the tiles", help: "With {z}, {x} and {y} where zoom and place belong.", when: isOwn },
    ]),
    { name: "gmDefaultMapType", label: "Style", type: "select", options: GOOGLE, when: is("google-map") },
    { name: "tmDefaultMapType", label: "Style", type: "select", options: GOOGLE.filter(({ value }) => value !== "terrain"), when: is("tencent-map") },
    ...only(is("here"), [
      { name: "mapProviderHere", label: "Style", type: "select", options: HERE },
      { name: "credentials.apiKey", label: "API key" },
    ]),
    ...only(is("image-map"), [
      { name: "mapImageUrl", label: "Picture", type: "image" },
      { name: "imageEntityAlias", label: "Picture of the alias", type: "select", optionsFrom: aliases },
      { name: "imageUrlAttribute", label: "Attribute of the picture", when: ({ imageEntityAlias }) => typeof imageEntityAlias === "string" && imageEntityAlias !== "" },
      { name: "xPosKeyName", label: "Key of the place across" },
      { name: "yPosKeyName", label: "Key of the place down" },
    ]),
    ...only(isGeo, [
      { name: "latKeyName", label: "Key of the latitude" },
      { name: "lngKeyName", label: "Key of the longitude" },
    ]),
  ];
}

/** A text that is a pattern, or what a function makes of the data. */
function written(useFunction: string, pattern: string, body: string): FormField[] {
  return [
    { name: useFunction, label: "Written by a function", type: "boolean" },
    { name: pattern, label: "Pattern", type: "long", help: "With ${entityName} and ${key} for values, as in ${temperature:1}.", when: (values) => !isOn(useFunction)(values) },
    { name: body, label: "Function", type: "code", help: "function (data, dsData, dsIndex)", when: isOn(useFunction) },
  ];
}

function color(label: string, useFunction: string, constant: string, body: string): FormField[] {
  return [
    heading(label),
    { name: useFunction, label: "Made by a function", type: "boolean" },
    { name: constant, label: "Color", type: "color" },
    { name: body, label: "Function", type: "code", help: "function (data, dsData, dsIndex)", when: isOn(useFunction) },
  ];
}

/** How a tooltip opens and closes. */
const opening = (trigger: string, autoclose: string): FormField[] => [
  { name: trigger, label: "It opens", type: "select", required: true, otherwise: "click", options: TRIGGERS },
  usuallyOn(autoclose, "Closes by itself"),
];

const isShown = (name: string): NonNullable<FormField["when"]> => (values) => !isOff(name)(values);

const WORDS: FormField[] = [
  heading("Label"),
  usuallyOn("showLabel", "Show a label"),
  ...only(isShown("showLabel"), written("useLabelFunction", "label", "labelFunction")),
  heading("Tooltip"),
  usuallyOn("showTooltip", "Show a tooltip"),
  ...only(isShown("showTooltip"), [
    ...written("useTooltipFunction", "tooltipPattern", "tooltipFunction"),
    usuallyOn("autocloseTooltip", "Closes by itself"),
  ]),
];

/** A marker with a picture has no colour. */
const hasNoPicture: NonNullable<FormField["when"]> = ({ useMarkerImageFunction, markerImage }) => useMarkerImageFunction !== true && (typeof markerImage !== "string" || markerImage === "");

const PICTURES: FormField[] = [
  { name: "useMarkerImageFunction", label: "A function chooses the picture", type: "boolean" },
  { name: "markerImage", label: "Picture", type: "image", when: (values) => !isOn("useMarkerImageFunction")(values) },
  { name: "markerImageFunction", label: "Function", type: "code", help: "function (data, images, dsData, dsIndex)", when: isOn("useMarkerImageFunction") },
  { name: "markerImages", label: "Pictures of the function", type: "texts", when: isOn("useMarkerImageFunction") },
  { name: "markerImageSize", label: "Size, pixels", type: "number", least: 8, most: 300 },
];

const MARKERS: FormField[] = [
  heading("Marker"),
  ...PICTURES,
  { name: "markerOffsetX", label: "Its place: to the right, in widths of it", type: "number" },
  { name: "markerOffsetY", label: "Its place: down, in heights of it", type: "number" },
  { name: "draggableMarker", label: "Readers may place and move it", type: "boolean" },
  ...WORDS,
  ...only(isShown("showTooltip"), [
    { name: "showTooltipAction", label: "It opens", type: "select", required: true, otherwise: "click", options: TRIGGERS },
    { name: "tooltipOffsetX", label: "Tooltip: to the right, in widths of the marker", type: "number" },
    { name: "tooltipOffsetY", label: "Tooltip: down, in heights of the marker", type: "number" },
  ]),
];

const CLUSTERS: FormField[] = [
  heading("Many markers"),
  { name: "useClusterMarkers", label: "Near markers as one with their number", type: "boolean" },
  ...only(isOn("useClusterMarkers"), [
    { name: "maxClusterRadius", label: "As far as so many pixels", type: "number", least: 1 },
    { name: "maxZoom", label: "Up to the zoom", type: "number", least: 0, most: 20 },
  ]),
];

function shapes(word: "Polygon" | "Circle", label: string, fill: string): FormField[] {
  const low = word.toLowerCase();
  const fillWord = `${fill.charAt(0).toUpperCase()}${fill.slice(1)}`;
  const share = { type: "number", least: 0, most: 1 } as const;
  return [
    heading(label),
    { name: `show${word}`, label: "Draw them", type: "boolean" },
    ...only(isOn(`show${word}`), [
      { name: `${low}KeyName`, label: "Key of the shape" },
      { name: `editable${word}`, label: "Readers may draw and change them", type: "boolean" },
      { name: word === "Polygon" ? "polygonOpacity" : "circleFillColorOpacity", label: "Opacity of the filling, 0 to 1", ...share },
      { name: `${low}StrokeWeight`, label: "Width of the line, pixels", type: "number", least: 0 },
      { name: `${low}StrokeOpacity`, label: "Opacity of the line, 0 to 1", ...share },
      ...color("Color of the filling", `use${fillWord}Function`, fill, `${fill}Function`),
      ...color("Color of the line", `use${word}StrokeColorFunction`, `${low}StrokeColor`, `${low}StrokeColorFunction`),
      heading("Label"),
      { name: `show${word}Label`, label: "Show a label", type: "boolean" },
      ...only(isOn(`show${word}Label`), written(`use${word}LabelFunction`, `${low}Label`, `${low}LabelFunction`)),
      heading("Tooltip"),
      { name: `show${word}Tooltip`, label: "Show a tooltip", type: "boolean" },
      ...only(isOn(`show${word}Tooltip`), [...written(`use${word}TooltipFunction`, `${low}TooltipPattern`, `${low}TooltipFunction`), ...opening(`show${word}TooltipAction`, `autoClose${word}Tooltip`)]),
    ]),
  ];
}

const SHAPES: FormField[] = [...shapes("Polygon", "Areas", "polygonColor"), ...shapes("Circle", "Circles", "circleFillColor")];

const VIEW: FormField[] = [
  heading("View"),
  usuallyOn("fitMapBounds", "Show all things at the beginning"),
  { name: "useDefaultCenterPosition", label: "A middle of its own", type: "boolean" },
  { name: "defaultCenterPosition", label: "Middle", help: "Latitude and longitude, as in 48.1,11.6.", when: isOn("useDefaultCenterPosition") },
  { name: "defaultZoomLevel", label: "Zoom at the beginning", type: "number", least: 0, most: 20 },
  { name: "disableScrollZooming", label: "No zooming by the mouse wheel", type: "boolean" },
  { name: "disableDoubleClickZooming", label: "No zooming by a double click", type: "boolean" },
  { name: "disableZoomControl", label: "No buttons for zooming", type: "boolean" },
  { name: "mapPageSize", label: "The most entities of a layer", type: "number", least: 1 },
];

const WIDTH: FormField = { name: "strokeWeight", label: "Width of the line, pixels", type: "number", least: 0 };

const TRIP: FormField[] = [
  heading("Marker"),
  ...PICTURES,
  { name: "rotationAngle", label: "Turned by degrees more", type: "number" },
  ...WORDS,
  heading("Path"),
  WIDTH,
  { name: "usePolylineDecorator", label: "Arrows along the path", type: "boolean" },
  ...only(isOn("usePolylineDecorator"), [
    { name: "decoratorSymbolSize", label: "Size, pixels", type: "number", least: 4, most: 60 },
    { name: "useDecoratorCustomColor", label: "Arrows have a color of their own", type: "boolean" },
    { name: "decoratorCustomColor", label: "Color of the arrows", type: "color", when: isOn("useDecoratorCustomColor") },
  ]),
  ...color("Color of the path", "useColorFunction", "color", "colorFunction"),
  heading("Points"),
  { name: "showPoints", label: "Draw the points", type: "boolean" },
  ...only(isOn("showPoints"), [
    { name: "pointSize", label: "Size of the points, pixels", type: "number", least: 0 },
    ...color("Color of the points", "useColorPointFunction", "pointColor", "colorPointFunction"),
  ]),
  heading("Timeline"),
  { name: "normalizationStep", label: "Step, milliseconds", type: "number", least: 100 },
];

const latest = (names: RegExp, usual: Provider): WidgetForm => ({
  names,
  settings: [
    ...background(usual),
    ...MARKERS,
    { name: "posFunction", label: "Place: function", type: "code", help: "function (origXPos, origYPos, data, dsData, aspect)", when: isAt("provider", usual, "image-map") },
    ...only(hasNoPicture, color("Color of the marker", "useColorFunction", "color", "colorFunction")),
    ...CLUSTERS,
    ...SHAPES,
    ...VIEW,
  ],
});

/** The forms of types that ThingsBoard calls deprecated, which dashboards of some years ago are full of. */
export const OLD_MAP_FORMS: readonly WidgetForm[] = [
  { names: /^maps_v2\.test$/, settings: [...background("openstreet-map"), ...TRIP, ...SHAPES, ...VIEW] },
  { names: /^maps_v2\.route_map/, settings: [...background("openstreet-map"), ...MARKERS, heading("Path"), WIDTH, ...color("Color of the path", "useColorFunction", "color", "colorFunction"), ...SHAPES, ...VIEW] },
  latest(/^(maps_v2|input_widgets)\.\w*google\w*$/, "google-map"),
  latest(/^(maps_v2|input_widgets)\.\w*here\w*$/, "here"),
  latest(/^(maps_v2|input_widgets)\.\w*tencent\w*$/, "tencent-map"),
  latest(/^maps_v2\.\w*image_map$|^input_widgets\.markers_placement_image_map$/, "image-map"),
  latest(/^maps_v2\.|^input_widgets\.markers_placement_/, "openstreet-map"),
];
