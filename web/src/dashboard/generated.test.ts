import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SandboxCalls, SandboxResult } from "@/sandbox/calls";
import { generate, grouped, madeBounds, stepOf } from "./generated";
import { readDashboard } from "./model";
import { latestOf, requestOf, type SourceRequest } from "./source";
import { SourceData } from "./sourceData";
import { readTimeWindow, type TimeWindow } from "./timeWindow";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Runs functions as the sandbox does. */
function call({ body, names, calls, chained }: SandboxCalls): Promise<SandboxResult[]> {
  const made = new Function(...names, body) as (...args: unknown[]) => unknown;
  let before = chained === undefined ? undefined : calls[0]?.[chained];
  return Promise.resolve(
    calls.map((args) => {
      try {
        before = made(...(chained === undefined ? args : args.with(chained, before)));
        return { value: before };
      } catch (error) {
        return { error: String(error) };
      }
    }),
  );
}

const key = (name: string, funcBody: string) => ({ name, type: "function", label: name, funcBody });

function requestFor(keys: object[], window: TimeWindow | undefined): SourceRequest {
  const dashboard = readDashboard({ widgets: { w: { config: { datasources: [{ type: "function", name: "Model", dataKeys: keys }] } } } });
  const [source] = dashboard.widgets.get("w")?.datasources ?? [];
  const request = source === undefined ? undefined : requestOf(source, dashboard, {}, window);
  if (request === undefined) {
    throw new Error("a source of functions asks for nothing");
  }
  return request;
}

function follow(request: SourceRequest): SourceData {
  const data = new SourceData(request);
  generate(request, (update) => data.take(update as never), call);
  return data;
}

test("latest values go on from those before, once a second", async () => {
  const request = requestFor([key("Count", "return prevValue + 1;")], undefined);
  const data = follow(request);
  await vi.advanceTimersByTimeAsync(50);
  const value = (): string | undefined => latestOf(data.entities()[0] ?? { id: { entityType: "", id: "" }, name: "", latest: new Map(), points: new Map() }, request.source.dataKeys[0] as never)?.value;
  expect(data.entities()[0]?.name).toBe("Model");
  expect(value()).toBe("1");
  await vi.advanceTimersByTimeAsync(3_200);
  expect(value()).toBe("4");
});

test("two keys of one name have values of their own", async () => {
  const request = requestFor([key("Sin", "return 1;"), key("Sin", "return 2;")], undefined);
  const data = follow(request);
  await vi.advanceTimersByTimeAsync(50);
  expect([...(data.entities()[0]?.latest ?? [])].filter(([name]) => name.startsWith("TIME_SERIES")).map(([, { value }]) => value)).toEqual(["1", "2"]);
});

test("a window is filled, and a live one goes on", async () => {
  const window = readTimeWindow({ selectedTab: 0, realtime: { timewindowMs: 60_000, interval: 1_000 }, aggregation: { type: "NONE" } });
  const request = requestFor([key("Time", "return time;")], window);
  const data = follow(request);
  await vi.advanceTimersByTimeAsync(50);
  const points = () => data.entities()[0]?.points.get("Time") ?? [];
  expect(points()).toHaveLength(13);
  const before = points().at(-1)?.ts ?? 0;
  await vi.advanceTimersByTimeAsync(11_000);
  expect(points().at(-1)?.ts).toBe(before + 10_000);
});

test("points are grouped as a server groups them, and live values join their group", async () => {
  const window = readTimeWindow({ selectedTab: 0, realtime: { timewindowMs: 60_000, interval: 10_000 }, aggregation: { type: "AVG" } });
  expect(grouped([1, 2, 3].map((n) => ({ ts: n * 4_000, value: String(n) })), window, [0, 60_000])).toEqual({
    points: [{ ts: 5_000, value: "1.5" }, { ts: 15_000, value: "3" }],
    counts: [{ ts: 5_000, value: "2" }, { ts: 15_000, value: "1" }],
  });
  const data = follow(requestFor([key("Ten", "return 10;")], window));
  await vi.advanceTimersByTimeAsync(15_000);
  const points = data.entities()[0]?.points.get("Ten") ?? [];
  expect(points.length).toBeGreaterThanOrEqual(6);
  expect(new Set(points.map(({ value }) => value))).toEqual(new Set(["10"]));
});

test("a function that fails says why", async () => {
  const data = follow(requestFor([key("Bad", "return nothing.here;")], undefined));
  await vi.advanceTimersByTimeAsync(50);
  expect(data.problem()).toContain("nothing is not defined");
});

test("long windows have no more points than a chart can use, and none that are still to come", () => {
  const year = readTimeWindow({ selectedTab: 1, history: { historyType: 0, timewindowMs: 365 * 86_400_000, interval: 86_400_000 } });
  expect(365 * 86_400_000 / stepOf(year, 365 * 86_400_000)).toBeLessThanOrEqual(5_000);
  const today = readTimeWindow({ selectedTab: 1, history: { historyType: 2, quickInterval: "CURRENT_DAY" } });
  const now = Date.UTC(2026, 1, 1, 12);
  expect(madeBounds(today, now)[1]).toBe(now);
});

test("a function that makes nothing or fails is called for each moment once", async () => {
  for (const body of ["return null;", "throw new Error('no');"]) {
    const window = readTimeWindow({ selectedTab: 0, realtime: { timewindowMs: 60_000, interval: 5_000 }, aggregation: { type: "NONE" } });
    const asked: number[] = [];
    const end = generate(requestFor([key("None", body)], window), () => undefined, (calls) => {
      asked.push(calls.calls.length);
      return call(calls);
    });
    await vi.advanceTimersByTimeAsync(20_100);
    end();
    expect(asked).toEqual([13, 1, 1, 1, 1]);
  }
});

test("what has ended calls no function any more", async () => {
  const window = readTimeWindow({ selectedTab: 0, realtime: { timewindowMs: 60_000 }, aggregation: { type: "NONE" } });
  let answer: (results: SandboxResult[]) => void = () => undefined;
  let asked = 0;
  const end = generate({ ...requestFor([key("One", "return 1;")], window), source: { ...requestFor([key("One", "return 1;")], window).source, latestKeys: requestFor([key("Two", "return 2;")], window).source.dataKeys } }, () => undefined, () => {
    asked++;
    return new Promise((resolve) => (answer = resolve));
  });
  await vi.advanceTimersByTimeAsync(10);
  end();
  answer([]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked).toBe(1);
});

test("who wants each point as it is gets neither groups nor how many values they have", async () => {
  const window = readTimeWindow({ selectedTab: 0, realtime: { timewindowMs: 60_000, interval: 10_000 }, aggregation: { type: "AVG" } });
  const data = follow({ ...requestFor([key("State", "return time % 10000 < 5000 ? 'on' : 'off';")], window), wish: { raw: true } });
  await vi.advanceTimersByTimeAsync(50);
  const points = data.entities()[0]?.points.get("State") ?? [];
  expect(points).toHaveLength(13);
  expect(new Set(points.map(({ value }) => value))).toEqual(new Set(["on", "off"]));
});
