// Forms for the settings of forms.

import { object } from "@/dashboard/model";
import type { FormField, FormValues } from "@/ui/form/values";
import { SCOPES } from "../control/forms";
import type { WidgetForm } from "../forms";
import { usuallyOn } from "../form/parts";
import { CAMERA } from "./pictures";

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

const FORMATS = [
  { value: "image/jpeg", label: "JPEG" },
  { value: "image/png", label: "PNG" },
  { value: "image/webp", label: "WebP" },
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

const isNotOff = (name: string) => (values: FormValues): boolean => values[name] !== false;
const SAVED = usuallyOn("showResultMessage", "Say when it is saved");
const OLDER_LABEL: FormField[] = [
  usuallyOn("showLabel", "A label of its own"),
  { name: "labelValue", label: "Label", help: "Empty for that of the key.", when: isNotOff("showLabel") },
];
const NEEDED: FormField[] = [
  usuallyOn("isRequired", "A value is needed"),
  { name: "requiredErrorMessage", label: "Words where it is missing", when: isNotOff("isRequired") },
];
const LIMITS: FormField[] = [
  { name: "minValue", label: "Least value", type: "number" },
  { name: "maxValue", label: "Greatest value", type: "number" },
];
const LENGTHS: FormField[] = [
  { name: "minLength", label: "Fewest letters", type: "number", least: 0 },
  { name: "maxLength", label: "Most letters", type: "number", least: 1 },
];

/** The forms for one value each. */
const OLDER_FORMS: readonly WidgetForm[] = [
  { names: /^input_widgets\.update_\w*string_(attribute|timeseries)$/, settings: [...OLDER_LABEL, ...NEEDED, ...LENGTHS, SAVED] },
  { names: /^input_widgets\.update_\w*(integer|double)_(attribute|timeseries)$/, settings: [...OLDER_LABEL, ...NEEDED, ...LIMITS, SAVED] },
  { names: /^input_widgets\.update_\w*boolean_(attribute|timeseries)$/, settings: [...OLDER_LABEL, SAVED] },
  { names: /^input_widgets\.update_\w*date_attribute$/, settings: [...OLDER_LABEL, ...NEEDED, { name: "showTimeInput", label: "With the time of the day", type: "boolean" }, SAVED] },
  {
    names: /^input_widgets\.update_\w*location_(attribute|timeseries)$/,
    settings: [
      { name: "latKeyName", label: "Key of the latitude", otherwise: "latitude" },
      { name: "latLabel", label: "Label of the latitude" },
      usuallyOn("isLatRequired", "The latitude is needed"),
      { name: "lngKeyName", label: "Key of the longitude", otherwise: "longitude" },
      { name: "lngLabel", label: "Label of the longitude" },
      usuallyOn("isLngRequired", "The longitude is needed"),
      { name: "requiredErrorMessage", label: "Words where it is missing" },
      { name: "inputFieldsAlignment", label: "Fields stand", type: "select", options: [{ value: "row", label: "Side by side" }, { value: "column", label: "One below the other" }], otherwise: "row" },
      usuallyOn("showGetLocation", "Offer the place of whoever looks"),
      { name: "enableHighAccuracy", label: "As exactly as the browser can", type: "boolean", when: isNotOff("showGetLocation") },
      SAVED,
    ],
  },
  {
    names: /^input_widgets\.update_json_attribute$/,
    settings: [
      { name: "widgetMode", label: "Kept in", type: "select", options: [{ value: "ATTRIBUTE", label: "Attributes" }, { value: "TIME_SERIES", label: "Telemetry" }], otherwise: "ATTRIBUTE" },
      { name: "attributeScope", label: "Kind of attributes", type: "select", options: SCOPES, otherwise: "SERVER_SCOPE", when: ({ widgetMode }) => widgetMode !== "TIME_SERIES" },
      usuallyOn("attributeRequired", "A value is needed"),
      ...OLDER_LABEL, SAVED,
    ],
  },
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
  ...OLDER_FORMS,
  {
    names: /^input_widgets\.update_(server|shared)_image_attribute$/,
    settings: [
      usuallyOn("displayPreview", "Show the picture"),
      usuallyOn("displayApplyButton", "Save with a button, not at once"),
      { name: "displayClearButton", label: "Offer to remove the picture", type: "boolean" },
      usuallyOn("displayDiscardButton", "Offer to take back what was chosen"),
      SAVED,
    ],
  },
  {
    names: /^input_widgets\.web_camera_input$/,
    settings: [
      { name: "maxWidth", label: "Greatest width, pixels", type: "number", least: 1, otherwise: CAMERA.maxWidth },
      { name: "maxHeight", label: "Greatest height, pixels", type: "number", least: 1, otherwise: CAMERA.maxHeight },
      { name: "imageFormat", label: "Format", type: "select", options: FORMATS, otherwise: CAMERA.imageFormat },
      { name: "imageQuality", label: "Quality, from 0 to 1", type: "number", least: 0, most: 1, otherwise: CAMERA.imageQuality, when: ({ imageFormat }) => imageFormat !== "image/png" },
      { name: "saveToGallery", label: "Save the picture to the gallery", type: "boolean", help: "By administrators; of all others, the picture itself is kept." },
      { name: "usePublicGalleryLink", label: "By an address that anybody may open", type: "boolean", when: ({ saveToGallery }) => saveToGallery === true },
    ],
  },
  {
    names: /^input_widgets\.device_claiming_widget$/,
    settings: [
      { name: "deviceLabel", label: "Label of the name" },
      usuallyOn("deviceSecret", "Ask for a secret key"),
      { name: "secretKeyLabel", label: "Label of the secret key", when: isNotOff("deviceSecret") },
      { name: "labelClaimButon", label: "Words on the button" },
      { name: "successfulClaimDevice", label: "Words when it is claimed" },
      { name: "deviceNotFound", label: "Words when there is no such device" },
      { name: "failedClaimDevice", label: "Words when it can't be claimed" },
    ],
  },
  { names: /^cards\.qr_code$/, settings: [{ name: "qrCodeTextPattern", label: "Text of the code, with ${key} for values", type: "long" }] },
];
