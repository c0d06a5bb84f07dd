// The form of a map: its background, what lies on it, and how it is handled.

import { settleAction } from "@/dashboard/edit/mobileAction";
import { object, text } from "@/dashboard/json";
import { plainWords } from "@/dashboard/words";
import { ICON_NAMES } from "@/icons/names";
import type { FormField } from "@/ui/form/values";
import { actionFields } from "../../form/actions";
import { heading, only, usuallyOn } from "../../form/parts";
import { settleTiles, type MapKind } from "./defaults";
import { layerLists } from "./layers";
import { isAt, isOff, isOn, LATEST_KEYS, sourceFields, titleOf } from "./parts";

const MAP_KINDS = [
  { value: "geoMap", label: "The globe" },
  { value: "image", label: "A picture" },
];
const PROVIDERS = [
  { value: "openstreet", label: "OpenStreetMap and others" },
  { value: "openfreemap", label: "OpenFreeMap" },
  { value: "google", label: "Google" },
  { value: "here", label: "HERE" },
  { value: "tencent", label: "Tencent" },
  { value: "custom", label: "Address of tiles" },
];
export const STYLES: Readonly<Record<string, readonly { value: string; label: string }[]>> = {
  openstreet: [
    { value: "OpenStreetMap.Mapnik", label: "Streets" },
    { value: "OpenStreetMap.HOT", label: "Streets, humanitarian" },
    { value: "Esri.WorldStreetMap", label: "Streets of Esri" },
    { value: "Esri.WorldTopoMap", label: "Landscape of Esri" },
    { value: "Esri.WorldImagery", label: "Satellite pictures of Esri" },
    { value: "CartoDB.Positron", label: "Light, of CARTO" },
    { value: "CartoDB.DarkMatter", label: "Dark, of CARTO" },
  ],
  openfreemap: [
    { value: "bright", label: "Bright" },
    { value: "positron", label: "Light" },
    { value: "liberty", label: "Colorful" },
  ],
  google: [
    { value: "roadmap", label: "Streets" },
    { value: "satellite", label: "Satellite pictures" },
    { value: "hybrid", label: "Satellite pictures with names" },
    { value: "terrain", label: "Landscape" },
  ],
  here: [
    { value: "HEREv3.normalDay", label: "Streets" },
    { value: "HEREv3.normalNight", label: "Streets by night" },
    { value: "HEREv3.hybridDay", label: "Satellite pictures" },
    { value: "HEREv3.terrainDay", label: "Landscape" },
  ],
  tencent: [
    { value: "Tencent.Normal", label: "Streets" },
    { value: "Tencent.Satellite", label: "Satellite pictures" },
    { value: "Tencent.Terrain", label: "Landscape" },
  ],
};
/** What lies over the tiles; here all are the same names and borders. */
const REFERENCES = [
  { value: "openstreetmap_hybrid", label: "Names and borders" },
  { value: "world_edition_hybrid", label: "Names and borders, World Edition" },
  { value: "enhanced_contrast_hybrid", label: "Names and borders, more contrast" },
];
const CORNERS = [
  { value: "topleft", label: "On the left, above" },
  { value: "topright", label: "On the right, above" },
  { value: "bottomleft", label: "On the left, below" },
  { value: "bottomright", label: "On the right, below" },
];
const ZOOMS = [
  { value: "scroll", label: "Mouse wheel" },
  { value: "doubleClick", label: "Double click" },
  { value: "controlButtons", label: "Buttons" },
];
const SCALES = [
  { value: "metric", label: "Metres" },
  { value: "imperial", label: "Miles" },
];
const IMAGE_SOURCES = [
  { value: "image", label: "Always the same" },
  { value: "entityKey", label: "A key of an entity" },
];
const SPEEDS = [1, 2, 5, 10, 15, 20, 25, 50, 100];

const isGeo = isAt("mapType", "geoMap", "geoMap");
const isProvider = (...names: string[]): NonNullable<FormField["when"]> => isAt("provider", "openstreet", ...names);

const TILES: FormField = {
  name: "layers", label: "Backgrounds", type: "rows", settle: settleTiles, begin: [{ provider: "openstreet", layerType: "OpenStreetMap.Mapnik" }],
  help: "Whoever looks chooses one of them; the first one is shown at the beginning.",
  rowTitle: ({ label, layerType, provider }) => ({
    title: plainWords(text(label) ?? "") || String(layerType ?? ""),
    note: PROVIDERS.find(({ value }) => value === (provider ?? "openstreet"))?.label ?? String(provider),
  }),
  fields: [
    { name: "label", label: "Name" },
    { name: "provider", label: "Provider", type: "select", required: true, otherwise: "openstreet", options: PROVIDERS, help: "Google, Tencent and OpenFreeMap need programs of their own. Instead of them, the nearest map without is drawn." },
    ...Object.entries(STYLES).map(([provider, options]): FormField => ({ name: "layerType", label: "Style", type: "select", required: true, options, when: isProvider(provider) })),
    { name: "tileUrl", label: "Address of the tiles", help: "With {z}, {x} and {y} where zoom and place belong. Styles of vector tiles need a program of their own: OpenStreetMap is drawn instead.", when: isProvider("custom") },
    { name: "customAttribution", label: "Words about their origin", when: isProvider("custom") },
    { name: "apiKey", label: "API key", when: isProvider("google", "here") },
    { name: "referenceLayer", label: "Over it", type: "select", options: REFERENCES },
  ],
};

