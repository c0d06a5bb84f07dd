// Forms for batteries, signals, the wind and tanks.

import { text } from "@/dashboard/json";
import type { FormField, FormValues } from "@/ui/form/values";
import type { WidgetForm } from "../forms";
import { colors, dates, heading, letters, only } from "../form/parts";
import { BATTERY, PER_LITRE, SHAPES, SIGNAL, TANK, WIND } from "./settings";

const BATTERY_LAYOUTS = [
  { value: "vertical_solid", label: "Upright" },
  { value: "horizontal_solid", label: "Lying" },
  { value: "vertical_divided", label: "Upright, in parts" },
  { value: "horizontal_divided", label: "Lying, in parts" },
];
const SIGNAL_LAYOUTS = [
  { value: "wifi", label: "Waves" },
  { value: "cellular_bar", label: "Bars" },
];
const WIND_LAYOUTS = [
  { value: "default", label: "With four directions" },
  { value: "advanced", label: "With eight directions" },
  { value: "simplified", label: "Without directions" },
];
const TANK_LAYOUTS = [
  { value: "simple", label: "The level alone" },
  { value: "percentage", label: "With the share in percent" },
  { value: "absolute", label: "With the amount" },
];
const UNITS = ["%", ...Object.keys(PER_LITRE)].map((value) => ({ value, label: value }));

const isDivided = ({ layout }: FormValues): boolean => text(layout)?.endsWith("_divided") === true;
const showsValue = ({ showValue }: FormValues): boolean => showValue !== false;
const showsOverlay = ({ layout, showBackgroundOverlay }: FormValues): boolean => layout !== "simple" && showBackgroundOverlay !== false;
const isAbsolute = ({ layout }: FormValues): boolean => layout === "absolute";
const isWritten = ({ layout }: FormValues): boolean => layout !== "simple";
const hasVolume = (values: FormValues): boolean => isAbsolute(values) || (values["datasourceUnits"] ?? "%") !== "%";
const hasNames = ({ layout }: FormValues): boolean => layout !== "simplified";

const wind: FormField[] = [
  { name: "layout", label: "Look", type: "select", options: WIND_LAYOUTS, required: true },
  { name: "directionalNamesElseDegrees", label: "Directions have names, not degrees", type: "boolean", when: hasNames },
  { name: "arrowColor", label: "Color of the arrow", type: "color" },
  { name: "ticksColor", label: "Color of the short lines", type: "color" },
  heading("North, east, south and west"),
  { name: "majorTicksColor", label: "Color", type: "color" },
  ...only(hasNames, letters("majorTicksFont", 14)),
  heading("Directions between them"),
  { name: "minorTicksColor", label: "Color", type: "color" },
  ...only(({ layout }) => layout === "advanced", letters("minorTicksFont", 14)),
  ...colors("centerValueColor", "Value in the middle"),
  ...letters("centerValueFont", 24),
];

export const INDICATOR_FORMS: readonly WidgetForm[] = [
  {
    names: /^battery_level$/,
    begin: BATTERY,
    settings: [
      { name: "layout", label: "Look", type: "select", options: BATTERY_LAYOUTS, required: true },
      { name: "sectionsCount", label: "Number of parts", type: "number", least: 2, most: 20, when: isDivided },
      ...colors("batteryLevelColor", "Color of the charge"),
      ...colors("batteryShapeColor", "Color of the battery"),
      heading("Value"),
      { name: "showValue", label: "Show the value", type: "boolean" },
      { name: "autoScaleValueSize", label: "As large as the card permits", type: "boolean", when: showsValue },
      ...only((values) => showsValue(values) && values["autoScaleValueSize"] === false, letters("valueFont", 20)),
      ...only(showsValue, colors("valueColor", "Color of the value")),
    ],
  },
  {
    names: /^signal_strength$/,
    begin: SIGNAL,
    settings: [
      { name: "layout", label: "Look", type: "select", options: SIGNAL_LAYOUTS, required: true },
      { name: "noSignalRssiValue", label: "No signal at this value and below, dBm", type: "number" },
      ...colors("activeBarsColor", "Color of what is lit"),
      heading("What is not lit"),
      { name: "inactiveBarsColor", label: "Color", type: "color" },
      ...dates("When it came", false),
    ],
  },
  { names: /^wind_speed_and_direction(_with_background)?$/, begin: WIND, settings: wind },
  {
    names: /_tank$|liquid_level/,
    begin: TANK,
    settings: [
      { name: "selectedShape", label: "Shape of the tank", type: "select", options: SHAPES, help: "Without one, it is that of the type." },
      { name: "layout", label: "Look", type: "select", options: TANK_LAYOUTS, required: true },
      { name: "datasourceUnits", label: "What comes is in", type: "select", options: UNITS, required: true },
      { name: "volumeConstant", label: "Volume of the tank", type: "number", least: 0, when: hasVolume },
      { name: "volumeUnits", label: "Unit of the volume", type: "select", options: UNITS.slice(1), required: true, when: hasVolume },
      { name: "units", label: "Written in", type: "select", options: UNITS, required: true, when: isAbsolute },
      { name: "decimals", label: "Decimals", type: "number", least: 0, most: 15, when: isWritten },
      { name: "volumeColor", label: "Color of the volume", type: "color", when: (values) => isAbsolute(values) && values["units"] !== "%" },
      ...colors("tankColor", "Color of the tank"),
      ...colors("liquidColor", "Color of the liquid"),
      ...only(isWritten, [...colors("valueColor", "Color of the value"), ...letters("valueFont", 24)]),
      ...only(isWritten, [heading("Behind the value"), { name: "showBackgroundOverlay", label: "A ground behind the value", type: "boolean" }]),
      ...only(showsOverlay, colors("backgroundOverlayColor", "Color of the ground")),
    ],
  },
];
