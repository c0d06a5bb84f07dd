// Forms for cards, gauges, bars and texts.

import { text } from "@/dashboard/json";
import type { FormField } from "@/ui/form/values";
import { ICON_NAMES } from "@/icons/names";
import type { WidgetForm } from "../forms";
import { colors, dates, FAMILIES, heading, letters, only, ranges, STYLES, textFonts, usuallyOn, WEIGHTS } from "./parts";

const LAYOUTS = [
  { value: "square", label: "In a square" },
  { value: "vertical", label: "One below the other" },
  { value: "centered", label: "In the middle" },
  { value: "simplified", label: "Value and label alone" },
  { value: "horizontal", label: "Side by side" },
  { value: "horizontal_reversed", label: "Side by side, value first" },
];
const PLACES = [
  { value: "center", label: "In the middle" },
  { value: "leftTop", label: "On the left, above" },
  { value: "leftBottom", label: "On the left, below" },
  { value: "rightTop", label: "On the right, above" },
  { value: "rightBottom", label: "On the right, below" },
];
const GAUGES = [
  { value: "arc", label: "Arc" },
  { value: "donut", label: "Ring" },
  { value: "horizontalBar", label: "Lying bar" },
  { value: "verticalBar", label: "Upright bar" },
];

type When = NonNullable<FormField["when"]>;
const showsLabel: When = ({ showLabel }) => showLabel !== false;
const showsIcon: When = ({ showIcon }) => showIcon !== false;
const showsGround: When = ({ showIconBackground }) => showIconBackground !== false;
const ICON: FormField[] = [
  { name: "icon", label: "Icon", type: "suggest", options: ICON_NAMES, otherwise: "thermostat", when: showsIcon },
  { name: "iconSize", label: "Size of the icon", type: "number", otherwise: 40, when: showsIcon },
];
const SCALE: FormField[] = [
  { name: "minValue", label: "Least value", type: "number" },
  { name: "maxValue", label: "Greatest value", type: "number" },
  { name: "units", label: "Unit", when: ({ units }) => typeof units !== "object" || units === null },
];