const PICTURE: FormField[] = [
  heading("Picture"),
  { name: "imageSource.sourceType", label: "Comes from", type: "select", required: true, otherwise: "image", options: IMAGE_SOURCES },
  { name: "imageSource.url", label: "Picture", type: "image" },
  { name: "imageSource.entityAliasId", label: "Data of", type: "own", drawnBy: "layerAlias", when: isAt("imageSource.sourceType", "image", "entityKey") },
  { name: "imageSource.entityKey", label: "Key of the picture", type: "own", drawnBy: "pictureKey", options: ["attribute", "timeseries"], when: isAt("imageSource.sourceType", "image", "entityKey") },
];

const TIMELINE: FormField[] = [
  heading("Timeline"),
  { name: "tripTimeline.showTimelineControl", label: "A slider for the moment", type: "boolean" },
  ...only(isOn("tripTimeline.showTimelineControl"), [
    { name: "tripTimeline.timeStep", label: "Step, milliseconds", type: "number", least: 100 },
    { name: "tripTimeline.speedOptions", label: "Speeds", type: "choices", choicesOf: () => SPEEDS.map((value) => ({ value, label: `${value}×` })) },
    { name: "tripTimeline.snapToRealLocation", label: "Only at places that were told, not on the way between", type: "boolean" },
    usuallyOn("tripTimeline.showTimestamp", "Write the moment"),
    { name: "tripTimeline.timestampFormat.format", label: "Format of the moment", help: "As in yyyy-MM-dd HH:mm:ss; without one it is that of the language.", when: (values) => !isOff("tripTimeline.showTimestamp")(values) },
  ]),
];

const CONTROLS: FormField[] = [
  heading("Controls"),
  { name: "controlsPosition", label: "Buttons stand", type: "select", required: true, otherwise: "topleft", options: CORNERS },
  { name: "zoomActions", label: "Zooming by", type: "several", options: ZOOMS },
  { name: "scales", label: "Scales", type: "several", options: SCALES, when: isGeo },
];

const VIEW: FormField[] = [
  heading("View"),
  ...only(isGeo, [
    usuallyOn("fitMapBounds", "Show all things at the beginning"),
    { name: "useDefaultCenterPosition", label: "A middle of its own", type: "boolean" },
    { name: "defaultCenterPosition", label: "Middle", help: "Latitude and longitude, as in 48.1,11.6.", when: isOn("useDefaultCenterPosition") },
    { name: "defaultZoomLevel", label: "Zoom at the beginning", type: "number", least: 0, most: 20 },
    { name: "minZoomLevel", label: "Closest zoom to show all things", type: "number", least: 0, most: 22 },
  ]),
  { name: "mapPageSize", label: "The most entities of a layer", type: "number", least: 1 },
];

const BUTTONS: FormField = {
  name: "mapActionButtons", label: "Buttons over the map", type: "rows",
  rowTitle: ({ label, icon }) => ({ title: text(label) ?? text(icon) ?? "", note: "" }),
  settle: (button, before) => ({ ...button, action: settleAction(object(button["action"]), object(before["action"])) }),
  fields: [{ name: "label", label: "Label" }, { name: "icon", label: "Icon", type: "suggest", options: ICON_NAMES }, { name: "color", label: "Color", type: "color" }, ...actionFields("action", { knowsStates: true })],
};

const BESIDE: FormField = {
  name: "additionalDataSources", label: "Sources for functions", type: "rows", rowTitle: titleOf,
  help: "Their values stand among dsData, and nothing of them is on the map.",
  fields: [...sourceFields({ madeUp: true }), { name: "dataKeys", label: "Keys", type: "own", drawnBy: "layerKeys", options: LATEST_KEYS }],
};

/** Returns the form of a map's settings; only maps of courses have trips. */
export function mapFields(map: MapKind, hasTrips: boolean): FormField[] {
  return [
    { name: "mapType", label: "Background", type: "select", required: true, otherwise: map, options: MAP_KINDS },
    ...(map === "image" ? PICTURE : [TILES]),
    heading("On the map"),
    ...layerLists(map, hasTrips),
    BESIDE,
    ...CONTROLS,
    BUTTONS,
    ...(hasTrips ? TIMELINE : []),
    ...VIEW,
  ];
}
