// The values of an entity as functions and patterns of dashboards know them.

import { number, text, type DataKey, type Datasource, type Json } from "@/dashboard/model";
import { latestOf, type EntityValues } from "@/dashboard/source";
import { formatTime } from "@/i18n";
import { numeric } from "../postProcessing";
import { shownValue } from "../text";

/** Returns one object for an entity: values and moments by label, and what it is. */
export function formatted(entity: EntityValues, keys: readonly DataKey[], source: Datasource | undefined, index: number): Json {
  const label = entity.latest.get("ENTITY_FIELD/label")?.value;
  const data: Json = {
    entityName: entity.name,
    deviceName: entity.name,
    entityLabel: label === undefined || label === "" ? entity.name : label,
    entityId: entity.id.id,
    entityType: entity.id.entityType,
    dsName: entity.name,
    aliasName: source?.aliasId ?? "",
    dsIndex: index,
    $datasource: { type: source?.type, name: entity.name, entityName: entity.name, entityId: entity.id.id, entityType: entity.id.entityType },
  };
  for (const key of keys) {
    const point = latestOf(entity, key);
    if (point !== undefined && (data[key.label] === undefined || data[key.label] === "")) {
      data[key.label] = numeric(point.value);
      data[`${key.label}|ts`] = point.ts;
    }
  }
  return data;
}

/** Escapes what is filled into markup, so that a value is never markup itself. */
export function escapeHtml(value: string): string {
  return value.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

/** Escapes what is filled into Markdown, so that a value is neither markup nor a picture or link. */
export function escapeMarkdown(value: string): string {
  return value.replace(/[&<>"'\\`*_[\]()!#|~:@]|(?<=www)\./gi, (letter) => `&#${letter.charCodeAt(0)};`).replace(/\s*[\r\n]\s*/g, " ");
}

/** Fills the `${label}`, `${label:decimals}` and `${label|ts}` of a pattern of markup; what is not known becomes empty. */
export function fillMarkup(pattern: string, data: Json, keys: readonly DataKey[], escaped = escapeHtml): string {
  return pattern.replace(/\$\{([^}:]+)(?::(\d+))?\}/g, (_whole, name: string, decimals: string | undefined) => {
    const value = data[name];
    if (value === undefined || value === null) {
      return "";
    }
    if (name.endsWith("|ts") && typeof value === "number") {
      return escaped(formatTime(value));
    }
    const key = keys.find((one) => one.label === name);
    const shown = typeof value === "object" ? JSON.stringify(value) : String(value);
    const style = { units: undefined, decimals: decimals === undefined ? key?.decimals : Number(decimals) };
    return escaped(number(value) === undefined && text(value) === undefined ? shown : shownValue(shown, style));
  });
}
