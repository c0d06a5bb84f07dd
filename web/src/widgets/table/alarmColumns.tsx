// Columns of an alarm table by the keys of its source: fields of alarms, and values of their entities.

import { atPath, fieldOf, type Alarm } from "@/alarms/alarm";
import { fieldColumn, type AlarmColumn } from "@/alarms/columns";
import { text, type DataKey, type Json } from "@/dashboard/model";
import { LATEST_TYPES } from "@/dashboard/source";
import type { Ask } from "@/sandbox/functions";
import { datePattern } from "../dates";
import { numeric } from "../postProcessing";
import { shownValue } from "../text";
import { madeStyle, madeValue, MadeContent } from "./cells";
import { formatOf, keySettings } from "./settings";

const NAMES = ["value", "alarm"];
const TIMES = /(Time|Ts)$/;

/** Returns what has to be asked for besides the alarms themselves. */
export function latestKeys(keys: readonly DataKey[]): { entityFields: string[]; latestValues: { type: string; key: string }[] } {
  return {
    entityFields: keys.filter((key) => key.type === "entityField").map((key) => key.name),
    latestValues: keys.flatMap((key) => {
      const type = LATEST_TYPES[key.type];
      return type === undefined || key.type === "entityField" ? [] : [{ type, key: key.name }];
    }),
  };
}

function stored(alarm: Alarm, key: DataKey): { ts: number; value: string } {
  const type = LATEST_TYPES[key.type];
  if (type === undefined) {
    return { ts: alarm.createdTime, value: atPath(alarm, key.name) };
  }
  const point = alarm.latest?.[type]?.[key.name];
  return { ts: point?.ts ?? 0, value: point === undefined || point.value === null ? "" : String(point.value) };
}

/** The value of a key as functions see it: texts of fields, numbers of values. */
function valueOf(alarm: Alarm, key: DataKey): unknown {
  if (key.type === "other" && TIMES.test(key.name)) {
    const own = alarm[({ startTime: "startTs", endTime: "endTs", ackTime: "ackTs", clearTime: "clearTs", assignTime: "assignTs" })[key.name] ?? key.name];
    return typeof own === "number" && own > 0 ? own : "";
  }
  if (key.type === "other") {
    const field = fieldOf(key.name);
    return field === undefined || ["severity", "status", "type"].includes(key.name) ? numeric(atPath(alarm, key.name)) : field.text(alarm);
  }
  return numeric(stored(alarm, key).value);
}

/** Returns an alarm as functions of tables see it: itself, and its values by their labels. */
export function alarmRow(alarm: Alarm, keys: readonly DataKey[]): Json {
  const { latest: _latest, ...own } = alarm;
  return { ...own, ...Object.fromEntries(keys.filter((key) => key.type !== "other").map((key) => [key.label, valueOf(alarm, key)])) };
}

export function alarmColumns(keys: readonly DataKey[], ask: Ask, leads: boolean): AlarmColumn[] {
  return keys.filter((key) => !key.hidden).map((key): AlarmColumn => {
    const own = keySettings(key);
    const base = key.type === "other" ? fieldColumn(key.name, own.title, leads) : undefined;
    const type = LATEST_TYPES[key.type];
    const format = text(key.settings["dateFormat"]) === undefined && typeof key.settings["dateFormat"] !== "object" ? undefined : formatOf(key.settings["dateFormat"], "yyyy-MM-dd HH:mm:ss");
    const value = (alarm: Alarm): unknown => madeValue(ask, own.post, stored(alarm, key).ts, valueOf(alarm, key));
    const shown = (alarm: Alarm): string => {
      const made = value(alarm);
      if (format !== undefined && typeof made === "number" && TIMES.test(key.name)) {
        return datePattern(made, format);
      }
      return base !== undefined && own.post === undefined ? base.text(alarm) : shownValue(made === null || made === undefined ? "" : typeof made === "object" ? JSON.stringify(made) : String(made), key);
    };
    const { content, style } = own;
    return {
      key: `${key.type} ${key.name} ${key.label}`,
      label: own.title,
      names: [key.name, key.label, ...(base?.names ?? [])],
      width: own.width,
      px: base?.px,
      // A width that the dashboard gives is kept.
      ...(own.width === undefined ? { least: base?.least, whole: base?.whole, yields: base?.yields } : {}),
      hidden: own.hidden,
      hideable: own.hideable,
      sortable: own.sortable && (base?.sort !== undefined || type !== undefined),
      sort: base?.sort ?? (type === undefined ? undefined : { property: key.name, type }),
      text: shown,
      show: content === undefined ? (own.post === undefined && format === undefined ? base?.show : undefined) : (alarm) => <MadeContent ask={ask} body={content} names={NAMES} args={[value(alarm), alarmRow(alarm, keys)]} otherwise={shown(alarm)} />,
      style: style === undefined ? undefined : (alarm) => madeStyle(ask, style, NAMES, [value(alarm), alarmRow(alarm, keys)]),
    };
  });
}
