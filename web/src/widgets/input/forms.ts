// Forms for the settings of forms.

import { object } from "@/dashboard/model";
import type { FormField } from "@/ui/form/values";
import type { WidgetForm } from "../forms";

const KINDS = [
  { value: "string", label: "Text" },
  { value: "double", label: "Number" },
  { value: "integer", label: "Whole number" },
  { value: "booleanSwitch", label: "Switch" },
  { value: "booleanCheckbox", label: "Checkbox" },
  { value: "select", label: "One of several" },
  { value: "radio", label: "One of several, all visible" },
  { value: "dateTime", label: "Date and time" },
  { value: "date", label: "Date" },
  { value: "time", label: "Time of the day" },
  { value: "color", label: "Color" },
  { value: "JSON", label: "JSON" },
];
const PLACES = [
  { value: "server", label: "Server attributes" },
  { value: "shared", label: "Shared attributes" },
  { value: "timeseries", label: "Telemetry" },
];
const EDITABLE = [
  { value: "editable", label: "Can be changed" },
  { value: "readonly", label: "Can be read" },
  { value: "disabled", label: "Can't be used" },
];

const ONE_KEY: FormField[] = [
  { name: "dataKeyType", label: "Kept in", type: "select", required: true, options: PLACES },
  { name: "dataKeyValueType", label: "Kind of value", type: "select", required: true, options: KINDS },
  { name: "required", label: "A value is needed", type: "boolean" },
  { name: "isEditable", label: "Use", type: "select", options: EDITABLE },
  { name: "minValue", label: "Least value", type: "number", when: ({ dataKeyValueType }) => dataKeyValueType === "double" || dataKeyValueType === "integer" },
  { name: "maxValue", label: "Greatest value", type: "number", when: ({ dataKeyValueType }) => dataKeyValueType === "double" || dataKeyValueType === "integer" },
  {
    name: "selectOptions", label: "Choices", type: "rows", when: ({ dataKeyValueType }) => dataKeyValueType === "select" || dataKeyValueType === "radio",
    fields: [{ name: "value", label: "Value" }, { name: "label", label: "Label" }],
  },
  { name: "disabledOnDataKey", label: "Only while this key is on" },
];

export const INPUT_FORMS: readonly WidgetForm[] = [
  {
    names: /^input_widgets\.update_multiple_attributes$/,
    settings: [
      { name: "showActionButtons", label: "Save with a button, not at once", type: "boolean" },
      { name: "fieldsInRow", label: "Fields in a row", type: "number" },
      { name: "showGroupTitle", label: "A title for each entity", type: "boolean" },
      { name: "saveButtonLabel", label: "Words on the button that saves" },
    ],
    keys: ONE_KEY,
    newKey: { type: "attribute", settings: { dataKeyType: "server", dataKeyValueType: "string", isEditable: "editable" } },
    // A value is shown from where it is kept.
    settle: (key) => ({ ...key, type: object(key["settings"])["dataKeyType"] === "timeseries" ? "timeseries" : "attribute" }),
  },
  { names: /^cards\.qr_code$/, settings: [{ name: "qrCodeTextPattern", label: "Text of the code, with ${key} for values", type: "long" }] },
];
