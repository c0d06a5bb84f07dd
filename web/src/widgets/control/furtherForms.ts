// Forms for lamps, for buttons of two halves, and for the older controls, whose settings lie side by side.

import { ICON_NAMES } from "@/icons/names";
import { valueAt, type FormField, type FormValues } from "@/ui/form/values";
import type { WidgetForm } from "../forms";
import { actionFields } from "../form/actions";
import { heading, only, textFonts, usuallyOn } from "../form/parts";
import { amount, change, disabled, range, SCOPES, state } from "./forms";
import { COLUMNS, GPIO, SLIDER_COLORS } from "./olderSettings";
import { STATUS } from "./statusSettings";

type When = NonNullable<FormField["when"]>;

const isOn = (path: string): When => (values) => valueAt(values, path) === true;
const isNotOff = (path: string): When => (values) => valueAt(values, path) !== false;

const STATUS_LAYOUTS = [
  { value: "default", label: "Icon above, words below" },
  { value: "center", label: "In the middle" },
  { value: "icon", label: "The icon alone" },
];

/** Whether there is something that says that a status can't be used. */
const mayBeDisabled: When = (values) => {
  const action = valueAt(values, "disabledState.action");
  return action === "DO_NOTHING" ? isOn("disabledState.defaultValue")(values) : typeof action === "string";
};

/** Fields of how one of the two states of a status looks. */
const statusLook = (label: string, path: string, word: string): FormField[] => [
  heading(label),
  usuallyOn(`${path}.showLabel`, "Show the label"),
  { name: `${path}.label`, label: "Label", help: "Empty for that of the key or the title.", when: isNotOff(`${path}.showLabel`) },
  usuallyOn(`${path}.showStatus`, "Show the word for it"),
  { name: `${path}.status`, label: "Word for it", otherwise: word, when: isNotOff(`${path}.showStatus`) },
  { name: `${path}.icon`, label: "Icon", type: "suggest", options: ICON_NAMES },
  { name: `${path}.iconSize`, label: "Size of the icon", type: "number", least: 8, most: 400 },
  { name: `${path}.background.color`, label: "Color of the ground", type: "color" },
  { name: `${path}.primaryColor`, label: "Color of icon and label", type: "color" },
  { name: `${path}.secondaryColor`, label: "Color of the word for it", type: "color" },
  ...only(mayBeDisabled, [
    { name: `${path}.backgroundDisabled.color`, label: "Ground, when it can't be used", type: "color" },
    { name: `${path}.primaryColorDisabled`, label: "Icon and label, when it can't be used", type: "color" },
    { name: `${path}.secondaryColorDisabled`, label: "Word for it, when it can't be used", type: "color" },
  ]),
  ...only(isNotOff(`${path}.showLabel`), textFonts(`${path}.labelFont`, "Font of the label")),
  ...only(isNotOff(`${path}.showStatus`), textFonts(`${path}.statusFont`, "Font of the word for it")),
];

/** Fields of one half of a button. */
const half = (label: string, side: "left" | "right", word: string): FormField[] => {
  const path = `appearance.${side}Appearance`;
  return [
    heading(label),
    usuallyOn(`${path}.showLabel`, "Show the label"),
    { name: `${path}.label`, label: "Label", otherwise: word, when: isNotOff(`${path}.showLabel`) },
    usuallyOn(`${path}.showIcon`, "Show an icon"),
    { name: `${path}.icon`, label: "Icon", type: "suggest", options: ICON_NAMES, when: isNotOff(`${path}.showIcon`) },
    ...actionFields(`${side}ButtonClick`, { mayDoNothing: true, knowsStates: true }).map((field): FormField => (field.name === `${side}ButtonClick.type` ? { ...field, label: "A click", required: false, otherwise: "doNothing" } : field)),
  ];
};

const GET_WAYS = [
  { value: "none", label: "It is always the same" },
  { value: "rpc", label: "The device is asked" },
  { value: "attribute", label: "An attribute" },
  { value: "timeseries", label: "Telemetry" },
];

/** Fields of how an older control asks and tells its device. */
const OLDER_CALL: readonly FormField[] = [
  { name: "requestPersistent", label: "Keep it until the device connects", type: "boolean" },
  { name: "persistentPollingInterval", label: "Ask for its state every (milliseconds)", type: "number", least: 1_000, otherwise: 5_000, when: isOn("requestPersistent") },
];
const waits = (ms: number): FormField => ({ name: "requestTimeout", label: "Wait at most (milliseconds)", type: "number", least: 0, otherwise: ms });

