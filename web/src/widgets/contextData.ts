// The values of a widget as code of ThingsBoard's widgets and actions knows them.

import type { Json } from "@/dashboard/model";
import { latestOf, type SourceValues } from "@/dashboard/source";
import { numeric } from "./postProcessing";

/** Returns values as ThingsBoard hands them to widgets: for each key of each entity its points as `[ts, value]`. */
export function contextData(sources: SourceValues[]): Json[] {
  return sources.flatMap(({ source, entities }) =>
    entities.flatMap((entity) =>
      source.dataKeys.map((key) => {
        const latest = latestOf(entity, key);
        const points = entity.points.get(key.name) ?? (latest === undefined ? [] : [latest]);
        const datasource = { type: source.type, name: entity.name, entityName: entity.name, entityId: entity.id.id, entityType: entity.id.entityType };
        return { datasource, dataKey: key.raw, data: points.map(({ ts, value }) => [ts, numeric(value)]) };
      }),
    ),
  );
}
