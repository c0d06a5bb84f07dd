// Where what somebody has placed or drawn is kept: in attributes or telemetry of the entity, as the keys of the layer say.

import { api } from "@/api/client";
import { currentClaims } from "@/api/session";
import type { EntityId } from "@/api/types";
import type { DataKey } from "@/dashboard/model";
import { latestOf } from "@/dashboard/source";
import type { Circle, Nested, Place } from "./geometry";
import type { MapItem } from "./items";
import type { MapModel } from "./model";

export type Drawn = { place: Place } | { line: Nested[] } | { circle: Circle } | undefined;

/** What somebody who edits a map is at. */
export type EditState = { doing: "idle" } | { doing: "select"; item: MapItem } | { doing: "draw"; item: MapItem };

/** Whether a map can be edited by who is here: its settings say so, and it isn't a visitor with a public link. */
export function mayEdit(model: MapModel): boolean {
  const claims = currentClaims();
  return claims !== undefined && claims.isPublic !== true && model.layers.some((layer) => layer.edit.actions.size > 0);
}

/** Of several keys for the same the one that has a value. */
function keyFor(keys: DataKey[], item: MapItem): DataKey | undefined {
  return keys.find((key) => latestOf(item.entity, key) !== undefined) ?? keys[0];
}

/** Returns the values to save for what was drawn; null stands for none. */
export function valuesOf(item: MapItem, drawn: Drawn): [DataKey, unknown][] {
  const [x, y] = [keyFor(item.layer.x, item), keyFor(item.layer.y, item)];
  const place = drawn !== undefined && "place" in drawn ? drawn.place : [null, null];
  const shape = drawn === undefined ? null : "line" in drawn ? drawn.line : "circle" in drawn ? { latitude: drawn.circle.center[0], longitude: drawn.circle.center[1], radius: drawn.circle.radius } : null;
  const isPoint = item.layer.kind === "markers" || item.layer.kind === "trips";
  const pairs: [DataKey | undefined, unknown][] = isPoint ? [[x, place[0]], [y, place[1]]] : [[x, shape]];
  return pairs.flatMap(([key, value]): [DataKey, unknown][] => (key === undefined ? [] : [[key, value]]));
}

async function saveAs(id: EntityId, type: "attribute" | "timeseries", scope: string, pairs: [DataKey, unknown][]): Promise<void> {
  const base = `/api/plugins/telemetry/${id.entityType}/${id.id}`;
  const kept = pairs.filter(([key, value]) => key.type === type && value !== null);
  const removed = pairs.filter(([key, value]) => key.type === type && value === null).map(([key]) => key.name);
  if (kept.length > 0) {
    await api.post(type === "attribute" ? `${base}/${scope}` : `${base}/timeseries/ANY`, Object.fromEntries(kept.map(([key, value]) => [key.name, value])));
  }
  if (removed.length > 0) {
    const keys = removed.join(",");
    await (type === "attribute" ? api.delete(`${base}/${scope}`, { keys }) : api.delete(`${base}/timeseries/delete`, { keys, deleteAllDataForKeys: true }));
  }
}

/** Saves where an item is, or takes its place away. */
export async function savePlace(item: MapItem, drawn: Drawn): Promise<void> {
  const { id } = item.entity;
  const scope = id.entityType === "DEVICE" ? item.layer.edit.scope : "SERVER_SCOPE";
  const pairs = valuesOf(item, drawn);
  await saveAs(id, "attribute", scope, pairs);
  await saveAs(id, "timeseries", scope, pairs);
}
