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
  if (typeof value === "string" && typeof at === "number") {
    // Most are points as they come, and answers have tens of thousands of them.
    return stored as Point;
  }
  const ts = number(at);
  return ts === undefined || value === null || value === undefined ? undefined : { ts, value: typeof value === "object" ? JSON.stringify(value) : String(value) };
}

function readPoints(value: unknown): Point[] {
  const points: Point[] = [];
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

/** Those of the many entities that have none. */
const NO_POINTS: Map<string, Point[]> = new Map();

export class SourceData {
  private readonly byId = new Map<string, EntityValues>();
  private readonly listeners = new Set<() => void>();
  private shown: readonly EntityValues[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private published = false;
  private failure: string | undefined;
  private totalElements = 0;
  private readonly keys: DataKey[];
  private readonly hasAggregates: boolean;
  /** Where the latest value of a key of a type is kept: made once, and not for each of many entities. */
  private readonly paths = new Map<string, Map<string, string>>();
  /** How points of each entity and key are grouped; none where each is kept. */
  private readonly foldings = new Map<string, Folding>();
  /** What the next points are: how many values the group that goes on has, the groups themselves, or new values. */
  private stage: "counts" | "points" | "values" = "points";

  constructor(private readonly request: SourceRequest | undefined) {
    this.keys = request === undefined ? [] : keysOf(request.source);
    this.hasAggregates = this.keys.some((key) => aggregationIn(key) !== undefined);
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
    let hasPoints = false;
    for (const entities of [list(page), list(update.update)]) {
      for (const entity of entities) {
        hasPoints = this.takeEntity(object(entity), page !== undefined, now) || hasPoints;
      }
    }
    if (hasPoints) {
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

  private pathOf(type: string, name: string): string {
    let paths = this.paths.get(type);
    if (paths === undefined) {
      paths = new Map();
      this.paths.set(type, paths);
    }
    let path = paths.get(name);
    if (path === undefined) {
      path = `${type}/${name}`;
      paths.set(name, path);
    }
    return path;
  }

  /** Takes in what has come of an entity. Returns whether points are among it. An answer can have ten thousand entities. */
  private takeEntity(entity: Json, isPage: boolean, now: number): boolean {
    const id = object(entity["entityId"]);
    const identity = `${String(id["entityType"])}/${String(id["id"])}`;
    const known = this.byId.get(identity);
    const latest = new Map(known?.latest);
    const answered = entity["aggLatest"];
    let aggregates = this.hasAggregates && answered !== undefined && answered !== null ? readAggregates(answered, known?.aggregates) : known?.aggregates;
    const types = object(entity["latest"]);
    for (const type in types) {
      const values = object(types[type]);
      for (const name in values) {
        const point = readPoint(values[name]);
        if (point === undefined) {
          continue;
        }
        const path = this.pathOf(type, name);
        if (type === "TIME_SERIES" && this.request?.aggregated?.realtime === true && point.ts > (latest.get(path)?.ts ?? (isPage ? Infinity : 0))) {
          aggregates = this.addTo(aggregates, name, point);
        }
        latest.set(path, point);
      }
    }
    let points = known?.points ?? NO_POINTS;
    const series = object(entity["timeseries"]);
    let hasPoints = false;
    for (const name in series) {
      points = hasPoints ? points : new Map(points);
      hasPoints = true;
      this.takePoints(`${identity} ${name}`, name, points, readPoints(series[name]), now);
    }
    if (this.hasAggregates) {
      this.showAggregates(latest, aggregates);
    }
    const name = latest.get("ENTITY_FIELD/name")?.value ?? known?.name ?? "";
    const taken: EntityValues = { id: { entityType: text(id["entityType"]) ?? "", id: text(id["id"]) ?? "" }, name, latest, points };
    if (aggregates !== undefined) {
      taken.aggregates = aggregates;
    }
    this.byId.set(identity, taken);
    return hasPoints;
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
  /** Whether the server has answered. */
  readonly answered = (): boolean => this.published;
}
