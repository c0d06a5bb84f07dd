// What has come for one request: entities with their latest values and points, kept outside React.

import type { LiveUpdate } from "@/live/protocol";
import { aggregateName, aggregationIn, NOT_SUPPORTED, readAggregates, shownAggregate, withValue, type Aggregate } from "./aggregated";
import { list, number, object, text, type DataKey, type Json } from "./model";
import { COUNT, keysOf, type EntityValues, type Point, type SourceRequest } from "./source";
import { serverNow } from "./time/clock";
import { fold, type Folding } from "./time/folding";
import { groupAt } from "./time/grouping";
import { boundsOf, groupingIn } from "./timeWindow";

/** Redraws of a widget have at least this distance, milliseconds. */
const REDRAW_MS = 100;

function readPoint(stored: unknown): Point | undefined {
  const { ts: at, value } = object(stored);
  const ts = number(at);
  return ts === undefined || value === null || value === undefined ? undefined : { ts, value: typeof value === "object" ? JSON.stringify(value) : String(value) };
}

function readPoints(value: unknown): Point[] {
  const points: Point[] = [];
  // Answers have tens of thousands of them.
  for (const stored of list(value)) {
    const point = readPoint(stored);
    if (point !== undefined) {
      points.push(point);
    }
  }
  return points;
}

/** Joins points that came later to those that are there, oldest first, and drops what the window has left behind; the last of these if asked. */
export function joinPoints(known: readonly Point[], added: readonly Point[], from: number, keepsPrevious = false): Point[] {
  const newest = known.at(-1)?.ts ?? -Infinity;
  const ordered = added.every((point, n) => point.ts > (added[n - 1]?.ts ?? newest));
  let all: readonly Point[];
  if (ordered) {
    all = [...known, ...added];
  } else {
    const byTime = new Map(known.map((point) => [point.ts, point]));
    added.forEach((point) => byTime.set(point.ts, point));
    all = [...byTime.values()].sort((a, b) => a.ts - b.ts);
  }
  const first = all.findIndex((point) => point.ts >= from);
  return first < 0 ? (keepsPrevious ? all.slice(-1) : []) : all.slice(Math.max(0, keepsPrevious ? first - 1 : first));
}

