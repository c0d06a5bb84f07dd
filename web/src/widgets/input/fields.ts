// The fields of forms that save values of entities: read from the settings of their keys, and checked before anything is sent.

import { list, number, object, text, type DataKey, type Json } from "@/dashboard/model";
import { plural, t } from "@/i18n";
import { parsed } from "../control/convert";
import { oneOf } from "../control/settings";
import { bodyOf } from "@/dashboard/actions";

const KINDS = ["string", "double", "integer", "JSON", "booleanCheckbox", "booleanSwitch", "dateTime", "date", "time", "select", "radio", "color"] as const;
const PLACES = ["server", "shared", "timeseries"] as const;

export type ValueKind = (typeof KINDS)[number];

export interface InputField {
  key: DataKey;
  label: string;
  /** Where the value is kept. */
  place: (typeof PLACES)[number];
  kind: ValueKind;
  required: boolean;
  editable: "editable" | "disabled" | "readonly";
  /** Another key without whose value this one can't be changed. */
  disabledOn: string | undefined;
  hidden: boolean;
  step: number | undefined;
  min: number | undefined;
  max: number | undefined;
  /** Limits of the length of text. */
  minLength: number | undefined;
  maxLength: number | undefined;
  options: { value: string; label: string }[];
  /** What is said instead of the standard text when a check fails. */
  messages: { required?: string | undefined; min?: string | undefined; max?: string | undefined; json?: string | undefined };
  getBody: string | undefined;
  setBody: string | undefined;
}

/** What a field holds while somebody fills it in. */
export type FieldInput = string | boolean;

/** The option that stands for no value. */
const NO_VALUE = "null";
const DAY_MS = 86_400_000;

function optionsOf(settings: Json): InputField["options"] {
  return list(settings["selectOptions"]).map((value) => {
    const option = object(value);
    const stored = option["value"] === null || String(option["value"]).toLowerCase() === NO_VALUE ? NO_VALUE : String(option["value"] ?? "");
    return { value: stored, label: text(option["label"]) ?? stored };
  });
}

/** Reads a key of the form. Older ones say less, and mean text in server attributes. */
export function fieldOf(key: DataKey, form: Json): InputField {
  const settings = key.settings;
  const getBody = settings["useGetValueFunction"] === true ? bodyOf(settings["getValueFunctionBody"]) : undefined;
  const setBody = settings["useSetValueFunction"] === true ? bodyOf(settings["setValueFunctionBody"]) : undefined;
  return {
    key,
    label: key.units === undefined ? key.label : `${key.label} (${key.units})`,
    place: oneOf(PLACES, settings["dataKeyType"]) ?? (form["attributesShared"] === true ? "shared" : "server"),
    kind: oneOf(KINDS, settings["dataKeyValueType"]) ?? (settings["inputTypeNumber"] === true ? "double" : "string"),
    required: settings["required"] === true,
    editable: oneOf(["editable", "disabled", "readonly"] as const, settings["isEditable"]) ?? (settings["readOnly"] === true ? "readonly" : "editable"),
    disabledOn: text(settings["disabledOnDataKey"]),
    hidden: settings["dataKeyHidden"] === true,
    step: number(settings["step"]),
    min: number(settings["minValue"]),
    max: number(settings["maxValue"]),
    minLength: undefined,
    maxLength: undefined,
    options: optionsOf(settings),
    messages: {
      required: text(settings["requiredErrorMessage"]),
      min: text(settings["minValueErrorMessage"]),
      max: text(settings["maxValueErrorMessage"]),
      json: text(settings["invalidJsonErrorMessage"]),
    },
    getBody,
    setBody,
  };
}

export const isBoolean = (kind: ValueKind): boolean => kind === "booleanCheckbox" || kind === "booleanSwitch";

const pad = (value: number, length = 2): string => String(value).padStart(length, "0");

/** Writes a moment as the inputs of a browser want it, in the time zone of the person. */
export function localText(ts: number, kind: "dateTime" | "date"): string {
  const date = new Date(ts);
  const day = `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return kind === "date" ? day : `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

function dayText(ms: number): string {
  const minutes = Math.floor((((ms % DAY_MS) + DAY_MS) % DAY_MS) / 60_000);
  return `${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
}

/** Returns what a field shows for a stored value. */
export function inputOf({ kind, options }: InputField, value: unknown): FieldInput {
  const isEmpty = value === undefined || value === null || value === "";
  switch (kind) {
    case "booleanCheckbox":
    case "booleanSwitch":
      return value === true || value === "true";
    case "dateTime":
    case "date": {
      const ts = typeof value === "number" ? value : (number(value) ?? Date.parse(String(value)));
      return isEmpty || !Number.isFinite(ts) ? "" : localText(ts, kind);
    }
    case "time":
      return isEmpty || number(value) === undefined ? "" : dayText(Number(value));
    case "select":
    case "radio":
      return isEmpty ? (options.some((option) => option.value === NO_VALUE) ? NO_VALUE : "") : String(value);
    case "JSON":
      return isEmpty ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2);
    default:
      return isEmpty ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  }
}

/** Returns the value that is saved for what a field holds; `null` for none. */
export function valueOf({ kind }: InputField, input: FieldInput): unknown {
  if (typeof input === "boolean") {
    return input;
  }
  if (input === "") {
    return null;
  }
  switch (kind) {
    case "double":
    case "integer":
      return Number(input);
    case "JSON":
      return JSON.parse(input) as unknown;
    case "dateTime":
      return new Date(input).getTime();
    case "date":
      return new Date(`${input}T00:00`).getTime();
    case "time": {
      const [hours = 0, minutes = 0] = input.split(":").map(Number);
      return (hours * 60 + minutes) * 60_000;
    }
    case "select":
    case "radio":
      return input === NO_VALUE ? null : input;
    default:
      return input;
  }
}

/** Returns what is wrong with what a field holds. */
export function faultOf(field: InputField, input: FieldInput): string | undefined {
  const { kind, required, min, max, minLength, maxLength, messages } = field;
  if (typeof input === "boolean") {
    return undefined;
  }
  if (input === "") {
    return required ? (messages.required ?? t("A value is needed.")) : undefined;
  }
  if (kind === "JSON") {
    const read = parsed(input);
    return read === input ? (messages.json ?? t("This is no JSON.")) : undefined;
  }
  if (kind === "double" || kind === "integer") {
    const value = Number(input);
    if (!Number.isFinite(value)) {
      return t("This is no number.");
    }
    if (kind === "integer" && !Number.isSafeInteger(value)) {
      return t("This is no whole number.");
    }
    if (min !== undefined && value < min) {
      return messages.min ?? t("At least {n}", { n: min });
    }
    return max !== undefined && value > max ? (messages.max ?? t("At most {n}", { n: max })) : undefined;
  }
  if ((kind === "dateTime" || kind === "date") && Number.isNaN(valueOf(field, input))) {
    return t("This is no date.");
  }
  if (minLength !== undefined && input.length < minLength) {
    return plural(minLength, "At least {n} character", "At least {n} characters");
  }
  return maxLength !== undefined && input.length > maxLength ? plural(maxLength, "At most {n} character", "At most {n} characters") : undefined;
}

/** Whether what another field holds lets this one be changed. */
export function opens(value: unknown): boolean {
  return ![undefined, null, false, "false", "", 0, "0"].includes(value as string);
}
