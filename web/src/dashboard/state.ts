// The path of states through a dashboard, as it stands in the address bar: base64 of a JSON array, as ThingsBoard writes it.

import type { EntityId } from "@/api/types";
import { list, object, text, type Dashboard, type Json } from "./model";

export interface OpenState {
  id: string;
  params: Json;
}

function decode(encoded: string): unknown {
  // Some links encode the text once more than needed.
  const once = encoded.includes("%") ? decodeURIComponent(encoded) : encoded;
  const bytes = Uint8Array.from(atob(once), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes)) as unknown;
}

function rootState(dashboard: Dashboard): OpenState {
  return { id: dashboard.states.find((state) => state.root)?.id ?? "default", params: {} };
}

/** Reads the `state` parameter. States that the dashboard doesn't have are left out; without any it is at its root. */
export function readStatePath(encoded: string | null, dashboard: Dashboard): OpenState[] {
  let states: unknown[] = [];
  try {
    states = encoded === null ? [] : list(decode(encoded));
  } catch {
    // A damaged link leads to the root.
  }
  const known = states
    .map((state) => ({ id: text(object(state)["id"]) ?? rootState(dashboard).id, params: object(object(state)["params"]) }))
    .filter(({ id }) => dashboard.states.some((state) => state.id === id));
  return known.length === 0 ? [rootState(dashboard)] : known;
}

/** Writes a path of states as the `state` parameter has it. */
export function encodeStates(path: OpenState[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(path));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Writes the `state` parameter; none for the root alone. */
export function writeStatePath(path: OpenState[], dashboard: Dashboard): string | undefined {
  const [only] = path;
  if (path.length === 1 && only !== undefined && only.id === rootState(dashboard).id && Object.keys(only.params).length === 0) {
    return undefined;
  }
  return encodeStates(path);
}

function entityId(value: unknown): EntityId | undefined {
  const entityType = text(object(value)["entityType"]);
  const id = text(object(value)["id"]);
  return entityType === undefined || id === undefined ? undefined : { entityType, id };
}

/** Returns the entity that a state was opened for, under a name or the nameless one. */
export function stateEntity(params: Json, name: string | undefined): EntityId | undefined {
  return entityId(name === undefined ? params["entityId"] : object(params[name])["entityId"]);
}

/** Returns an alias as a filter for the server; none if the state lacks the entity that it stands for. */
export function resolveAlias(filter: Json, params: Json): Json | undefined {
  const name = text(filter["stateEntityParamName"]);
  const fromState = (): EntityId | undefined => stateEntity(params, name) ?? entityId(filter["defaultStateEntity"]);
  if (filter["type"] === "stateEntity") {
    const entity = fromState();
    return entity === undefined ? undefined : { type: "singleEntity", singleEntity: entity };
  }
  if (filter["rootStateEntity"] === true) {
    const rootEntity = fromState();
    return rootEntity === undefined ? undefined : { ...filter, rootEntity };
  }
  return filter;
}
