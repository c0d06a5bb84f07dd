// The values of a widget as rows, for files and for looking at them.

import { originatorName, statusText, type Alarm } from "@/alarms/alarm";
import type { Json } from "@/dashboard/json";
import type { SourceValues } from "@/dashboard/source";

export interface Row {
  entity: string;
  key: string;
  ts: number;
  value: string;
}

/** Returns all values of a widget, points included, one a row. */
export function rowsOf(values: readonly Pick<SourceValues, "entities">[]): Row[] {
  return values.flatMap(({ entities }) =>
    entities.flatMap((entity) => [
      ...[...entity.latest].map(([path, { ts, value }]) => ({ entity: entity.name, key: path.slice(path.indexOf("/") + 1), ts, value })),
      ...[...entity.points].flatMap(([key, points]) => points.map(({ ts, value }) => ({ entity: entity.name, key, ts, value }))),
    ]),
  );
}

/** Returns alarms as the server sends them, one a row. */
export function alarmRows(alarms: readonly Json[]): Row[] {
  return (alarms as unknown as Alarm[]).map((alarm) => ({ entity: originatorName(alarm), key: alarm.type, ts: alarm.createdTime, value: `${alarm.severity}, ${statusText(alarm.status)}` }));
}