/** Fields of where an older control has its state from; `key` is the name of the setting that says under which key it is stored. */
function olderGets(key: string, ways: readonly string[], usual: string, initial: NonNullable<FormField["type"]>): FormField[] {
  const isWay = (...wanted: string[]): When => (values) => wanted.includes(String(values["retrieveValueMethod"] ?? usual));
  return [
    { name: "retrieveValueMethod", label: "Comes from", type: "select", options: GET_WAYS.filter(({ value }) => ways.includes(value)), otherwise: usual },
    { name: "initialValue", label: "Value at the beginning", type: initial },
    ...(ways.includes("rpc") ? [{ name: "getValueMethod", label: "Method that asks for it", otherwise: "getValue", when: isWay("rpc") } satisfies FormField] : []),
    { name: key, label: "Key", otherwise: "value", when: isWay("attribute", "timeseries") },
    { name: "parseValueFunction", label: "Function of data", type: "code", help: "function (data)", when: isWay("rpc", "attribute", "timeseries") },
  ];
}
const OLDER_SETS: readonly FormField[] = [
  { name: "setValueMethod", label: "Method", otherwise: "setValue" },
  { name: "convertValueFunction", label: "Function of value", type: "code", help: "function (value)" },
];
const ALL_WAYS = GET_WAYS.map(({ value }) => value);
const OLDER_SWITCH: readonly FormField[] = [
  heading("Whether it is on"), ...olderGets("valueKey", ALL_WAYS, "rpc", "boolean"),
  heading("Switching"), ...OLDER_SETS, waits(500), ...OLDER_CALL,
];
const LABEL: FormField = { name: "title", label: "Label" };

const BUTTON_LOOK: readonly FormField[] = [
  { name: "buttonText", label: "Words on the button" },
  usuallyOn("styleButton.isRaised", "With a border"),
  { name: "styleButton.isPrimary", label: "In the main color", type: "boolean" },
  ...only((values) => !isOn("styleButton.isPrimary")(values), [
    { name: "styleButton.bgColor", label: "Color of the ground", type: "color" },
    { name: "styleButton.textColor", label: "Color of the words", type: "color" },
  ]),
];

const notJson = (written: string): string | undefined => {
  try {
    JSON.parse(written);
    return undefined;
  } catch {
    return "This is no JSON; it is sent as a text.";
  }
};

/** The pins of a board; on switches, their colour is that of all. */
const pins = (isPanel: boolean): FormField => ({
  name: "gpioList", label: "Pins", type: "rows",
  rowTitle: ({ pin, label }) => ({ title: typeof label === "string" ? label : "", note: typeof pin === "number" ? String(pin) : "" }),
  fields: [
    { name: "pin", label: "Number of the pin", type: "number", required: true, least: 0 },
    { name: "label", label: "Label" },
    { name: "row", label: "Row, from 0", type: "number", least: 0, most: 99, initial: 0 },
    { name: "col", label: "Side", type: "choice", choicesOf: () => [{ value: 0, label: "on the left" }, { value: 1, label: "on the right" }], initial: 0 },
    ...(isPanel ? [{ name: "color", label: "Color", type: "color" } satisfies FormField] : []),
  ],
});

/** Whether a knob is set in the older way, side by side. */
const isOlderKnob = (settings: FormValues): boolean => settings["initialState"] === undefined && (settings["getValueMethod"] !== undefined || settings["setValueMethod"] !== undefined);

