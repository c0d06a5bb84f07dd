// Forms for the settings of controls: where a state comes from, and what a new one does.

import { valueAt, type FormField, type FormValues } from "@/ui/form/values";
import type { WidgetForm } from "../forms";
import { heading } from "../form/parts";

export const SCOPES = [
  { value: "SERVER_SCOPE", label: "Server attributes" },
  { value: "SHARED_SCOPE", label: "Shared attributes" },
];
const ANY_SCOPES = [...SCOPES, { value: "CLIENT_SCOPE", label: "Client attributes" }];
const GETS = [
  { value: "DO_NOTHING", label: "It is always the same" },
  { value: "GET_ATTRIBUTE", label: "An attribute" },
  { value: "GET_TIME_SERIES", label: "Telemetry" },
  { value: "EXECUTE_RPC", label: "The device is asked" },
  { value: "GET_ALARM_STATUS", label: "Whether there are active alarms" },
  { value: "GET_DASHBOARD_STATE", label: "The state of the dashboard" },
  { value: "GET_DASHBOARD_STATE_OBJECT", label: "The state of the dashboard with its parameters" },
];
const SEVERITIES = [
  { value: "CRITICAL", label: "Critical" },
  { value: "MAJOR", label: "Major" },
  { value: "MINOR", label: "Minor" },
  { value: "WARNING", label: "Warning" },
  { value: "INDETERMINATE", label: "Indeterminate" },
];
const SETS = [
  { value: "EXECUTE_RPC", label: "A command to the device" },
  { value: "SET_ATTRIBUTE", label: "An attribute is written" },
  { value: "ADD_TIME_SERIES", label: "Telemetry is written" },
];
const DATA = [
  { value: "VALUE", label: "The value itself" },
  { value: "CONSTANT", label: "Always the same" },
  { value: "FUNCTION", label: "What a function makes of it" },
  { value: "NONE", label: "Nothing" },
];
const MAKES = [
  { value: "NONE", label: "As it comes" },
  { value: "FUNCTION", label: "What a function makes of it" },
];

/** Shows a field while another one has one of some values. */
export const where = (path: string, ...wanted: string[]) => (values: FormValues): boolean => wanted.includes(String(valueAt(values, path) ?? ""));

/** Fields of how a device is asked or told, besides the method. */
function callFields(path: string, when: NonNullable<FormField["when"]>): FormField[] {
  return [
    { name: `${path}.requestTimeout`, label: "Wait at most (milliseconds)", type: "number", when },
    { name: `${path}.requestPersistent`, label: "Keep it until the device connects", type: "boolean", when },
    { name: `${path}.persistentPollingInterval`, label: "Ask for its state every (milliseconds)", type: "number", when: (values) => when(values) && valueAt(values, `${path}.requestPersistent`) === true },
  ];
}

/** Fields of where a value comes from; `fixed` is the one that it always has where it comes from nowhere. */
export function gets(path: string, kind: "state" | "value", fixed?: FormField["type"]): FormField[] {
  const action = `${path}.action`;
  const whole = where(action, "GET_DASHBOARD_STATE_OBJECT");
  const plain = where(action, "GET_ATTRIBUTE", "GET_TIME_SERIES", "EXECUTE_RPC", "GET_DASHBOARD_STATE");
  const live: typeof plain = (values) => plain(values) || whole(values);
  const asked = where(action, "EXECUTE_RPC");
  const alarms = where(action, "GET_ALARM_STATUS");
  const converter = `${path}.dataToValue`;
  return [
    { name: action, label: "Comes from", type: "select", required: true, options: GETS },
    ...(fixed === undefined ? [] : [{ name: `${path}.defaultValue`, label: "Value", type: fixed, when: where(action, "DO_NOTHING") } satisfies FormField]),
    { name: `${path}.executeRpc.method`, label: "Method", when: asked },
    ...callFields(`${path}.executeRpc`, asked),
    { name: `${path}.getAttribute.key`, label: "Key", when: where(action, "GET_ATTRIBUTE") },
    { name: `${path}.getAttribute.scope`, label: "Kind of attributes", type: "select", options: ANY_SCOPES, when: where(action, "GET_ATTRIBUTE") },
    { name: `${path}.getTimeSeries.key`, label: "Key", when: where(action, "GET_TIME_SERIES") },
    { name: `${path}.getAlarmStatus.severityList`, label: "Severities", type: "several", options: SEVERITIES, help: "None for all.", when: alarms },
    { name: `${path}.getAlarmStatus.typeList`, label: "Types of alarms", type: "texts", help: "None for all.", when: alarms },
    { name: `${converter}.type`, label: "Read as", type: "select", options: MAKES, otherwise: "NONE", when: plain },
    { name: `${converter}.dataToValueFunction`, label: "Function of data", type: "code", help: "function (data)", when: (values) => whole(values) || (plain(values) && valueAt(values, `${converter}.type`) === "FUNCTION") },
    ...(kind === "state" ? [{ name: `${converter}.compareToValue`, label: "Is so when it equals", type: "value", otherwise: true, when: live } satisfies FormField] : []),
  ];
}

