import { expect, test } from "vitest";
import { addNode, connect, cut, move, paste, pieceOf, reach, remove } from "./edits";
import { readFile, writeFile } from "./file";
import { apply, begin, redo, undo } from "@/editing/history";
import { infoWith, readChain, writeChain, type ChainMetadata } from "./model";
import { validate } from "./validate";
import type { Component } from "./components";

const METADATA: ChainMetadata = {
  firstNodeIndex: 0,
  nodes: [
    { id: { entityType: "RULE_NODE", id: "a" }, type: "Known", name: "A", strange: { kept: 1 }, configuration: { x: 1, alien: [1] }, additionalInfo: { layoutX: 10, layoutY: 20, alien: true } },
    { id: { entityType: "RULE_NODE", id: "b" }, type: "Known", name: "B", configuration: {} },
    { id: { entityType: "RULE_NODE", id: "c" }, type: "Alien", name: "C", configuration: {} },
  ],
  connections: [{ fromIndex: 0, toIndex: 1, type: "True" }, { fromIndex: 1, toIndex: 2, type: "Success" }],
  alienField: 7,
};
const chain = readChain(METADATA, {});
const known = {
  clazz: "Known",
  configurationDescriptor: { nodeDefinition: { inEnabled: true, customRelations: false, relationTypes: ["True", "Success"], defaultConfiguration: {} } },
} as unknown as Component;
const COMPONENTS = new Map([["Known", known]]);

test("what is read is written again, with fields nobody knows", () => {
  const { nodes: _nodes, ...rest } = METADATA;
  expect(writeChain(chain, rest)).toEqual({ ...METADATA, ruleChainConnections: null });
  const moved = writeChain(move(chain, new Map([["a", { x: 1.4, y: 2 }]])), {});
  expect(moved.nodes[0]).toMatchObject({ strange: { kept: 1 }, additionalInfo: { layoutX: 1, layoutY: 2, alien: true } });
});

test("older connections to chains become nodes", () => {
  const old = readChain({ ...METADATA, ruleChainConnections: [{ fromIndex: 2, targetRuleChainId: { id: "other" }, type: "Failure" }] }, {});
  expect(old.nodes.at(-1)?.stored.configuration).toEqual({ ruleChainId: "other" });
  expect(old.wires.at(-1)).toMatchObject({ from: "c", label: "Failure" });
});

test("remarks are kept beside what else is in additionalInfo", () => {
  const info = infoWith({ description: "d" }, [{ key: "k", kind: "note", text: "Why", x: 1, y: 2, width: 3, height: 4 }]);
  expect(readChain(METADATA, info).remarks).toMatchObject([{ kind: "note", text: "Why", x: 1, width: 3 }]);
  expect(infoWith(info, [])).toEqual({ description: "d" });
});

test("a deleted node can be bridged", () => {
  expect(remove(chain, new Set(["b"]), [], true).wires).toEqual([{ from: "a", to: "c", label: "True" }]);
  expect(remove(chain, new Set(["a"]), [], true).first).toBe("b");
  expect(remove(chain, new Set(["b"])).wires).toEqual([]);
  expect(remove(chain, new Set(), [["a", "b"]]).wires).toHaveLength(1);
});

test("labels of a wire are a set, whatever their case", () => {
  expect(connect(chain, "a", "b", ["Failure", "failure", " ", "True"]).wires.filter(({ to }) => to === "b")).toHaveLength(2);
});

test("a piece goes through text into another chain with new keys and no ids", () => {
  const piece = pieceOf(JSON.stringify(cut(chain, new Set(["a", "b"]))));
  const pasted = paste({ nodes: [], wires: [], first: undefined, remarks: [] }, piece ?? cut(chain, new Set()));
  expect(pasted.chain.nodes.map(({ stored }) => [stored.name, stored.id])).toEqual([["A", undefined], ["B", undefined]]);
  expect(pasted.chain.wires).toEqual([{ from: pasted.keys[0], to: pasted.keys[1], label: "True" }]);
  expect(pieceOf('{"fieldlineRuleNodes":{"nodes":[{}]}}')).toBeUndefined();
  expect(pieceOf("plain text")).toBeUndefined();
});

test("at least fifty steps are undone and redone", () => {
  let history = begin(chain);
  for (let n = 0; n < 60; n++) {
    history = apply(history, addNode(history.present, { key: `n${n}`, stored: { type: "Known", name: `N${n}` } }));
  }
  const last = history.present;
  for (let n = 0; n < 60; n++) {
    history = undo(history);
  }
  expect(history.present).toBe(chain);
  for (let n = 0; n < 60; n++) {
    history = redo(history);
  }
  expect(history.present).toBe(last);
});

test("findings name what is unknown, unreached or circling", () => {
  const texts = (of: typeof chain): string[] => validate(of, COMPONENTS).map(({ node, level }) => `${node} ${level}`);
  expect(texts(chain)).toEqual(["c error"]);
  expect(texts(connect(chain, "b", "a", ["True"]))).toEqual(["a error", "b error", "c error"]);
  expect(texts(connect(chain, "a", "b", []))).toEqual(["b warning", "c error"]);
  expect(texts({ ...chain, first: undefined })[0]).toBe("undefined warning");
});

test("upstream and downstream", () => {
  expect([...reach(chain, "b", "upstream")]).toEqual(["b", "a"]);
  expect([...reach(chain, "b", "downstream")]).toEqual(["b", "c"]);
});

test("a file has no ids of where it comes from, and keeps the rest", () => {
  const file = readFile(writeFile({ id: { id: "x" }, version: 3, name: "Chain", alien: 1 }, { ...METADATA, version: 3 }));
  expect(file.ruleChain).toEqual({ name: "Chain", alien: 1 });
  expect(file.metadata).toMatchObject({ alienField: 7, connections: METADATA.connections });
  expect(file.metadata.nodes[0]).not.toHaveProperty("id");
  expect(() => readFile("[]")).toThrow("no rule chain");
});
