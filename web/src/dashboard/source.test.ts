import { expect, test, vi } from "vitest";
import { readDashboard } from "./model";
import { newestOf } from "./age";
import { isConnected, isWaitingFor } from "./emptiness";
import { commandOf, filterOf, requestOf } from "./source";
import { joinPoints, SourceData } from "./sourceData";
import { readTimeWindow } from "./timeWindow";

vi.mock("@/api/session", async (original) => ({ ...(await original<object>()), currentClaims: () => ({ userId: "reader" }) }));

const dashboard = readDashboard({
  entityAliases: { a: { filter: { type: "deviceType", deviceTypes: ["x"], resolveMultiple: true } } },
  widgets: { w: { config: { datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [{ name: "t", type: "timeseries" }, { name: "m", type: "attribute" }] }] } } },
});
const source = dashboard.widgets.get("w")?.datasources[0];

test("a widget asks for its entities, and for latest values or points", () => {
  const filter = source === undefined ? undefined : filterOf(source, dashboard, {});
  if (source === undefined || filter === undefined) {
    throw new Error("the datasource is not resolved");
  }
  const latest = commandOf({ source, filter, keyFilters: [], window: undefined }, 1_000);
  expect(latest["latestCmd"]).toEqual({ keys: [{ type: "TIME_SERIES", key: "t" }, { type: "ATTRIBUTE", key: "m" }] });
  const window = readTimeWindow({ selectedTab: 0, realtime: { timewindowMs: 60_000, interval: 1_000 } });
  const points = commandOf({ source, filter, keyFilters: [], window }, 100_000);
  expect(points["latestCmd"]).toBeUndefined();
  expect(points["tsCmd"]).toMatchObject({ keys: ["t"], startTs: 40_000, timeWindow: 61_000, agg: "AVG" });
});

test("a count of alarms without an alias is that of all alarms", () => {
  const counting = readDashboard({ widgets: { w: { config: { datasources: [{ type: "alarmCount", alarmFilterConfig: { statusList: ["ACTIVE"] }, dataKeys: [{ name: "count", type: "count" }] }] } } } });
  const [count] = counting.widgets.get("w")?.datasources ?? [];
  const filter = count === undefined ? undefined : filterOf(count, counting, {});
  if (count === undefined || filter === undefined) {
    throw new Error("the datasource is not resolved");
  }
  expect(commandOf({ source: count, filter, keyFilters: [], window: undefined }, 1_000)).toEqual({ type: "ALARM_COUNT", query: { keyFilters: [], statusList: ["ACTIVE"] } });
});

test("alarms are counted of whoever looks, if these are meant", () => {
  const counting = readDashboard({ widgets: { w: { config: { datasources: [{ type: "alarmCount", alarmFilterConfig: { assignedToCurrentUser: true }, dataKeys: [{ name: "count", type: "count" }] }] } } } });
  const [count] = counting.widgets.get("w")?.datasources ?? [];
  const request = count === undefined ? undefined : requestOf(count, counting, {}, undefined);
  expect(request === undefined ? undefined : commandOf(request, 1_000)).toEqual({ type: "ALARM_COUNT", query: { keyFilters: [], assigneeId: { entityType: "USER", id: "reader" } } });
});

test("a widget waits only while it has nothing to show, and what went wrong is no reason to wait", () => {
  const request = source === undefined ? undefined : requestOf(source, dashboard, {}, undefined);
  const waiting = { role: "shown", problem: undefined, waiting: true } as const;
  const answered = { role: "shown", problem: undefined } as const;
  expect(isWaitingFor([waiting], [request])).toBe(true);
  expect(isWaitingFor([waiting, answered], [request, request])).toBe(false);
  expect(isWaitingFor([waiting, answered], [request, undefined]), "nothing was asked for the second one").toBe(true);
  expect(isWaitingFor([waiting, { ...answered, role: "beside" }], [request, request])).toBe(true);
  expect(isWaitingFor([waiting, { ...waiting, problem: "refused" }], [request, request])).toBe(false);
  expect(isWaitingFor([answered], [request])).toBe(false);
  expect(isWaitingFor([], [])).toBe(false);
});

test("what functions make up needs no connection", () => {
  expect(isConnected([{ type: "function" }])).toBe(false);
  expect(isConnected([{ type: "function" }, { type: "entity" }])).toBe(true);
  expect(isConnected([]), "a widget that asks for its data itself").toBe(true);
});

test("later points replace earlier ones of the same time, and old ones leave", () => {
  const known = [{ ts: 1, value: "a" }, { ts: 5, value: "b" }];
  expect(joinPoints(known, [{ ts: 5, value: "c" }, { ts: 4, value: "d" }], 2)).toEqual([{ ts: 4, value: "d" }, { ts: 5, value: "c" }]);
});

test("entities of the first page are kept when updates name only some of their values", async () => {
  const data = new SourceData(undefined);
  const entityId = { entityType: "DEVICE", id: "7" };
  const changed = new Promise<void>((resolve) => data.watch(resolve));
  data.take({ data: { data: [{ entityId, latest: { ENTITY_FIELD: { name: { ts: 0, value: "Boiler" } }, TIME_SERIES: { t: { ts: 1, value: "20" }, u: { ts: 1, value: "1" } } } }] } as never });
  data.take({ update: [{ entityId, latest: { TIME_SERIES: { t: { ts: 2, value: "21" } } } }] });
  expect(data.answered()).toBe(false);
  await changed;
  expect(data.answered()).toBe(true);
  const [entity] = data.entities();
  expect(entity).toMatchObject({ name: "Boiler" });
  expect(entity?.latest.get("TIME_SERIES/t")?.value).toBe("21");
  expect(entity?.latest.get("TIME_SERIES/u")?.value).toBe("1");
});

test("values are as old as the newest of them, and fields of entities are none", () => {
  const id = { entityType: "DEVICE", id: "7" };
  const field: [string, { ts: number; value: string }] = ["ENTITY_FIELD/name", { ts: 900, value: "Boiler" }];
  const old = { id, name: "", latest: new Map([field, ["TIME_SERIES/t", { ts: 5, value: "1" }], ["ATTRIBUTE/a", { ts: 0, value: "" }]]), points: new Map() };
  expect(newestOf([{ ...old, latest: new Map([field]) }])).toBeUndefined();
  expect(newestOf([old, { ...old, points: new Map([["t", [{ ts: 3, value: "1" }, { ts: 8, value: "2" }]]]) }])).toBe(8);
});
