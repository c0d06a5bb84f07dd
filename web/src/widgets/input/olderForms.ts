// The older forms for one value each, as fields of the form for many.

import { number, text, type Datasource, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { fieldOf, type InputField, type ValueKind } from "./fields";

const OLDER = /update_(?:(server|shared)_)?(string|integer|double|boolean|date|location|json)_(attribute|timeseries)$|update_(json)_attribute$/;

export interface FormPlan {
  fieldsOf: (source: Datasource) => InputField[];
  /** Whether nothing is saved before somebody says so. */
  buttons: boolean;
  /** The keys of a place on the map that the browser can fill in. */
  location: { latitude: string; longitude: string; precise: boolean } | undefined;
}

const KINDS: Record<string, ValueKind> = { string: "string", integer: "integer", double: "double", boolean: "booleanCheckbox", location: "double", json: "JSON" };

/** Returns the plan of an older form; none for other types. */
export function olderForm(fqn: string, settings: Json): FormPlan | undefined {
  const [, scope, named, where, json] = OLDER.exec(fqn) ?? [];
  const type = named ?? json;
  if (type === undefined) {
    return undefined;
  }
  const isJson = type === "json";
  const isSeries = where === "timeseries" || (isJson && settings["widgetMode"] === "TIME_SERIES");
  const place = isSeries ? "timeseries" : scope === "shared" || (isJson && settings["attributeScope"] === "SHARED_SCOPE") ? "shared" : "server";
  const required = (isJson ? settings["attributeRequired"] : settings["isRequired"]) !== false;
  const kind = type === "date" ? (settings["showTimeInput"] === true ? "dateTime" : "date") : (KINDS[type] ?? "string");
  const showLabel = settings["showLabel"] !== false;
  const words = { message: text(settings["requiredErrorMessage"]), label: text(settings["labelValue"]) };
  const one = (source: Datasource): InputField[] =>
    source.dataKeys.slice(0, 1).map((key) => ({
      ...fieldOf({ ...key, settings: {} }, {}),
      label: showLabel ? (words.label ?? key.label) : key.label,
      place,
      kind,
      required: required && type !== "boolean",
      min: number(settings["minValue"]),
      max: number(settings["maxValue"]),
      minLength: number(settings["minLength"]),
      maxLength: number(settings["maxLength"]),
      messages: { required: words.message },
    }));
  if (type !== "location") {
    return { fieldsOf: one, buttons: type !== "boolean", location: undefined };
  }
  const keys = { latitude: text(settings["latKeyName"]) ?? "latitude", longitude: text(settings["lngKeyName"]) ?? "longitude" };
  const coordinates = (source: Datasource): InputField[] =>
    (["latitude", "longitude"] as const).flatMap((which) => {
      const key = source.dataKeys.find(({ name }) => name === keys[which]);
      const isLatitude = which === "latitude";
      const limit = isLatitude ? 90 : 180;
      return key === undefined
        ? []
        : [
            {
              ...fieldOf({ ...key, settings: {} }, {}),
              label: text(settings[isLatitude ? "latLabel" : "lngLabel"]) ?? t(isLatitude ? "Latitude" : "Longitude"),
              place,
              kind,
              required: settings[isLatitude ? "isLatRequired" : "isLngRequired"] !== false,
              min: -limit,
              max: limit,
              messages: { required: words.message },
            } satisfies InputField,
          ];
    });
  return { fieldsOf: coordinates, buttons: true, location: settings["showGetLocation"] === false ? undefined : { ...keys, precise: settings["enableHighAccuracy"] === true } };
}

/** Returns the plan of any form of values. */
export function planOf(fqn: string, settings: Json): FormPlan {
  return (
    olderForm(fqn, settings) ?? {
      fieldsOf: (source) => source.dataKeys.map((key) => fieldOf(key, settings)),
      buttons: settings["showActionButtons"] !== false,
      location: undefined,
    }
  );
}
