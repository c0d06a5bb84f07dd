// Values and patterns as text.

import type { DataKey } from "@/dashboard/model";
import { latestOf, type EntityValues } from "@/dashboard/source";

/** More digits are none of a number's. */
const MOST_DECIMALS = 20;

/** Shows a value with the decimals and units of its key; trailing zeros are dropped, and text stays as it is. */
export function shownValue(value: string, key: Pick<DataKey, "decimals" | "units">): string {
  const numeric = value.trim() !== "" && Number.isFinite(Number(value));
  const text = numeric && key.decimals !== undefined ? String(Number(Number(value).toFixed(Math.min(MOST_DECIMALS, Math.max(0, key.decimals))))) : value;
  return key.units === undefined || value === "" ? text : `${text} ${key.units}`;
}

/** Fills the `${key}` and `${key:decimals}` of a pattern from an entity; what is not known becomes empty. */
export function fillPattern(pattern: string, entity: EntityValues | undefined, keys: DataKey[]): string {
  return pattern.replace(/\$\{([^}:]+)(?::(\d+))?\}/g, (_whole, name: string, decimals: string | undefined) => {
    if (entity === undefined) {
      return "";
    }
    if (["entityName", "deviceName", "dsName", "entityLabel"].includes(name)) {
      return entity.name;
    }
    const key = keys.find((one) => one.label === name || one.name === name);
    const value = key === undefined ? undefined : latestOf(entity, key)?.value;
    return value === undefined ? "" : shownValue(value, { units: undefined, decimals: decimals === undefined ? key?.decimals : Number(decimals) });
  });
}
