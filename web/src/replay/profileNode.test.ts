import { expect, test, vi } from "vitest";
import { ApiError } from "@/api/errors";
import { chainsWithin, draftWithProfileNode, PROFILE_NODE, withProfileNode } from "./profileNode";

const chains = vi.hoisted(() => new Map<string, object>());
vi.mock("@/api/typed", () => ({
  ask: async (_: string, { path }: { path: { ruleChainId: string } }) => {
    const found = chains.get(path.ruleChainId);
    if (found === undefined) {
      throw new ApiError(404, "Requested item wasn't found!");
    }
    return Promise.resolve(found);
  },
}));

const INPUT = "org.thingsboard.rule.engine.flow.TbRuleChainInputNode";

test("a chain gets the node before its first one, and keeps all that it had", () => {
  const chain = { firstNodeIndex: 1, nodes: [{ type: "a", name: "A" }, { type: "b", name: "B" }], connections: [{ fromIndex: 1, toIndex: 0, type: "Success" }] };
  const draft = withProfileNode(chain);
  expect(draft.nodes.map(({ type }) => type)).toEqual(["a", "b", PROFILE_NODE]);
  expect(draft.firstNodeIndex).toBe(2);
  expect(draft.connections).toEqual([...chain.connections, { fromIndex: 2, toIndex: 1, type: "Success" }]);
  expect(withProfileNode({ nodes: [], connections: null }).connections).toEqual([]);
});

const input = (configuration: object) => ({ type: INPUT, name: "On", configuration });
/** A chain whose nodes lead from one to the next. */
const lined = (...nodes: { type: string; name: string; configuration?: object }[]) => ({ firstNodeIndex: 0, nodes, connections: nodes.slice(1).map((_, n) => ({ fromIndex: n, toIndex: n + 1, type: "Success" })) });
const evaluating = { type: PROFILE_NODE, name: "Device profile" };
const other = { type: "a", name: "A", configuration: { ruleChainId: "no" } };

test("the chains that a chain leads to are those of its input nodes that messages come to", () => {
  const chain = lined(input({ ruleChainId: "next" }), input({}), input({ ruleChainId: "" }), other, input({ ruleChainId: "other", forwardMsgToDefaultRuleChain: true }));
  expect(chainsWithin(chain)).toEqual(["next", "other"]);
  expect(chainsWithin(chain, "own")).toEqual(["next", "other", "own"]);
  expect(chainsWithin({ ...chain, connections: null })).toEqual(["next"]);
  expect(chainsWithin({ ...chain, firstNodeIndex: null })).toEqual([]);
});

test("a chain needs no draft if messages come to the node in it, or in one that it leads to", async () => {
  chains.set("direct", lined(other, evaluating));
  chains.set("beside", { ...lined(other, evaluating), connections: [] });
  chains.set("indirect", lined(input({ ruleChainId: "lost" }), input({ ruleChainId: "direct" })));
  chains.set("lost only", lined(input({ ruleChainId: "lost" })));
  chains.set("of profile", lined(input({ ruleChainId: "beside", forwardMsgToDefaultRuleChain: true })));
  const gets = async (id: string, ofProfile?: string): Promise<boolean> => (await draftWithProfileNode(id, ofProfile)) !== undefined;
  expect([await gets("direct"), await gets("beside"), await gets("indirect"), await gets("lost only")]).toEqual([false, true, false, true]);
  expect([await gets("of profile"), await gets("of profile", "direct")]).toEqual([true, false]);
  await expect(draftWithProfileNode("lost")).rejects.toThrow("Requested item");
});