export class SourceData {
  private readonly byId = new Map<string, EntityValues>();
  private readonly listeners = new Set<() => void>();
  private shown: readonly EntityValues[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private published = false;
  private failure: string | undefined;
  private totalElements = 0;
  private readonly keys: DataKey[];
  /** How points of each entity and key are grouped; none where each is kept. */
  private readonly foldings = new Map<string, Folding>();
  /** What the next points are: how many values the group that goes on has, the groups themselves, or new values. */
  private stage: "counts" | "points" | "values" = "points";

  constructor(private readonly request: SourceRequest | undefined) {
    this.keys = request === undefined ? [] : keysOf(request.source);
  }

  take(update: LiveUpdate & { data?: unknown; update?: unknown; count?: unknown }, now: number = serverNow()): void {
    const count = number(update.count);
    if (count !== undefined) {
      const latest = new Map([[COUNT, { ts: now, value: String(count) }]]);
      this.byId.set("count", { id: { entityType: "", id: "count" }, name: "", latest, points: new Map() });
    }
    this.totalElements = number(object(update.data)["totalElements"]) ?? this.totalElements;
    this.failure = update.errorCode === undefined || update.errorCode === 0 ? undefined : (update.errorMsg ?? "");
    const page = object(update.data)["data"];
    if (page !== undefined) {
      this.begin();
    }
    const entities = [...list(page), ...list(update.update)].map(object);
    entities.forEach((entity) => this.takeEntity(entity, page !== undefined, now));
    if (entities.some((entity) => Object.keys(object(entity["timeseries"])).length > 0)) {
      this.stage = this.stage === "counts" ? "points" : "values";
    }
    // Many updates of one moment are drawn once; the first answer is drawn at once.
    this.timer ??= setTimeout(() => this.publish(), this.published ? REDRAW_MS : 0);
  }

  /** A page is the first answer, also after a lost connection. */
  private begin(): void {
    const window = this.request?.window;
    this.stage = window?.realtime === true && window.aggregation === "AVG" && this.request?.wish?.raw !== true ? "counts" : "points";
    this.foldings.clear();
  }

  /** Reads the entities of an answer that nobody follows. */
  static read(entities: unknown[]): EntityValues[] {
    const data = new SourceData(undefined);
    entities.forEach((entity) => data.takeEntity(object(entity), true, 0));
    return [...data.byId.values()];
  }

  private takeEntity(entity: Json, isPage: boolean, now: number): void {
    const id = object(entity["entityId"]);
    const identity = `${String(id["entityType"])}/${String(id["id"])}`;
    const known = this.byId.get(identity);
    const latest = new Map(known?.latest);
    let aggregates = entity["aggLatest"] === undefined || entity["aggLatest"] === null ? known?.aggregates : readAggregates(entity["aggLatest"], known?.aggregates);
    for (const [type, values] of Object.entries(object(entity["latest"]))) {
      for (const [name, value] of Object.entries(object(values))) {
        const point = readPoint(value);
        if (point === undefined) {
          continue;
        }
        const path = `${type}/${name}`;
        const before = latest.get(path)?.ts ?? (isPage ? Infinity : 0);
        latest.set(path, point);
        if (type === "TIME_SERIES" && point.ts > before && this.request?.aggregated?.realtime === true) {
          aggregates = this.addTo(aggregates, name, point);
        }
      }
    }
    const points = new Map(known?.points);
    for (const [name, values] of Object.entries(object(entity["timeseries"]))) {
      this.takePoints(`${identity} ${name}`, name, points, readPoints(values), now);
    }
    this.showAggregates(latest, aggregates);
    const name = latest.get("ENTITY_FIELD/name")?.value ?? known?.name ?? "";
    this.byId.set(identity, { id: { entityType: text(id["entityType"]) ?? "", id: text(id["id"]) ?? "" }, name, latest, points, ...(aggregates === undefined ? {} : { aggregates }) });
  }

  private takePoints(place: string, name: string, points: Map<string, Point[]>, added: Point[], now: number): void {
    const window = this.request?.window;
    const [start, end] = window === undefined ? [0, 0] : boundsOf(window, now);
    const grouping = window === undefined || this.request?.wish?.raw === true ? undefined : groupingIn(window, start, end);
    if (window !== undefined && grouping !== undefined && window.realtime) {
      const folding = this.foldings.get(place) ?? { kind: window.aggregation, grouping, zone: window.zone, counts: new Map<number, number>() };
      this.foldings.set(place, folding);
      if (this.stage === "counts") {
        folding.counts = new Map(added.map((point) => [groupAt(grouping, point.ts, window.zone)[0], Number(point.value)]));
        return;
      }
      if (this.stage === "values") {
        const folded = [...added].sort((a, b) => a.ts - b.ts).filter((point) => point.ts >= start).reduce((all, point) => fold(all, point, folding), points.get(name) ?? []);
        points.set(name, joinPoints([], folded, groupAt(grouping, start, window.zone)[0], this.request?.wish?.previous));
        return;
      }
    }
    const from = grouping === undefined ? start : groupAt(grouping, start, window?.zone)[0];
    points.set(name, joinPoints(points.get(name) ?? [], added, window?.realtime === true ? from : 0, this.request?.wish?.previous));
  }

  private addTo(known: ReadonlyMap<number, Aggregate> | undefined, name: string, point: Point): ReadonlyMap<number, Aggregate> | undefined {
    const value = Number(point.value);
    const all = new Map(known);
    this.keys.forEach((key, id) => {
      const kind = aggregationIn(key);
      const before = all.get(id);
      if (kind !== undefined && key.name === name && before !== undefined && (kind === "COUNT" || (point.value.trim() !== "" && Number.isFinite(value)))) {
        all.set(id, withValue(before, kind, point.ts, value));
      }
    });
    return all;
  }

  private showAggregates(latest: Map<string, Point>, aggregates: ReadonlyMap<number, Aggregate> | undefined): void {
    const window = this.request?.aggregated;
    this.keys.forEach((key, id) => {
      const aggregate = aggregates?.get(id);
      const value = aggregate === undefined ? undefined : shownAggregate(aggregate, key);
      if (aggregationIn(key) === undefined) {
        return;
      }
      if (window?.realtime === true && window.quick === undefined) {
        latest.set(aggregateName(key), { ts: 0, value: NOT_SUPPORTED });
      } else if (value !== undefined) {
        latest.set(aggregateName(key), { ts: aggregate?.ts ?? 0, value: String(value) });
      }
    });
  }

  private publish(): void {
    this.timer = undefined;
    this.published = true;
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
