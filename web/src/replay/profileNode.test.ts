import { expect, test } from "vitest";
import { chainsWithin, PROFILE_NODE, withProfileNode } from "./profileNode";

const INPUT = "org.thingsboard.rule.engine.flow.TbRuleChainInputNode";

test("a chain gets the node before its first one, and keeps all that it had", () => {
  const chain = { firstNodeIndex: 1, nodes: [{ type: "a", name: "A" }, { type: "b", name: "B" }], connections: [{ fromIndex: 1, toIndex: 0, type: "Success" }] };
  const draft = withProfileNode(chain);
  expect(draft.nodes.map(({ type }) => type)).toEqual(["a", "b", PROFILE_NODE]);
  expect(draft.firstNodeIndex).toBe(2);
  expect(draft.connections).toEqual([...chain.connections, { fromIndex: 2, toIndex: 1, type: "Success" }]);
  expect(withProfileNode({ nodes: [], connections: null }).connections).toEqual([]);
});

test("the chains that a chain leads to are those of its input nodes", () => {
  expect(chainsWithin({ nodes: [{ type: INPUT, name: "On", configuration: { ruleChainId: "next" } }, { type: INPUT, name: "Nowhere", configuration: {} }, { type: "a", name: "A", configuration: { ruleChainId: "no" } }] })).toEqual(["next"]);
});