/** Fields of what a new value does. */
export function sets(path: string): FormField[] {
  const action = `${path}.action`;
  const data = `${path}.valueToData`;
  const sends = where(action, "EXECUTE_RPC");
  return [
    { name: action, label: "Does", type: "select", required: true, options: SETS },
    { name: `${path}.executeRpc.method`, label: "Method", when: sends },
    ...callFields(`${path}.executeRpc`, sends),
    { name: `${path}.setAttribute.scope`, label: "Kind of attributes", type: "select", options: SCOPES, when: where(action, "SET_ATTRIBUTE") },
    { name: `${path}.setAttribute.key`, label: "Key", when: where(action, "SET_ATTRIBUTE") },
    { name: `${path}.putTimeSeries.key`, label: "Key", when: where(action, "ADD_TIME_SERIES") },
    { name: `${data}.type`, label: "Sends", type: "select", options: DATA },
    { name: `${data}.constantValue`, label: "What is sent", type: "value", when: where(`${data}.type`, "CONSTANT") },
    { name: `${data}.valueToDataFunction`, label: "Function of value", type: "code", help: "function (value)", when: where(`${data}.type`, "FUNCTION") },
  ];
}

export const state = (label: string, path: string): FormField[] => [heading(label), ...gets(path, "state", "boolean")];
export const amount = (label: string, path: string): FormField[] => [heading(label), ...gets(path, "value", "number")];
export const change = (label: string, path: string): FormField[] => [heading(label), ...sets(path)];
export const disabled = [heading("When it can't be used"), ...gets("disabledState", "state", "boolean")];

const LOOKS = [
  { value: "outlined", label: "With a border" },
  { value: "filled", label: "Filled" },
  { value: "underlined", label: "With a line below" },
  { value: "basic", label: "Words alone" },
];
const POWER_LOOKS = [
  { value: "default", label: "Ring and plate" },
  { value: "simplified", label: "Plate alone" },
  { value: "outlined", label: "Rings alone" },
  { value: "default_volume", label: "Ring and plate, raised" },
  { value: "simplified_volume", label: "Plate alone, raised" },
  { value: "outlined_volume", label: "Rings alone, raised" },
  { value: "default_icon", label: "Ring and plate, with an icon" },
  { value: "simplified_icon", label: "Plate alone, with an icon" },
  { value: "outlined_icon", label: "Rings alone, with an icon" },
];
const look = (path: string): FormField[] => [
  { name: `${path}.label`, label: "Label" },
  { name: `${path}.type`, label: "Look", type: "select", options: LOOKS },
];
export const range = (low: string, high: string): FormField[] => [
  { name: low, label: "Least value", type: "number" },
  { name: high, label: "Greatest value", type: "number" },
];
const format: FormField[] = [
  { name: "valueUnits", label: "Unit" },
  { name: "valueDecimals", label: "Decimals", type: "number" },
];

export const CONTROL_FORMS: readonly WidgetForm[] = [
  {
    names: /^single_switch$/,
    settings: [
      { name: "label", label: "Label" },
      {
        name: "layout", label: "Switch stands", type: "select",
        options: [{ value: "right", label: "on the right" }, { value: "left", label: "on the left" }, { value: "centered", label: "in the middle" }],
      },
      ...state("Whether it is on", "initialState"), ...change("Switching on", "onUpdateState"), ...change("Switching off", "offUpdateState"), ...disabled,
    ],
  },
  {
    names: /^power_button$/,
    settings: [
      { name: "layout", label: "Look", type: "select", options: POWER_LOOKS },
      ...state("Whether it is on", "initialState"), ...change("Switching on", "onUpdateState"), ...change("Switching off", "offUpdateState"), ...disabled,
    ],
  },
  {
    names: /^toggle_button$/,
    settings: [
      ...state("Whether it is on", "initialState"),
      ...change("Switching on", "checkState"), ...look("uncheckedAppearance"),
      ...change("Switching off", "uncheckState"), ...look("checkedAppearance"),
      ...disabled,
    ],
  },
  { names: /^command_button$/, settings: [...look("appearance"), ...change("A click", "onClickState"), ...disabled] },
  { names: /^action_button$/, settings: [...look("appearance"), ...state("When it looks active", "activatedState"), ...disabled] },
  { names: /^slider$/, settings: [...range("tickMin", "tickMax"), ...format, ...amount("Its value", "initialState"), ...change("A new value", "valueChange"), ...disabled] },
  {
    names: /^value_stepper$/,
    settings: [
      ...range("appearance.minValueRange", "appearance.maxValueRange"),
      { name: "appearance.valueStep", label: "Step", type: "number" },
      ...amount("Its value", "initialState"), ...change("The left button", "leftButtonClick"), ...change("The right button", "rightButtonClick"), ...disabled,
    ],
  },
  {
    names: /^control_widgets\.rpc_(debug_terminal|remote_shell)$/,
    settings: [{ name: "requestTimeout", label: "Wait at most (milliseconds)", type: "number" }],
  },
];
