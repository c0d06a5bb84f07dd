import { expect, test } from "vitest";
import { liveCounts } from "./live";

const node = (input: number, output: Record<string, number>) => ({ id: { entityType: "RULE_NODE", id: "a" }, since: 0, input, output, failures: 1, timeMicros: 50, lastFailure: { ts: 1, error: "why" } });

test("counts grow by the second, and a node that began anew has no growth", () => {
  const first = { ts: 1_000, nodes: [node(10, { Success: 10, True: 1 })] };
  expect(liveCounts(first, undefined).nodes.get("a")).toEqual({ input: { total: 10, perSecond: 0 }, failures: 1, lastFailure: { ts: 1, error: "why" }, micros: 5 });
  const second = liveCounts({ ts: 3_000, nodes: [node(50, { Success: 30, False: 2 })] }, first);
  expect(second.nodes.get("a")?.input).toEqual({ total: 50, perSecond: 20 });
  expect(second.wires.get("a>success")).toEqual({ total: 30, perSecond: 10 });
  expect(second.wires.get("a>false")).toEqual({ total: 2, perSecond: 0 });
  expect(liveCounts({ ts: 3_000, nodes: [node(0, {})] }, first).nodes.get("a")).toMatchObject({ input: { total: 0, perSecond: 0 }, micros: undefined });
});
