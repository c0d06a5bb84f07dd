// Forms for the settings of links, embedded states and helpers of pages.

import type { WidgetForm } from "../forms";

const STEPS = [
  { value: "hour", label: "hour" },
  { value: "day", label: "day" },
  { value: "week", label: "week" },
  { value: "twoWeeks", label: "two weeks" },
  { value: "month", label: "30 days" },
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
    names: /^navigation_widgets\.navigation_card$/,
    settings: [
      { name: "name", label: "Name", help: "Empty for the name of the screen." },
      { name: "path", label: "Path of the screen", required: true },
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