export const CARD_FORMS: readonly WidgetForm[] = [
  {
    names: /^cards\.simple_card$/,
    settings: [
      { name: "labelPosition", label: "Label stands", type: "select", otherwise: "left", options: [{ value: "left", label: "on the left" }, { value: "top", label: "Above" }] },
      ...colors("valueColor", "Color of the value"),
    ],
  },
  {
    names: /^(alarm|entity)_count$|\.(alarm|entity)_count$/,
    settings: [
      { name: "layout", label: "Arrangement", type: "select", otherwise: "column", options: [{ value: "column", label: "One below the other" }, { value: "row", label: "Side by side" }] },
      usuallyOn("autoScale", "As large as the card permits"),
      usuallyOn("showLabel", "Show the label"),
      { name: "label", label: "Label", when: showsLabel },
      ...only(showsLabel, colors("labelColor", "Color of the label")),
      usuallyOn("showIcon", "Show an icon"),
      { name: "icon", label: "Icon", type: "suggest", options: ICON_NAMES, when: showsIcon },
      { name: "iconSize", label: "Size of the icon", type: "number", when: showsIcon },
      ...only(showsIcon, colors("iconColor", "Color of the icon")),
      usuallyOn("showIconBackground", "Show a ground behind the icon"),
      { name: "iconBackgroundSize", label: "Size of the ground", type: "number", when: showsGround },
      ...only(showsGround, colors("iconBackgroundColor", "Color of the ground")),
      ...colors("valueColor", "Color of the value"),
      { name: "showChevron", label: "Show an arrow at the end", type: "boolean" },
      { name: "chevronColor", label: "Color of the arrow", type: "color", when: ({ showChevron }) => showChevron === true },
    ],
  },
  {
    names: /^(cards|gateway_widgets)\.markdown_card$/,
    settings: [
      { name: "useMarkdownTextFunction", label: "A function makes the text", type: "boolean" },
      { name: "markdownTextFunction", label: "Function of data", type: "code", when: ({ useMarkdownTextFunction }) => useMarkdownTextFunction === true },
      { name: "markdownCss", label: "Styles (CSS)", type: "code" },
    ],
  },
  {
    names: /^cards\.html_(value_)?card$|^gateway_widgets\.gateway_status$/,
    settings: [
      { name: "cardHtml", label: "HTML", type: "code" },
      { name: "cardCss", label: "Styles (CSS)", type: "code" },
    ],
  },
  {
    names: /(^|[._])simple_\w*chart_card(_with_background)?$/,
    settings: [
      { name: "layout", label: "Arrangement", type: "select", otherwise: "left", options: [{ value: "left", label: "Value on the left" }, { value: "right", label: "Value on the right" }] },
      usuallyOn("showValue", "Show the value"),
      usuallyOn("autoScale", "As large as the card permits"),
      ...colors("valueColor", "Color of the value"),
    ],
  },
  {
    names: /(^|\.)aggregated_value_card$|chart_card(_with_background)?$/,
    settings: [
      usuallyOn("showSubtitle", "Show a second line"),
      { name: "subtitle", label: "Second line", help: "With ${entityName} and ${key} for values.", when: ({ showSubtitle }) => showSubtitle !== false },
      usuallyOn("showDate", "Show when it came"),
      usuallyOn("showChart", "Draw the course"),
    ],
    latestKeys: [
      { name: "position", label: "It stands", type: "select", otherwise: "center", options: PLACES },
      { name: "showArrow", label: "An arrow up or down", type: "boolean" },
      ...colors("color", "Color of the value"),
      ...textFonts("font", "Font of the value"),
    ],
  },
  {
    names: /progress_bar(_with_background)?$/,
    settings: [
      { name: "label", label: "Label" },
      { name: "tickMin", label: "Least value", type: "number" },
      { name: "tickMax", label: "Greatest value", type: "number" },
      usuallyOn("showValue", "Show the value"),
      usuallyOn("showTicks", "Show the ends of the scale"),
      { name: "barBackground", label: "Background of the bar", type: "color" },
      ...colors("barColor", "Color of the bar"),
      ...colors("valueColor", "Color of the value"),
    ],
  },
  {
    names: /^digital_gauges\./,
    settings: [
      { name: "gaugeType", label: "Look", type: "select", options: GAUGES },
      ...SCALE,
      { name: "decimals", label: "Decimals", type: "number" },
      { name: "title", label: "Words below" },
      usuallyOn("showTitle", "Show the words below"),
      usuallyOn("showValue", "Show the value"),
      usuallyOn("showMinMax", "Show the ends of the scale"),
      ...colors("barColor", "Color of the bar"),
    ],
  },
  {
    names: /compass$/,
    settings: [
      { name: "majorTicks", label: "Names of the directions", type: "texts", help: "Eight, from the north to the right." },
      { name: "minorTicks", label: "Lines between them", type: "number", least: 0, most: 45, otherwise: 22 },
      { name: "colorPlate", label: "Color of the plate", type: "color" },
      usuallyOn("showBorder", "Draw the border"),
      { name: "colorBorder", label: "Color of the border", type: "color", when: ({ showBorder }) => showBorder !== false },
      { name: "colorMajorTicks", label: "Color of the long lines", type: "color" },
      { name: "colorMinorTicks", label: "Color of the short lines", type: "color" },
      { name: "colorNeedle", label: "Color of the needle", type: "color" },
      { name: "needleCircleSize", label: "Size of the needle's middle", type: "number", least: 0, most: 50, otherwise: 15 },
      { name: "colorNeedleCircle", label: "Color of the needle's middle", type: "color", otherwise: "#e8e8e8" },
      heading("Directions"),
      { name: "majorTickFont.color", label: "Color", type: "color" },
      ...letters("majorTickFont", 20),
    ],
  },
  {
    names: /^analogue_gauges\.|(^|_)gauge$/,
    settings: [
      ...SCALE,
      { name: "valueDec", label: "Decimals", type: "number" },
      ranges("highlights", "Ranges with their colors"),
    ],
  },
  {
    names: /^label_card$/,
    settings: [
      usuallyOn("autoScale", "As large as the card permits"),
      { name: "label", label: "Label" },
      { name: "labelColor", label: "Color of the label", type: "color" },
      usuallyOn("showIcon", "Show an icon"),
      ...ICON,
      { name: "iconColor", label: "Color of the icon", type: "color", otherwise: "#5469FF", when: showsIcon },
      ...textFonts("labelFont", "Font of the label"),
    ],
  },
  {
    names: /^label_value_card$/,
    settings: [
      usuallyOn("autoScale", "As large as the card permits"),
      usuallyOn("showLabel", "Show the label"),
      { name: "label", label: "Label", help: "Empty for that of the key.", when: showsLabel },
      usuallyOn("showIcon", "Show an icon"),
      ...ICON,
      ...only(showsLabel, colors("labelColor", "Color of the label")),
      ...only(showsLabel, textFonts("labelFont", "Font of the label")),
      ...only(showsIcon, colors("iconColor", "Color of the icon")),
      ...colors("valueColor", "Color of the value"),
      ...textFonts("valueFont", "Font of the value"),
    ],
  },
  {
    names: /^cards\.label_widget$/,
    settings: [
      { name: "backgroundImageUrl", label: "Picture", type: "image" },
      {
        name: "labels", label: "Labels", type: "rows",
        rowTitle: ({ pattern }) => ({ title: text(pattern) ?? "${#0}", note: "" }),
        fields: [
          { name: "pattern", label: "Words, with ${#0} or ${key} for values", type: "long", otherwise: "${#0}", help: "As in ${temperature:1} °C; :1 is the number of decimals." },
          { name: "x", label: "From the left (% of the picture)", type: "number", least: 0, most: 100, initial: 50 },
          { name: "y", label: "From above (% of the picture)", type: "number", least: 0, most: 100, initial: 50 },
          { name: "backgroundColor", label: "Color of the ground", type: "color" },
          { name: "font.color", label: "Color of the words", type: "color", otherwise: "#fff" },
          { name: "font.size", label: "Size of the letters (% of the height)", type: "number", least: 1, most: 100, otherwise: 6 },
          { name: "font.weight", label: "Weight of the letters", type: "select", options: WEIGHTS, otherwise: "500" },
          { name: "font.style", label: "Style", type: "select", options: STYLES, otherwise: "normal" },
          { name: "font.family", label: "Font", type: "suggest", options: FAMILIES },
        ],
      },
    ],
  },
  {
    names: /^(?!.*(navigation|attributes|aggregated|chart|markdown|html|label|dashboard|battery|signal|progress)).*_card(_with_background)?$/,
    settings: [
      { name: "layout", label: "Arrangement", type: "select", options: LAYOUTS },
      usuallyOn("autoScale", "As large as the card permits"),
      usuallyOn("showLabel", "Show the label"),
      { name: "label", label: "Label", help: "Empty for that of the key.", when: showsLabel },
      usuallyOn("showIcon", "Show an icon"),
      { name: "icon", label: "Icon", type: "suggest", options: ICON_NAMES, when: showsIcon },
      { name: "iconSize", label: "Size of the icon", type: "number", when: showsIcon },
      ...only(showsIcon, colors("iconColor", "Color of the icon")),
      ...colors("valueColor", "Color of the value"),
      ...textFonts("valueFont", "Font of the value"),
      ...only(showsLabel, [...colors("labelColor", "Color of the label"), ...textFonts("labelFont", "Font of the label")]),
      ...dates("When it came", true),
    ],
  },
];
