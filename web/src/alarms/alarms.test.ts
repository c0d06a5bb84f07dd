import { expect, test } from "vitest";
import type { LiveCommand, LiveUpdate } from "@/live/protocol";
import { atPath, newAlarms, withAlarms, type Alarm } from "./alarm";
import { AlarmFeed } from "./feed";
import { conditionsOf, NO_FILTER, readFilter, writeFilter } from "./filter";
import { grouped } from "./grouping";

function alarm(id: string, more: Partial<Alarm> = {}): Alarm {
  return {
    id: { entityType: "ALARM", id }, createdTime: 1, type: "Hot", severity: "MAJOR", status: "ACTIVE_UNACK", acknowledged: false, cleared: false,
    originator: { entityType: "DEVICE", id: "d" }, originatorName: "D", startTs: 1, endTs: 1, ackTs: 0, clearTs: 0, assignTs: 0, ...more,
  };
}

test("alarms of several kinds of entities are joined in their order, and updates replace them", async () => {
  const asked: LiveCommand[] = [];
  const answers: ((update: LiveUpdate & { data?: unknown; update?: unknown }) => void)[] = [];
  const query = { filters: [{ type: "entityType", entityType: "DEVICE" }, { type: "entityType", entityType: "ASSET" }], conditions: { statusList: ["ACTIVE"] }, search: "", sort: { property: "createdTime", order: "DESC" as const }, size: 2 };
  const feed = new AlarmFeed(query, undefined, (command, onUpdate) => {
    asked.push(command);
    answers.push(onUpdate as (typeof answers)[number]);
    return () => undefined;
  });
  let changed = (): void => undefined;
  const next = (): Promise<void> => new Promise((resolve) => (changed = resolve));
  feed.watch(() => changed());
  expect(asked.map(({ query: one }) => (one as { pageLink: object }).pageLink)).toMatchObject([{ pageSize: 2, statusList: ["ACTIVE"] }, {}]);
  answers[0]?.({ data: { data: [alarm("b", { createdTime: 5 }), alarm("a", { createdTime: 2 })], totalElements: 7 } as never });
  answers[1]?.({ data: { data: [alarm("c", { createdTime: 3 })], totalElements: 1 } as never });
  await next();
  expect([feed.current().alarms.map(({ id }) => id.id), feed.current().total]).toEqual([["b", "c"], 8]);
  answers[0]?.({ update: [alarm("b", { createdTime: 5, acknowledged: true })] });
  await next();
  expect(feed.current().alarms.map(({ acknowledged }) => acknowledged)).toEqual([true, false]);
});

test("the address keeps a filter, and without any there are active alarms", () => {
  expect(readFilter(new URLSearchParams())).toEqual({ ...NO_FILTER, states: ["ACTIVE"] });
  const filter = { ...NO_FILTER, states: [], severities: ["MAJOR"], types: ["a,b", "c"], originator: { entityType: "DEVICE", id: "7" }, propagated: true, window: 60_000 };
  expect(readFilter(new URLSearchParams(writeFilter(filter)))).toEqual(filter);
  expect(conditionsOf(filter)).toMatchObject({ severityList: ["MAJOR"], typeList: ["a,b", "c"], timeWindow: 60_000, searchPropagatedAlarms: true });
  expect(readFilter(new URLSearchParams("severity=%3Cb%3E&status=x")).severities).toEqual([]);
});

test("groups keep the order of their first alarms, and closed ones show their head alone", () => {
  const alarms = [alarm("1", { severity: "MINOR" }), alarm("2", { type: "Cold", severity: "CRITICAL" }), alarm("3")];
  expect(grouped(alarms, "type", new Set(["Hot"]))).toEqual([{ group: "Hot", label: "Hot", count: 2, open: false }, { group: "Cold", label: "Cold", count: 1, open: true }, { row: alarms[1] }]);
  expect(grouped(alarms, "severity", new Set()).flatMap((item) => ("group" in item ? item.group : []))).toEqual(["CRITICAL", "MAJOR", "MINOR"]);
  expect(grouped(alarms, undefined, new Set())).toHaveLength(3);
});

test("only alarms that were not there before are told of, and none at first", () => {
  expect(newAlarms(undefined, [alarm("1")])).toEqual([]);
  expect(newAlarms(withAlarms(undefined, [alarm("1")]), [alarm("2"), alarm("1")]).map(({ id }) => id.id)).toEqual(["2"]);
  // An old one that moves up into the list when another is cleared is none.
  const known = withAlarms(undefined, [{ ...alarm("1"), createdTime: 5 }, { ...alarm("2"), createdTime: 4 }]);
  expect(newAlarms(known, [{ ...alarm("2"), createdTime: 4 }, { ...alarm("0"), createdTime: 3 }])).toEqual([]);
  expect(atPath(alarm("1", { details: { t: { high: 3 } } }), "details.t.high")).toBe("3");
});
