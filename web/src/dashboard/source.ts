// What a widget asks the server for, and what has come: entities with their latest values and points.

import { currentClaims } from "@/api/session";
import { useMemo, useRef, useSyncExternalStore } from "react";
import type { EntityId } from "@/api/types";
import type { LiveCommand } from "@/live/protocol";
import { object, text } from "./json";
import { aggregateCommand, aggregateName, aggregationIn, type Aggregate } from "./aggregated";
import type { DataKey, Dashboard, Datasource, Json } from "./model";
import { resolveAlias } from "./state";
import { JoinedSources } from "./sharedSource";
import { pointsCommand, type PointsWish, type TimeWindow } from "./timeWindow";

export interface Point {
  ts: number;
  value: string;
}

export interface EntityValues {
  id: EntityId;
  name: string;
  /** Latest values by `type/key`. */
  latest: Map<string, Point>;
  points: Map<string, Point[]>;
  /** Keys that stand for many values, by their place in the request. */
  aggregates?: ReadonlyMap<number, Aggregate>;
}

/** The most entities that one widget shows. */
const PAGE = 1_024;
/** How queries call the types of keys; those without a name are not asked for. */
export const LATEST_TYPES: Record<DataKey["type"], string | undefined> = {
  timeseries: "TIME_SERIES",
  attribute: "ATTRIBUTE",
  serverAttribute: "SERVER_ATTRIBUTE",
  sharedAttribute: "SHARED_ATTRIBUTE",
  clientAttribute: "CLIENT_ATTRIBUTE",
  entityField: "ENTITY_FIELD",
  other: undefined,
};
/** Where the count of a counting source is kept among its latest values. */
export const COUNT = "COUNT/count";

const places = new WeakMap<DataKey, string>();

/** Returns where the latest value of a key is kept. It is made once: widgets ask for each of many entities. */
function latestPlace(key: DataKey): string {
  const known = places.get(key);
  const place = known ?? (aggregationIn(key) !== undefined ? aggregateName(key) : key.type === "other" ? COUNT : `${LATEST_TYPES[key.type] ?? ""}/${key.name}`);
  if (known === undefined) {
    places.set(key, place);
  }
  return place;
}

/** Returns the latest value of a key of a datasource. */
export function latestOf(entity: EntityValues, key: DataKey): Point | undefined {
  return key.type === "entityField" && key.name === "name" ? { ts: 0, value: entity.name } : entity.latest.get(latestPlace(key));
}

/** Stands for no filter: a count of alarms without an alias is that of all that the reader sees. */
const ALL_ALARMS: Json = {};

/** Returns the filter of a datasource; none if it can't be resolved yet. */
export function filterOf(source: Datasource, dashboard: Dashboard, params: Json): Json | undefined {
  if (source.type === "alarmCount" && source.aliasId === undefined) {
    return ALL_ALARMS;
  }
  if (source.type === "device" && source.deviceId !== undefined) {
    return { type: "singleEntity", singleEntity: { entityType: "DEVICE", id: source.deviceId } };
  }
  // Some old settings name an alias instead of its id.
  const alias =
    source.aliasId === undefined ? undefined : (dashboard.aliases.get(source.aliasId) ?? [...dashboard.aliases.values()].find((one) => one.alias === source.aliasId));
  return alias === undefined ? undefined : resolveAlias(alias.filter, params);
}

export interface SourceRequest {
  source: Datasource;
  filter: Json;
  keyFilters: unknown[];
  /** Whether one of several key filters is enough. */
  any?: true;
  /** The window whose points are wanted. */
  window: TimeWindow | undefined;
  wish?: PointsWish;
  /** The window that aggregated keys come from. */
  aggregated?: TimeWindow;
  /** When the window began when it was asked for, if it follows the calendar: a new day is a new request. */
  began?: number;
}

/** Returns the keys of a source, of which aggregated ones are asked for by their place. */
export function keysOf(source: Datasource): DataKey[] {
  return [...source.dataKeys, ...source.latestKeys];
}

/** Returns what to ask for a datasource; nothing if it can't be resolved yet. */
export function requestOf(source: Datasource, dashboard: Dashboard, params: Json, window: TimeWindow | undefined): SourceRequest | undefined {
  if (source.type === "function") {
    return { source, filter: { type: "function" }, keyFilters: [], window };
  }
  const filter = filterOf(source, dashboard, params);
  const keyFilters = source.filterId === undefined ? undefined : dashboard.keyFilters.get(source.filterId);
  return filter === undefined ? undefined : { source, filter, keyFilters: keyFilters?.filters ?? [], ...(keyFilters?.any === true ? { any: true as const } : {}), window };
}

