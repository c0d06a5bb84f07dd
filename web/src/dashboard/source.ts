// What a widget asks the server for, and what has come: entities with their latest values and points.

import { useMemo, useSyncExternalStore } from "react";
import type { EntityId } from "@/api/types";
import type { LiveCommand, LiveUpdate } from "@/live/protocol";
import type { DataKey, Dashboard, Datasource, Json } from "./model";
import { list, number, object, text } from "./model";
import { resolveAlias } from "./state";
import { JoinedSources } from "./sharedSource";
import { boundsOf, pointsCommand, type TimeWindow } from "./timeWindow";

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
}

/** The most entities that one widget shows. */
const PAGE = 1_024;
/** Redraws of a widget have at least this distance, milliseconds. */
const REDRAW_MS = 100;

const LATEST_TYPES: Record<DataKey["type"], string | undefined> = {
  timeseries: "TIME_SERIES",
  attribute: "ATTRIBUTE",
  entityField: "ENTITY_FIELD",
  other: undefined,
};
/** Where the count of a counting source is kept among its latest values. */
const COUNT = "COUNT/count";

/** Returns the latest value of a key of a datasource. */
export function latestOf(entity: EntityValues, key: DataKey): Point | undefined {
  const type = LATEST_TYPES[key.type];
  if (key.type === "other") {
    return entity.latest.get(COUNT);
  }
  return key.type === "entityField" && key.name === "name"
    ? { ts: 0, value: entity.name }
    : type === undefined
      ? undefined
      : entity.latest.get(`${type}/${key.name}`);
}

/** Returns the filter of a datasource; none if it can't be resolved yet. */
export function filterOf(source: Datasource, dashboard: Dashboard, params: Json): Json | undefined {
  if (source.type === "device" && source.deviceId !== undefined) {
    return { type: "singleEntity", singleEntity: { entityType: "DEVICE", id: source.deviceId } };
  }
  const alias = source.aliasId === undefined ? undefined : dashboard.aliases.get(source.aliasId);
  return alias === undefined ? undefined : resolveAlias(alias.filter, params);
}

export interface SourceRequest {
  source: Datasource;
  filter: Json;
  keyFilters: unknown[];
  window: TimeWindow | undefined;
}

/** Makes the command that counts entities or alarms. */
function countCommand({ source, filter, keyFilters }: SourceRequest): LiveCommand {
  const query = { entityFilter: filter, keyFilters };
  return source.type === "entityCount" ? { type: "ENTITY_COUNT", query } : { type: "ALARM_COUNT", query: { ...query, ...source.alarmFilter } };
}

/** Makes the one command that asks for the entities of a datasource, their latest values, and points if there is a window. */
export function commandOf({ source, filter, keyFilters, window }: SourceRequest, now: number): LiveCommand {
  if (source.type === "entityCount" || source.type === "alarmCount") {
    return countCommand({ source, filter, keyFilters, window });
  }
  const keys = [...source.dataKeys, ...source.latestKeys].flatMap((key) => {
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
      pageLink: { pageSize: isOne ? 1 : PAGE, page: 0, sortOrder: { key: { type: "ENTITY_FIELD", key: "createdTime" }, direction: "DESC" } },
      entityFields: [...fields].map((key) => ({ type: "ENTITY_FIELD", key })),
      latestValues: values,
    },
    ...(values.length > 0 && (window === undefined || series.length === 0 || source.latestKeys.length > 0) ? { latestCmd: { keys: values } } : {}),
    ...(window === undefined || series.length === 0 ? {} : pointsCommand(window, [...new Set(series)], now)),
  };
}

function readPoints(value: unknown): Point[] {
  return list(value).flatMap((point) => {
    const ts = number(object(point)["ts"]);
    const read = object(point)["value"];
    return ts === undefined || read === null || read === undefined ? [] : [{ ts, value: typeof read === "object" ? JSON.stringify(read) : String(read) }];
  });
}

/** Joins points that came later to those that are there, oldest first, and drops what the window has left behind. */
export function joinPoints(known: Point[], added: Point[], from: number): Point[] {
  const byTime = new Map(known.map((point) => [point.ts, point]));
  added.forEach((point) => byTime.set(point.ts, point));
  return [...byTime.values()].filter((point) => point.ts >= from).sort((a, b) => a.ts - b.ts);
}

export class SourceData {
  private readonly byId = new Map<string, EntityValues>();
  private readonly listeners = new Set<() => void>();
  private shown: readonly EntityValues[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failure: string | undefined;
  private totalElements = 0;

  constructor(private readonly window: TimeWindow | undefined) {}

  take(update: LiveUpdate & { data?: unknown; update?: unknown; count?: unknown }, now: number = Date.now()): void {
    const count = number(update.count);
    if (count !== undefined) {
      const latest = new Map([[COUNT, { ts: now, value: String(count) }]]);
      this.byId.set("count", { id: { entityType: "", id: "count" }, name: "", latest, points: new Map() });
    }
    this.totalElements = number(object(update.data)["totalElements"]) ?? this.totalElements;
    this.failure = update.errorCode === undefined || update.errorCode === 0 ? undefined : (update.errorMsg ?? "");
    const page = list(object(update.data)["data"]);
    [...page, ...list(update.update)].forEach((entity) => this.takeEntity(object(entity), now));
    // Many updates of one moment are drawn once.
    this.timer ??= setTimeout(() => this.publish(), REDRAW_MS);
  }

  private takeEntity(entity: Json, now: number): void {
    const id = object(entity["entityId"]);
    const key = `${String(id["entityType"])}/${String(id["id"])}`;
    const known = this.byId.get(key);
    const latest = new Map(known?.latest);
    for (const [type, values] of Object.entries(object(entity["latest"]))) {
      for (const [name, value] of Object.entries(object(values))) {
        readPoints([value]).forEach((point) => latest.set(`${type}/${name}`, point));
      }
    }
    const points = new Map(known?.points);
    const from = this.window === undefined ? 0 : boundsOf(this.window, now)[0];
    for (const [name, values] of Object.entries(object(entity["timeseries"]))) {
      points.set(name, joinPoints(points.get(name) ?? [], readPoints(values), from));
    }
    const name = latest.get("ENTITY_FIELD/name")?.value ?? known?.name ?? "";
    this.byId.set(key, { id: { entityType: text(id["entityType"]) ?? "", id: text(id["id"]) ?? "" }, name, latest, points });
  }

  private publish(): void {
    this.timer = undefined;
    this.shown = [...this.byId.values()];
    this.listeners.forEach((listener) => listener());
  }

  readonly watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly entities = (): readonly EntityValues[] => this.shown;
  readonly problem = (): string | undefined => this.failure;
  readonly total = (): number => this.totalElements;
}

/** What one source of a widget has shown so far. */
export interface SourceValues {
  source: Datasource;
  entities: readonly EntityValues[];
  problem: string | undefined;
  /** How many entities there are, which can be more than are shown. */
  total: number;
}

/** Follows the datasources of a widget as long as it is shown. An unresolved one has no entities. */
export function useSources(requests: (SourceRequest | undefined)[], sources: Datasource[]): SourceValues[] {
  const identities = JSON.stringify(requests.map((request) => (request === undefined ? "" : JSON.stringify(request))));
  const joined = useMemo(() => new JoinedSources(JSON.parse(identities) as string[]), [identities]);
  const shown = useSyncExternalStore(joined.watch, joined.current);
  return useMemo(
    () => sources.map((source, n) => ({ source, ...(shown[n] ?? { entities: [], problem: undefined, total: 0 }) })),
    [sources, shown],
  );
}
