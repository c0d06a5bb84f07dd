import { expect, test } from "vitest";
import { EntityPages } from "@/dashboard/entityPages";
import { readKey, readSource } from "@/dashboard/model";
import type { LiveCommand, LiveUpdate } from "@/live/protocol";
import { FunctionResults } from "@/sandbox/functions";
import { cleanStyle, isLocalAddress } from "@/ui/cleanStyle";
import { moments } from "./moments";
import { columnWidth, keySettings, readTable } from "./settings";

test("settings of tables have ThingsBoard's defaults, and nothing odd gets into a style", () => {
  expect(readTable({}, "entityName")).toMatchObject({ search: true, pagination: true, pageSize: 10, pageSizes: [10, 20, 30], order: "entityName", rowStyle: undefined });
  expect(readTable({ defaultPageSize: 5, pageStepIncrement: 50, pageStepCount: 2, useRowStyleFunction: true, rowStyleFunction: { body: "return {};" } }, "").pageSizes).toEqual([5, 50, 100]);
  expect([columnWidth("0px"), columnWidth("120"), columnWidth("20%"), columnWidth("calc(1px)"), columnWidth("1px;color:red")]).toEqual([undefined, "120px", "20%", undefined, undefined]);
  const key = keySettings(readKey({ name: "a", label: "A", settings: { customTitle: "T", disableSorting: true, defaultColumnVisibility: "hidden", useCellContentFunction: false, cellContentFunction: "x" } }));
  expect(key).toMatchObject({ title: "T", sortable: false, hidden: true, content: undefined });
});

test("styles that load something or leave their place are dropped", () => {
  expect(cleanStyle({ color: "red", "font-weight": 700, position: "fixed", background: "URL(//evil)", backgroundColor: "u\\72l(x)", zIndex: 9 })).toEqual({ color: "red", fontWeight: 700 });
  expect(cleanStyle("color: red")).toEqual({});
  expect(["https://evil/", "//evil/", "/\\evil/", "/\t/evil/", "\u0001//evil/", "java\nscript:alert(1)", "javascript:alert(1)", "data:text/html,x"].filter(isLocalAddress)).toEqual([]);
  expect(["data:image/png;base64,x", "/assets/a.png"].every(isLocalAddress)).toBe(true);
});

test("the moments of several keys are rows", () => {
  const points = new Map([["a", [{ ts: 1, value: "5" }, { ts: 2, value: "" }]], ["b", [{ ts: 1, value: "x" }]], ["c", [{ ts: 9, value: "1" }]]]);
  const entity = { id: { entityType: "DEVICE", id: "1" }, name: "D", latest: new Map(), points };
  const keys = ["a", "b"].map((name) => readKey({ name }));
  expect(moments(entity, keys, false).map(({ ts, values }) => [ts, Object.fromEntries(values)])).toEqual([[1, { a: "5", b: "x" }], [2, { a: "" }]]);
  expect(moments(entity, keys, true)).toHaveLength(1);
});

test("functions that many cells ask for run together, once for the same arguments", async () => {
  const asked: unknown[][][] = [];
  const runs: (() => void)[] = [];
  let done = (): void => undefined;
  const told = new Promise<void>((resolve) => (done = resolve));
  const results = new FunctionResults("{}", () => done(), async ({ calls }) => (asked.push(calls), calls.map(([value]) => ({ value }))), (run) => void runs.push(run));
  expect([1, 2, 1].map((value) => results.ask("return value;", ["value"], [value]))).toEqual([undefined, undefined, undefined]);
  expect(runs).toHaveLength(1);
  runs[0]?.();
  await told;
  expect(results.ask("return value;", ["value"], [2])).toEqual({ value: 2 });
  expect(asked).toEqual([[[1], [2]]]);
});

test("only pages in view are asked for, in the order of the server", async () => {
  const commands: LiveCommand[] = [];
  let answer = (_update: LiveUpdate & { data?: unknown }): void => undefined;
  let ended = 0;
  const source = readSource({ dataKeys: [{ name: "t", type: "timeseries" }] });
  const pages = new EntityPages(
    { request: { source, filter: { type: "entityType" }, keyFilters: [], window: undefined }, pageSize: 2, search: "x", order: { key: { type: "ENTITY_FIELD", key: "name" }, direction: "ASC" }, keyFilters: [] },
    (command, onUpdate) => {
      commands.push(typeof command === "function" ? command() : command);
      answer = onUpdate as typeof answer;
      return () => void ended++;
    },
  );
  const changed = new Promise<void>((resolve) => pages.watch(resolve));
  const entity = (id: string): object => ({ entityId: { entityType: "DEVICE", id }, latest: { ENTITY_FIELD: { name: { ts: 0, value: id } } } });
  answer({ cmdId: 1, data: { data: [entity("b"), entity("a")], totalElements: 9 } as never });
  await changed;
  expect([pages.total(), pages.rowAt(0)?.name, pages.rowAt(1)?.name, pages.rowAt(2)]).toEqual([9, "b", "a", undefined]);
  pages.want(2, 5);
  expect(commands.map(({ query }) => (query as { pageLink: { page: number; textSearch: string; dynamic: boolean } }).pageLink)).toMatchObject([{ page: 0, textSearch: "x", dynamic: true }, { page: 1 }, { page: 2 }]);
});