/** Makes the command that counts entities or alarms. */
function countCommand({ source, filter, keyFilters, any }: SourceRequest): LiveCommand {
  const query = { ...(filter["type"] === undefined ? {} : { entityFilter: filter }), keyFilters, ...(any === true ? { keyFiltersOperation: "OR" } : {}) };
  const { assignedToCurrentUser, assigneeId, ...alarms } = source.alarmFilter;
  const id = assignedToCurrentUser === true ? currentClaims()?.userId : (text(assigneeId) ?? text(object(assigneeId)["id"]));
  const assigned = id === undefined ? {} : { assigneeId: { entityType: "USER", id } };
  return source.type === "entityCount" ? { type: "ENTITY_COUNT", query } : { type: "ALARM_COUNT", query: { ...query, ...alarms, ...assigned } };
}

/** Makes the one command that asks for the entities of a datasource, their latest values, and points if there is a window. */
export function commandOf(request: SourceRequest, now: number): LiveCommand {
  const { source, filter, keyFilters, any, window } = request;
  if (source.type === "function") {
    return { type: "FUNCTION", keys: keysOf(source).map(({ name, raw }) => ({ key: name, funcBody: raw["funcBody"] })) };
  }
  if (source.type === "entityCount" || source.type === "alarmCount") {
    return countCommand(request);
  }
  const keys = keysOf(source).flatMap((key) => {
    const type = LATEST_TYPES[key.type];
    return type === undefined ? [] : [{ type, key: key.name }];
  });
  const values = keys.filter(({ type }) => type !== "ENTITY_FIELD");
  const fields = new Set(["name", "label", ...keys.filter(({ type }) => type === "ENTITY_FIELD").map(({ key }) => key)]);
  const series = source.dataKeys.filter((key) => key.type === "timeseries").map((key) => key.name);
  const isOne = filter["type"] === "singleEntity" || filter["resolveMultiple"] === false;
  return {
    type: "ENTITY_DATA",
    query: {
      entityFilter: filter,
      keyFilters,
      ...(any === true ? { keyFiltersOperation: "OR" } : {}),
      pageLink: { pageSize: isOne ? 1 : (source.pageSize ?? PAGE), page: 0, sortOrder: { key: { type: "ENTITY_FIELD", key: "createdTime" }, direction: "DESC" } },
      entityFields: [...fields].map((key) => ({ type: "ENTITY_FIELD", key })),
      latestValues: values,
    },
    ...(values.length > 0 && (window === undefined || series.length === 0 || source.latestKeys.length > 0) ? { latestCmd: { keys: values } } : {}),
    ...(window === undefined || series.length === 0 ? {} : pointsCommand(window, [...new Set(series)], now, request.wish)),
    ...(request.aggregated === undefined ? {} : aggregateCommand(keysOf(source), request.aggregated, now)),
  };
}

/** What one source of a widget has shown so far. */
export interface SourceValues {
  source: Datasource;
  entities: readonly EntityValues[];
  problem: string | undefined;
  /** How many entities there are, which can be more than are shown. */
  total: number;
  /** Whether the server has not answered yet, and nothing of before is shown. */
  waiting?: true;
  /** Why it is asked for: to be shown, to be compared with, for the edges of a band, or only beside what is shown. */
  role?: "shown" | "compared" | "least" | "greatest" | "beside";
  /** By how much points of an earlier time are moved to lie on those that they are compared with, milliseconds. */
  shift?: number;
}

type Shown = Omit<SourceValues, "source">;
const NOTHING: Shown = { entities: [], problem: undefined, total: 0 };

/** Returns what a request asks for, without when. */
function subjectOf(identity: string): string {
  if (identity === "") {
    return "";
  }
  const { source, filter, keyFilters, any } = JSON.parse(identity) as SourceRequest;
  return JSON.stringify([source, filter, keyFilters, any]);
}

/** Returns what tells a request from others. */
export function identityOf(request: SourceRequest): string {
  return JSON.stringify(request);
}

/**
 * Follows the datasources of a widget as long as it is shown. An unresolved one has no entities. Where only the window is another, what was
 * shown before stays until the answer is there.
 */
export function useSources(requests: (SourceRequest | undefined)[], sources: Datasource[]): SourceValues[] {
  const identities = JSON.stringify(requests.map((request) => (request === undefined ? "" : identityOf(request))));
  const { joined, subjects } = useMemo(() => {
    const all = JSON.parse(identities) as string[];
    return { joined: new JoinedSources(all), subjects: all.map(subjectOf) };
  }, [identities]);
  const shown = useSyncExternalStore(joined.watch, joined.current);
  const held = useRef(new Map<string, Shown>());
  return useMemo(() => {
    const now = subjects.map((subject, n): [string, Shown] => {
      const one = shown[n];
      const nothing: Shown = { entities: [], problem: undefined, total: 0, ...(subject === "" ? {} : { waiting: true }) };
      const name = `${n} ${subject}`;
      return [name, one === undefined || one.waiting === true ? (held.current.get(name) ?? one ?? nothing) : one];
    });
    held.current = new Map(now);
    return sources.map((source, n) => ({ source, ...(now[n]?.[1] ?? NOTHING) }));
  }, [sources, shown, subjects]);
}
