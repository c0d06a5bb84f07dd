// Values that functions of a dashboard make up: sources that ask nobody. Points are grouped as those of a server are.

import type { LiveUpdate } from "@/live/protocol";
import { callInSandbox, type SandboxResult } from "@/sandbox/calls";
import { t } from "@/i18n";
import { bodyOf } from "./actions";
import type { DataKey, Json } from "./model";
import type { Point, SourceRequest } from "./source";
import { serverNow } from "./time/clock";
import { fold, middleOf, type Folding } from "./time/folding";
import { groupAt, lengthOf } from "./time/grouping";
import { boundsOf, groupingIn, type TimeWindow } from "./timeWindow";

const NAMES = ["time", "prevValue"];
/** Points are made at least so far apart, and usually no further than that, milliseconds. */
const LEAST_STEP_MS = 1_000;
const USUAL_STEP_MS = 5_000;
/** The most points of a key that are made at once. */
const MOST = 5_000;
const DAY_MS = 86_400_000;
/** Latest values change so often, milliseconds. */
const LATEST_MS = 1_000;

/** Takes what is made up, in the form in which a server answers. */
type Take = (update: LiveUpdate) => void;

/** Where the course of a key is: its next value follows from this one. */
interface Course {
  key: DataKey;
  ts: number;
  value: unknown;
}

/** Returns the distance of the points that are made for a window. */
export function stepOf(window: TimeWindow, length: number): number {
  const grouping = groupingIn(window, 0, length);
  const most = Math.min(MOST, window.aggregation === "NONE" ? window.limit : MOST);
  return Math.max(LEAST_STEP_MS, Math.min(USUAL_STEP_MS, grouping === undefined ? USUAL_STEP_MS : lengthOf(grouping)), Math.ceil(length / most));
}

/** Returns first and last moment for which points are made: those that are still to come are not. */
export function madeBounds(window: TimeWindow, now: number): [number, number] {
  const [start, end] = window.all ? [now - DAY_MS, now] : boundsOf(window, now);
  return [start, Math.min(end, now)];
}

/** Returns points in the groups of a window, and how many values each group has. */
export function grouped(points: readonly Point[], window: TimeWindow, [start, end]: [number, number]): { points: Point[]; counts: Point[] } {
  const grouping = groupingIn(window, start, end);
  if (grouping === undefined) {
    return { points: [...points], counts: [] };
  }
  const folding: Folding = { kind: window.aggregation, grouping, zone: window.zone, counts: new Map() };
  const all = points.reduce<Point[]>((known, point) => fold(known, point, folding), []);
  const counts = [...folding.counts].map(([from, count]) => ({ ts: middleOf(groupAt(grouping, from, window.zone)), value: String(count) }));
  return { points: all, counts };
}

const written = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

/** Makes up the values of a request until the returned function is called. */
export function generate({ source, window: asked, wish }: SourceRequest, take: Take, call: typeof callInSandbox = callInSandbox): () => void {
  const window: TimeWindow | undefined = asked !== undefined && wish?.raw === true ? { ...asked, aggregation: "NONE" } : asked;
  const name = source.name || t("Made up");
  const entityId = { entityType: "FUNCTION", id: name };
  const series: Course[] = window === undefined ? [] : source.dataKeys.map((key) => ({ key, ts: 0, value: 0 }));
  const latest: Course[] = (window === undefined ? [...source.dataKeys, ...source.latestKeys] : source.latestKeys).map((key) => ({ key, ts: 0, value: 0 }));
  const timers: ReturnType<typeof setInterval>[] = [];
  let ended = false;
  let problem: string | undefined;

  /** Goes on with the course of a key at some moments. */
  const go = async (course: Course, times: readonly number[]): Promise<Point[]> => {
    const body = bodyOf(course.key.raw["funcBody"]);
    if (body === undefined || times.length === 0 || ended) {
      return [];
    }
    const results: (SandboxResult | undefined)[] = await call({ body, names: NAMES, calls: times.map((ts) => [ts, course.value]), chained: 1 });
    problem = (results.length === 0 ? t("it took too long") : results.find((one) => one?.error !== undefined)?.error) ?? problem;
    // What gave nothing for a moment isn't asked for it again.
    course.ts = times.at(-1) ?? course.ts;
    return times.flatMap((ts, n): Point[] => {
      const value = results[n]?.value;
      if (value === undefined || value === null) {
        return [];
      }
      course.value = value;
      return [{ ts, value: written(value) }];
    });
  };
  const latestNow = async (): Promise<Json> => {
    const made = await Promise.all(latest.map(async (course) => [course.key.name, (await go(course, [serverNow()]))[0]] as const));
    return Object.fromEntries(made.filter(([, point]) => point !== undefined));
  };
  const tell = (update: Json): void => {
    if (!ended) {
      take({ ...update, ...(problem === undefined ? {} : { errorCode: 1, errorMsg: problem }) } as LiveUpdate);
      problem = undefined;
    }
  };
  /** Does something again and again, but never twice at once. */
  const repeat = (distance: number, work: () => Promise<void>): void => {
    let busy = false;
    timers.push(
      setInterval(() => {
        if (!busy) {
          busy = true;
          void work().finally(() => {
            busy = false;
          });
        }
      }, distance),
    );
  };

  const begin = async (): Promise<void> => {
    const now = serverNow();
    const [start, end] = window === undefined ? [now, now] : madeBounds(window, now);
    const step = window === undefined ? LATEST_MS : stepOf(window, end - start);
    const times = Array.from({ length: Math.max(0, Math.floor((end - start) / step) + 1) }, (_, n) => end - n * step).reverse();
    const made = await Promise.all(series.map(async (course) => ({ name: course.key.name, ...(window === undefined ? { points: [], counts: [] } : grouped(await go(course, times), window, boundsOf(window, now))) })));
    const points = Object.fromEntries(made.map((one) => [one.name, one.points]));
    const counted = window?.realtime === true && window.aggregation === "AVG" && groupingIn(window, start, end) !== undefined;
    const first = counted ? Object.fromEntries(made.map((one) => [one.name, one.counts])) : points;
    const fields = { ENTITY_FIELD: { name: { ts: now, value: name } }, TIME_SERIES: await latestNow() };
    tell({ data: { data: [{ entityId, latest: fields, ...(series.length > 0 ? { timeseries: first } : {}) }], totalElements: 1 } });
    if (counted) {
      tell({ update: [{ entityId, timeseries: points }] });
    }
    if (ended) {
      return;
    }
    if (window?.realtime === true && series.length > 0) {
      repeat(step, async () => {
        const until = serverNow();
        const added = await Promise.all(
          series.map(async (course) => {
            // A page that has slept goes on from where its window begins.
            const from = Math.max(course.ts + step, until - MOST * step);
            return [course.key.name, await go(course, Array.from({ length: Math.max(0, Math.floor((until - from) / step) + 1) }, (_, n) => from + n * step))] as const;
          }),
        );
        tell({ update: [{ entityId, timeseries: Object.fromEntries(added) }] });
      });
    }
    if (latest.length > 0) {
      repeat(LATEST_MS, async () => tell({ update: [{ entityId, latest: { TIME_SERIES: await latestNow() } }] }));
    }
  };
  void begin();
  return () => {
    ended = true;
    timers.forEach((timer) => clearInterval(timer));
  };
}