export const FURTHER_CONTROL_FORMS: readonly WidgetForm[] = [
  {
    names: /^status_widget$/,
    begin: STATUS,
    settings: [
      { name: "layout", label: "Arrangement", type: "select", options: STATUS_LAYOUTS, otherwise: "default" },
      ...state("Whether it is on", "initialState").map((field): FormField => (field.name === "initialState.action" ? { ...field, required: false, help: "Empty for the value of the key." } : field)),
      ...statusLook("While it is on", "onState", "On"), ...statusLook("While it is off", "offState", "Off"), ...disabled,
    ],
  },
  {
    names: /^two_segment_button$/,
    settings: [
      { name: "appearance.layout", label: "Corners", type: "select", options: [{ value: "squared", label: "Straight" }, { value: "rounded", label: "Round" }], otherwise: "squared" },
      ...state("Whether the left half is chosen", "initialState"), ...half("Left half", "left", "Left"), ...half("Right half", "right", "Right"),
      heading("Look"),
      { name: "appearance.cardBorder", label: "Width of the border", type: "number", least: 0, most: 10, otherwise: 1 },
      { name: "appearance.cardBorderColor", label: "Color of the border", type: "color", otherwise: "#305680" },
      { name: "appearance.selectedStyle.mainColor", label: "Words of the chosen half", type: "color", otherwise: "#FFFFFF" },
      { name: "appearance.selectedStyle.backgroundColor", label: "Ground of the chosen half", type: "color", otherwise: "#305680" },
      { name: "appearance.unselectedStyle.mainColor", label: "Words of the other half", type: "color", otherwise: "#000000" },
      { name: "appearance.unselectedStyle.backgroundColor", label: "Ground of the other half", type: "color", otherwise: "#E8E8E8" },
      ...disabled,
    ],
  },
  {
    names: /^control_widgets\.led_indicator$/,
    settings: [
      LABEL,
      { name: "ledColor", label: "Color", type: "color", otherwise: "#4caf50" },
      heading("Whether it is on"), ...olderGets("valueAttribute", ["attribute", "timeseries"], "attribute", "boolean"),
      heading("Whether the device is well"),
      usuallyOn("performCheckStatus", "Ask the device first"),
      ...only(isNotOff("performCheckStatus"), [{ name: "checkStatusMethod", label: "Method", otherwise: "checkStatus" }, waits(500), ...OLDER_CALL]),
    ],
  },
  { names: /^control_widgets\.round_switch$/, settings: [LABEL, ...OLDER_SWITCH] },
  { names: /^control_widgets\.switch_control$/, settings: [LABEL, usuallyOn("showOnOffLabels", "Write on and off beside it"), ...OLDER_SWITCH] },
  {
    names: /^control_widgets\.slide_toggle_control$/,
    settings: [
      LABEL,
      { name: "labelPosition", label: "Label stands", type: "select", options: [{ value: "after", label: "behind the switch" }, { value: "before", label: "before the switch" }], otherwise: "after" },
      { name: "sliderColor", label: "Color", type: "select", options: SLIDER_COLORS, otherwise: "accent" },
      ...OLDER_SWITCH,
    ],
  },
  {
    names: /^control_widgets\.knob_control$/,
    settings: [
      ...range("minValue", "maxValue"),
      ...only(isOlderKnob, [heading("Its value"), ...olderGets("valueKey", ALL_WAYS, "rpc", "number"), heading("A new value"), ...OLDER_SETS, waits(500), ...OLDER_CALL]),
      ...only((settings) => !isOlderKnob(settings), [...amount("Its value", "initialState"), ...change("A new value", "valueChange")]),
    ],
  },
  {
    names: /^control_widgets\.rpcbutton$/,
    settings: [
      ...BUTTON_LOOK,
      heading("A click"),
      { name: "methodName", label: "Method", otherwise: "rpcCommand" },
      { name: "methodParams", label: "Parameters (JSON)", type: "long", otherwise: "{}", problem: notJson },
      { name: "oneWayElseTwoWay", label: "Without waiting for an answer", type: "boolean" },
      waits(5_000), ...OLDER_CALL,
    ],
  },
  {
    names: /^control_widgets\.update_attributes$/,
    settings: [
      ...BUTTON_LOOK,
      heading("A click"),
      { name: "entityAttributeType", label: "Kind of attributes", type: "select", options: SCOPES, otherwise: "SERVER_SCOPE" },
      { name: "entityParameters", label: "Attributes and their values (JSON)", type: "long", otherwise: "{}", help: 'As in {"limit": 5}.' },
    ],
  },
  {
    names: /^control_widgets\.persistent_table$/,
    settings: [
      { name: "displayColumns", label: "Columns", type: "several", options: COLUMNS, help: "None for all." },
      { name: "defaultSortOrder", label: "Sorted by", type: "select", options: [{ value: "-createdTime", label: "The newest first" }, { value: "createdTime", label: "The oldest first" }], otherwise: "-createdTime" },
      usuallyOn("enableFilter", "Filters can be changed"),
      usuallyOn("displayDetails", "Details can be opened"),
      usuallyOn("allowSendRequest", "Commands can be sent"),
      usuallyOn("allowDelete", "Commands can be deleted"),
    ],
  },
  { names: /^gpio_widgets\.\w*_panel$/, begin: { ledPanelBackgroundColor: GPIO["ledPanelBackgroundColor"] }, settings: [pins(true), { name: "ledPanelBackgroundColor", label: "Color of the board", type: "color" }] },
  {
    names: /^gpio_widgets\./,
    begin: GPIO,
    settings: [
      pins(false),
      { name: "switchPanelBackgroundColor", label: "Color of the board", type: "color" },
      waits(1_000),
      heading("Asking for the states"),
      { name: "gpioStatusRequest.method", label: "Method" },
      { name: "gpioStatusRequest.paramsBody", label: "Parameters (JSON)", type: "long" },
      { name: "parseGpioStatusFunction", label: "Whether a pin is on: function", type: "code", help: "function (body, pin)" },
      heading("Switching"),
      { name: "gpioStatusChangeRequest.method", label: "Method" },
      { name: "gpioStatusChangeRequest.paramsBody", label: "Parameters (JSON)", type: "long", help: "With {$pin} and {$enabled} in quotes where they belong." },
    ],
  },
  { names: /^gateway_widgets\.service_rpc$/, settings: [{ name: "isConnector", label: "Commands of a connector", type: "boolean", help: "Begins without the method of the gateway itself." }] },
];
