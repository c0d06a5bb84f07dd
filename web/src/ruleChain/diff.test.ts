import { expect, test } from "vitest";
import { asNew } from "@/screens/ruleChain/ChainVersions";
import { ruleChainDiff } from "./diff";

const node = (id: string, name: string, limit: number) => ({ id: { entityType: "RULE_NODE", id }, type: "filter", name, configuration: { limit }, createdTime: limit });

test("a rule chain tells of nodes and connections by their names", () => {
  const before = { nodes: [node("1", "Hot", 20), node("2", "Save", 0)], connections: [{ fromIndex: 0, toIndex: 1, type: "True" }] };
  const after = { nodes: [node("2", "Save", 0), node("1", "Hot", 30), { type: "log", name: "Log" }], connections: [{ fromIndex: 1, toIndex: 0, type: "True" }, { fromIndex: 1, toIndex: 2, type: "False" }] };
  expect(ruleChainDiff(before, after)).toEqual([
    { title: "Nodes", parts: [{ kind: "changed", name: "Hot", fields: [{ path: "configuration › limit", before: "20", after: "30" }] }, { kind: "added", name: "Log", fields: [] }] },
    { title: "Connections", parts: [{ kind: "added", name: "Hot → Log (False)", fields: [] }] },
  ]);
  expect(ruleChainDiff(before, before)).toEqual([]);
});

test("a former version is saved onto the present one, and nodes that are gone come back as new ones", () => {
  const former = { nodes: [node("1", "Hot", 20), node("9", "Gone", 1)], version: 3 };
  const back = asNew(former, { nodes: [node("1", "Hot", 30)], version: 7, ruleChainId: { id: "c" } });
  expect(back).toMatchObject({ version: 7, ruleChainId: { id: "c" }, nodes: [{ id: { id: "1" }, configuration: { limit: 20 } }, { id: null, name: "Gone" }] });
});

test("where messages enter, and what is said of nodes, is told, too", () => {
  const chain = (firstNodeIndex: number | null, note: string) => ({ nodes: [node("1", "Hot", 20), node("2", "Save", 0)], firstNodeIndex, remarks: [{ kind: "note", text: note, x: 1, y: 2, width: 3, height: 4 }] });
  expect(ruleChainDiff(chain(0, "Why"), chain(1, "Because"))).toEqual([
    { title: "Messages enter here", parts: [{ kind: "changed", name: "Save", fields: [{ path: "·", before: "Hot", after: "Save" }] }] },
    { title: "Frames and notes", parts: [{ kind: "removed", name: "Why", fields: [] }, { kind: "added", name: "Because", fields: [] }] },
  ]);
  expect(ruleChainDiff(chain(null, "Why"), chain(null, "Why"))).toEqual([]);
});
