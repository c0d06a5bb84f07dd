// Alarms that stay live: one subscription for each filter of entities, joined in the order that was asked for.

import { useMemo, useSyncExternalStore } from "react";
import { api } from "@/api/client";
import type { EntityId, PageData } from "@/api/types";
import { list, number, object, text, type Json } from "@/dashboard/json";
import type { LiveCommand, LiveUpdate } from "@/live/protocol";
import { live } from "@/live/socket";
import { FILE_PAGE, type RowsPage } from "@/ui/rowsFile";
import { compareAlarms, ORIGINATORS, type Alarm } from "./alarm";

export interface AlarmConditions {
  statusList?: readonly string[];
  severityList?: readonly string[];
  typeList?: readonly string[];
  assigneeId?: EntityId;
  startTs?: number;
  endTs?: number;
  /** The last so many milliseconds. */
  timeWindow?: number;
  searchPropagatedAlarms?: boolean;
}

export interface AlarmFeedQuery {
  /** Whose alarms are meant; without any filter, those of all kinds of entities. */
  filters: readonly Json[] | undefined;
  keyFilters?: readonly unknown[];
  anyKeyFilter?: boolean;
  conditions: AlarmConditions;
  search: string;
  sort: { property: string; type?: string; order: "ASC" | "DESC" };
  /** The most alarms that are shown. */
  size: number;
  entityFields?: readonly string[];
  latestValues?: readonly { type: string; key: string }[];
}

/** More alarms than these are not asked for at once; conditions narrow what is left. */
export const MOST_ALARMS = 10_000;
const REDRAW_MS = 100;

export type Subscribe = (command: LiveCommand, onUpdate: (update: LiveUpdate) => void) => () => void;

interface Part {
  alarms: Alarm[];
  total: number;
  loaded: boolean;
}

/** Makes the command for the alarms of one filter of entities. */
export function alarmCommand(query: AlarmFeedQuery, filter: Json): LiveCommand {
  const { conditions, search, sort, size } = query;
  return {
    type: "ALARM_DATA",
    query: {
      entityFilter: filter,
      keyFilters: query.keyFilters ?? [],
      ...(query.anyKeyFilter === true ? { keyFiltersOperation: "OR" } : {}),
      entityFields: (query.entityFields ?? []).map((key) => ({ type: "ENTITY_FIELD", key })),
      latestValues: query.latestValues ?? [],
      alarmFields: [],
      pageLink: {
        page: 0,
        pageSize: Math.min(MOST_ALARMS, size),
        textSearch: search === "" ? null : search,
        sortOrder: { key: { type: sort.type ?? "ALARM_FIELD", key: sort.property }, direction: sort.order },
        searchPropagatedAlarms: false,
        ...conditions,
      },
    },
  };
}

/** Returns, for each filter of entities, what asks for its alarms page by page, each of them once and not live. */
export function alarmPages(query: AlarmFeedQuery, now = Date.now()): ((page: number) => Promise<RowsPage<Alarm>>)[] {
  const { timeWindow, ...conditions } = query.conditions;
  const within = timeWindow === undefined ? {} : { startTs: now - timeWindow, endTs: now };
  return filtersOf(query).map((filter) => async (page) => {
    const asked = object(alarmCommand({ ...query, conditions: { ...conditions, ...within } }, filter)["query"]);
    const found = await api.post<PageData<unknown>>("/api/alarmsQuery/find", { ...asked, pageLink: { ...object(asked["pageLink"]), page, pageSize: FILE_PAGE } });
    return { rows: readAlarms(found.data), hasNext: found.hasNext, total: found.totalElements };
  });
}

function filtersOf(query: AlarmFeedQuery): readonly Json[] {
  return query.filters ?? ORIGINATORS.map((entityType) => ({ type: "entityType", entityType }));
}

function readAlarms(value: unknown): Alarm[] {
  // What has no id is none.
  return list(value).filter((alarm) => text(object(object(alarm)["id"])["id"]) !== undefined) as Alarm[];
}

export interface AlarmPage {
  alarms: readonly Alarm[];
  total: number;
  isLoaded: boolean;
  problem: string | undefined;
}

const NOTHING: AlarmPage = { alarms: [], total: 0, isLoaded: false, problem: undefined };

export class AlarmFeed {
  private readonly parts: Part[];
  private readonly filters: readonly Json[];
  private readonly listeners = new Set<() => void>();
  private ends: (() => void)[] = [];
  private page: AlarmPage;
  private failure: string | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly query: AlarmFeedQuery,
    /** What is shown until the first answer. */
    before: AlarmPage = NOTHING,
    private readonly subscribe: Subscribe = (command, onUpdate) => live.subscribe(command, onUpdate),
  ) {
    this.filters = filtersOf(query);
    this.parts = this.filters.map(() => ({ alarms: [], total: 0, loaded: false }));
    this.page = before;
  }

  private take(part: Part, update: LiveUpdate & { data?: unknown; update?: unknown }): void {
    this.failure = update.errorCode === undefined || update.errorCode === 0 ? undefined : (update.errorMsg ?? "");
    const data = object(update.data);
    if (Array.isArray(data["data"])) {
      part.alarms = readAlarms(data["data"]);
      part.total = number(data["totalElements"]) ?? part.alarms.length;
    }
    const changed = new Map(readAlarms(update.update).map((alarm) => [alarm.id.id, alarm]));
    if (changed.size > 0) {
      part.alarms = part.alarms.map((alarm) => changed.get(alarm.id.id) ?? alarm);
    }
    part.loaded = true;
    // Answers of one moment are drawn once.
    this.timer ??= setTimeout(() => this.publish(), REDRAW_MS);
  }

  private publish(): void {
    this.timer = undefined;
    const isLoaded = this.parts.every((part) => part.loaded);
    if (isLoaded || !this.page.isLoaded || this.failure !== undefined) {
      const { sort, size } = this.query;
      const all = this.parts.flatMap((part) => part.alarms);
      const alarms = this.parts.length === 1 ? all : all.sort(compareAlarms(sort.property, sort.order)).slice(0, size);
      this.page = { alarms, total: this.parts.reduce((sum, part) => sum + part.total, 0), isLoaded: isLoaded || this.failure !== undefined, problem: this.failure };
    }
    this.listeners.forEach((listener) => listener());
  }

  readonly watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.ends.length === 0) {
      this.ends = this.filters.map((filter, n) => {
        const part = this.parts[n] ?? { alarms: [], total: 0, loaded: false };
        return this.subscribe(alarmCommand(this.query, filter), (update) => this.take(part, update));
      });
    }
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) {
        this.ends.forEach((end) => end());
        this.ends = [];
      }
    };
  };

  readonly current = (): AlarmPage => this.page;
}

/** Follows alarms as long as they are shown. A new search, order or condition keeps what is shown until its answer. `subscribe` must stay the same. */
export function useAlarms(query: AlarmFeedQuery, subscribe?: Subscribe): AlarmPage {
  const identity = JSON.stringify(query);
  const kept = useMemo((): { feed: AlarmFeed | undefined } => ({ feed: undefined }), [JSON.stringify([query.filters, query.entityFields, query.latestValues])]);
  const feed = useMemo(() => {
    const next = new AlarmFeed(JSON.parse(identity) as AlarmFeedQuery, kept.feed?.current(), subscribe);
    kept.feed = next;
    return next;
  }, [identity, kept, subscribe]);
  return useSyncExternalStore(feed.watch, feed.current);
}
