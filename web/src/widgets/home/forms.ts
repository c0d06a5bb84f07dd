// Forms for the settings of links, embedded states and helpers of pages.

import { SCREENS } from "@/app/screens";
import { list, text } from "@/dashboard/json";
import { plainWords } from "@/dashboard/words";
import { t } from "@/i18n";
import { ICON_NAMES } from "@/icons/names";
import type { FormAround } from "@/ui/form/around";
import type { FormOption } from "@/ui/form/values";
import type { WidgetForm } from "../forms";
import { USAGE_ROWS, wholeRow } from "./usage";

const STEPS = [
  { value: "hour", label: "hour" },
  { value: "day", label: "day" },
  { value: "week", label: "week" },
  { value: "twoWeeks", label: "two weeks" },
  { value: "month", label: "30 days" },
];

const OFFERED: readonly FormOption[] = SCREENS.filter(({ section }) => section !== undefined).map(({ path, label }) => ({ value: path, label }));

/** The screens of the menu; those that a file names as ThingsBoard does stay as they are. */
const screens = ({ values }: FormAround): FormOption[] => [
  ...OFFERED.map(({ value, label }) => ({ value, label: t(label) })),
  ...list(values["filter"]).map(String).filter((path) => !OFFERED.some(({ value }) => value === path)).map((path) => ({ value: path, label: path })),
];
const FILTERS = [
  { value: "all", label: "All screens of the menu" },
  { value: "include", label: "Only these" },
  { value: "exclude", label: "All but these" },
];

export const HOME_FORMS: readonly WidgetForm[] = [
  {
    names: /^cards\.dashboard_state_widget$/,
    settings: [
      { name: "stateId", label: "Id of the state", required: true, help: "It stands below the name of each state in the settings of the dashboard." },
      { name: "defaultAutofillLayout", label: "Fill the height of the widget", type: "boolean" },
      { name: "syncParentStateParams", label: "With the parameters of the state around it", type: "boolean" },
    ],
  },
  {
    names: /^(navigation_widgets\.)?navigation_card$/,
    settings: [
      { name: "name", label: "Name", help: "Empty for the name of the screen." },
      { name: "path", label: "Path of the screen", type: "suggest", options: OFFERED.map(({ value }) => value), required: true },
      { name: "icon", label: "Icon", type: "suggest", options: ICON_NAMES },
    ],
  },
  {
    names: /^(navigation_widgets\.)?navigation_cards$/,
    settings: [
      { name: "filterType", label: "Shows", type: "select", options: FILTERS, otherwise: "all" },
      { name: "filter", label: "Screens", type: "several", optionsFrom: screens, when: ({ filterType }) => filterType === "include" || filterType === "exclude" },
    ],
  },
  {
    names: /^api_usage$/,
    settings: [
      { name: "dsEntityAliasId", label: "Data of", type: "select", required: true, optionsFrom: ({ options }) => options?.["aliases"] ?? [], help: "An alias of the state of API usage, or of another entity with such keys." },
      {
        name: "apiUsageDataKeys", label: "Kinds of use", type: "rows", begin: USAGE_ROWS, settle: wholeRow,
        rowTitle: ({ label }) => ({ title: plainWords(text(label) ?? ""), note: "" }),
        fields: [
          { name: "label", label: "Label" },
          { name: "current.name", label: "Key of the count", required: true },
          { name: "maxLimit.name", label: "Key of the limit", help: "Empty where there is none." },
          { name: "status.name", label: "Key of the state" },
          { name: "state", label: "A click opens the state", type: "select", optionsFrom: ({ options }) => options?.["states"] ?? [] },
        ],
      },
    ],
  },
  {
    names: /^date\.date_range_navigator$/,
    settings: [
      { name: "stepSize", label: "Step", type: "select", options: STEPS },
      { name: "hidePicker", label: "Without dates", type: "boolean" },
      { name: "hideInterval", label: "Without the length", type: "boolean" },
    ],
  },
  {
    names: /^html_container$/,
    settings: [
      { name: "html", label: "HTML", type: "code" },
      { name: "css", label: "Styles (CSS)", type: "code" },
      { name: "js", label: "JavaScript", type: "code", help: "It runs in a frame without access to the page, the session and the network." },
    ],
  },
  {
    names: /^home_page_widgets\.(quick|documentation)_links$/,
    settings: [{ name: "columns", label: "Columns", type: "number" }],
  },
];
