import { expect, test } from "vitest";
import { addNode, changeNode, connect, move, remove, setRemark } from "./edits";
import { mergeChains, onto } from "./merge";
import { infoWith, readChain, type ChainDocument, type ChainMetadata } from "./model";

const stored = (id: string, createdTime = 1) => ({ id: { entityType: "RULE_NODE", id }, createdTime, type: "Known", name: id.toUpperCase(), configuration: { limit: 1, unit: "°C" }, additionalInfo: { layoutX: 0, layoutY: 0 } });
const METADATA: ChainMetadata = { firstNodeIndex: 0, nodes: [stored("a"), stored("b"), stored("c")], connections: [{ fromIndex: 0, toIndex: 1, type: "Success" }, { fromIndex: 1, toIndex: 2, type: "Success" }] };
const INFO = infoWith({}, [{ key: "k", kind: "note", text: "Why", x: 1, y: 2, width: 3, height: 4 }]);
const base = readChain(METADATA, INFO);
/** What another browser reads: keys of remarks differ, and the server has touched what it saved. */
const read = (): ChainDocument => readChain({ ...METADATA, nodes: METADATA.nodes.map((node) => ({ ...node, createdTime: 2 })) }, INFO);
const configured = (chain: ChainDocument, key: string, limit: number): ChainDocument => changeNode(chain, key, (node) => ({ ...node, configuration: { limit, unit: "°C" } }));
const configurationOf = (chain: ChainDocument, key: string): unknown => chain.nodes.find((node) => node.key === key)?.stored.configuration;

test("nodes that different people have added and changed are all kept", () => {
  const mine = connect(addNode(configured(base, "a", 5), { key: "new-1", stored: { type: "Known", name: "Mine" } }), "a", "new-1", ["Failure"]);
  const theirs = connect(addNode(configured(read(), "b", 7), { key: "d", stored: stored("d") }), "c", "d", ["Success"]);
  const { merged, conflicts } = mergeChains(base, mine, theirs);
  expect(conflicts).toEqual([]);
  expect(merged.nodes.map(({ key }) => key).sort()).toEqual(["a", "b", "c", "d", "new-1"]);
  expect([configurationOf(merged, "a"), configurationOf(merged, "b")]).toEqual([{ limit: 5, unit: "°C" }, { limit: 7, unit: "°C" }]);
  expect(merged.wires.map(({ from, to, label }) => `${from}>${to} ${label}`).sort()).toEqual(["a>b Success", "a>new-1 Failure", "b>c Success", "c>d Success"]);
  expect(merged.first).toBe("a");
  expect(merged.remarks).toEqual(base.remarks);
});

test("one node may be moved by one and set by the other; what both have set is a conflict, and mine is taken", () => {
  const moved = mergeChains(base, move(base, new Map([["a", { x: 9, y: 9 }]])), configured(read(), "a", 7));
  expect(moved.conflicts).toEqual([]);
  expect(moved.merged.nodes[0]?.stored).toMatchObject({ configuration: { limit: 7 }, additionalInfo: { layoutX: 9 } });
  const both = mergeChains(base, configured(base, "a", 5), configured(read(), "a", 7));
  expect(both.conflicts).toEqual(["nodes/a/configuration"]);
  expect(configurationOf(both.merged, "a")).toEqual({ limit: 5, unit: "°C" });
});

test("what one has deleted is gone with its wires, unless the other has changed it", () => {
  const gone = mergeChains(base, connect(base, "a", "c", ["True"]), remove(read(), new Set(["b"])));
  expect(gone.merged.nodes.map(({ key }) => key)).toEqual(["a", "c"]);
  expect(gone.merged.wires).toEqual([{ from: "a", to: "c", label: "True" }]);
  const changed = mergeChains(base, configured(base, "b", 5), remove(read(), new Set(["b"])));
  expect(changed.conflicts).toEqual(["nodes/b"]);
  expect(onto(changed.merged, remove(read(), new Set(["b"]))).nodes.map(({ stored: { id } }) => id?.id ?? null)).toEqual(["a", "c", null]);
});

test("a node that is kept although the other has deleted it keeps its wires, and stays the first one", () => {
  const { merged, conflicts } = mergeChains(base, configured(base, "b", 5), remove(read(), new Set(["b", "c"])));
  expect(conflicts).toEqual(["nodes/b"]);
  expect(merged.wires).toEqual([{ from: "a", to: "b", label: "Success" }]);
  const ofFirst = mergeChains(base, configured(base, "a", 5), remove(read(), new Set(["a"])));
  expect([ofFirst.merged.first, ofFirst.merged.wires.map(({ from, to }) => `${from}>${to}`).sort()]).toEqual(["a", ["a>b", "b>c"]]);
  // Another first node that was chosen there stays so.
  const other = { ...remove(read(), new Set(["a"])), first: "c" };
  expect(mergeChains(base, configured(base, "a", 5), other).merged.first).toBe("c");
});

test("a node that was saved while it was edited keeps its key, and a changed note is one note", () => {
  const saved = { ...base, nodes: [{ key: "new-1", stored: stored("a") }, ...base.nodes.slice(1)], first: "new-1", wires: [{ from: "new-1", to: "b", label: "Success" }, ...base.wires.slice(1)] };
  const theirs = configured(read(), "a", 7);
  const note = theirs.remarks[0];
  const { merged, conflicts } = mergeChains(saved, saved, note === undefined ? theirs : setRemark(theirs, { ...note, text: "Because" }));
  expect(conflicts).toEqual([]);
  expect(configurationOf(merged, "new-1")).toEqual({ limit: 7, unit: "°C" });
  expect(merged.remarks.map(({ key, text }) => [key, text])).toEqual([[base.remarks[0]?.key, "Because"]]);
});
