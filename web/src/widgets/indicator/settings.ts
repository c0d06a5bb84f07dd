// What batteries, signals, the wind and tanks begin with, as ThingsBoard says it; once for their drawings and their forms.

import type { Json } from "@/dashboard/json";

const always = (color: string): Json => ({ type: "constant", color });
const byRange = (color: string, range: readonly Json[]): Json => ({ type: "range", color, rangeList: { range } });

export const BATTERY: Json = {
  layout: "vertical_solid",
  sectionsCount: 4,
  showValue: true,
  autoScaleValueSize: true,
  valueColor: always("rgba(0, 0, 0, 0.87)"),
  batteryLevelColor: byRange("rgba(224, 224, 224, 1)", [
    { from: null, to: 25, color: "rgba(227, 71, 71, 1)" },
    { from: 25, to: 50, color: "rgba(246, 206, 67, 1)" },
    { from: 50, to: null, color: "rgba(92, 223, 144, 1)" },
  ]),
  batteryShapeColor: byRange("rgba(224, 224, 224, 0.32)", [
    { from: null, to: 25, color: "rgba(227, 71, 71, 0.32)" },
    { from: 25, to: 50, color: "rgba(246, 206, 67, 0.32)" },
    { from: 50, to: null, color: "rgba(92, 223, 144, 0.32)" },
  ]),
};

export const SIGNAL: Json = {
  layout: "wifi",
  showDate: false,
  dateFormat: { lastUpdateAgo: true },
  activeBarsColor: byRange("rgba(92, 223, 144, 1)", [
    { to: -85, color: "rgba(227, 71, 71, 1)" },
    { from: -85, to: -70, color: "rgba(255, 122, 0, 1)" },
    { from: -70, to: -55, color: "rgba(246, 206, 67, 1)" },
    { from: -55, color: "rgba(92, 223, 144, 1)" },
  ]),
  inactiveBarsColor: "rgba(224, 224, 224, 1)",
  noSignalRssiValue: -100,
};

export const WIND: Json = {
  layout: "default",
  directionalNamesElseDegrees: true,
  centerValueColor: always("rgba(0, 0, 0, 0.87)"),
  ticksColor: "rgba(0, 0, 0, 0.12)",
  majorTicksColor: "rgba(158, 158, 158, 1)",
  minorTicksColor: "rgba(0, 0, 0, 0.12)",
  arrowColor: "rgba(0, 0, 0, 0.87)",
};

export const TANK: Json = {
  datasourceUnits: "%",
  layout: "percentage",
  volumeConstant: 500,
  volumeUnits: "L",
  units: "%",
  decimals: 0,
  tankColor: always("#242770"),
  liquidColor: always("#7A8BFF"),
  valueColor: always("rgba(0, 0, 0, 0.87)"),
  volumeColor: "rgba(0, 0, 0, 0.18)",
  showBackgroundOverlay: true,
  backgroundOverlayColor: always("rgba(255, 255, 255, 0.76)"),
};

export interface TankShape {
  value: string;
  label: string;
  outline: string;
  top: number;
  bottom: number;
}

/** Tanks by the names that settings have for them, as they are drawn in a box of 100 by 100. */
export const SHAPES: readonly [TankShape, ...TankShape[]] = [
  { value: "Vertical Cylinder", label: "Standing cylinder", outline: "M 22 16 C 22 6 78 6 78 16 V 84 C 78 94 22 94 22 84 Z", top: 8.5, bottom: 91.5 },
  { value: "Vertical Oval", label: "Standing oval", outline: "M 22 38 A 28 28 0 0 1 78 38 V 62 A 28 28 0 0 1 22 62 Z", top: 10, bottom: 90 },
  { value: "Vertical Capsule", label: "Standing capsule", outline: "M 30 28 A 20 20 0 0 1 70 28 V 72 A 20 20 0 0 1 30 72 Z", top: 8, bottom: 92 },
  { value: "Rectangle", label: "Rectangle", outline: "M 15 10 H 85 V 90 H 15 Z", top: 10, bottom: 90 },
  { value: "Horizontal Oval", label: "Lying oval", outline: "M 35 22 H 65 A 28 28 0 0 1 65 78 H 35 A 28 28 0 0 1 35 22 Z", top: 22, bottom: 78 },
  { value: "Horizontal Ellipse", label: "Lying ellipse", outline: "M 5 50 A 45 28 0 0 1 95 50 A 45 28 0 0 1 5 50 Z", top: 22, bottom: 78 },
  { value: "Horizontal Dish Ends", label: "Lying, with dished ends", outline: "M 14 22 H 86 Q 98 50 86 78 H 14 Q 2 50 14 22 Z", top: 22, bottom: 78 },
  { value: "Horizontal Cylinder", label: "Lying cylinder", outline: "M 10 24 C 16 18 16 82 10 76 C 4 70 4 30 10 24 H 90 C 96 30 96 70 90 76 H 10 Z", top: 24, bottom: 76 },
  { value: "Horizontal Capsule", label: "Lying capsule", outline: "M 25 30 H 75 A 20 20 0 0 1 75 70 H 25 A 20 20 0 0 1 25 30 Z", top: 30, bottom: 70 },
  { value: "Horizontal 2:1 Elliptical", label: "Lying, with elliptical ends", outline: "M 18 22 H 82 A 14 28 0 0 1 82 78 H 18 A 14 28 0 0 1 18 22 Z", top: 22, bottom: 78 },
];

/** How much of a unit one litre is. */
export const PER_LITRE: Readonly<Record<string, number>> = {
  L: 1, "mm³": 1e6, "cm³": 1e3, "m³": 1e-3, "km³": 1e-12, mL: 1e3, hl: 0.01, "in³": 61.0237, "ft³": 1 / 28.3168, "yd³": 1 / 764.555,
  "fl-oz": 33.814, pt: 1 / 0.473176, qt: 1 / 0.946353, gal: 1 / 3.78541, bbl: 1 / 158.987,
};
