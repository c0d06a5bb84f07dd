// The values of a widget as rows, for files and for looking at them.

import type { SourceValues } from "@/dashboard/source";

export interface Row {
  entity: string;
  key: string;
  ts: number;
  value: string;
}

/** Returns all values of a widget, points included, one a row. */
export function rowsOf(values: SourceValues[]): Row[] {
  return values.flatMap(({ entities }) =>
    entities.flatMap((entity) => [
      ...[...entity.latest].map(([path, { ts, value }]) => ({ entity: entity.name, key: path.slice(path.indexOf("/") + 1), ts, value })),
      ...[...entity.points].flatMap(([key, points]) => points.map(({ ts, value }) => ({ entity: entity.name, key, ts, value }))),
    ]),
  );
}
