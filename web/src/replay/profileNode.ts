// The alarm rules of device profiles are evaluated by a node of the rule chain. Where a chain has none, a replay of such rules gets one.

import { ApiError } from "@/api/errors";
import { ask } from "@/api/typed";
import { valueAt } from "@/ui/form/values";
import { INPUT_NODE, type ChainMetadata, type StoredNode } from "@/ruleChain/model";

export const PROFILE_NODE = "org.thingsboard.rule.engine.profile.TbDeviceProfileNode";
/** The most chains that are looked into for the node. */
const MOST_CHAINS = 20;

/** Answers that say that a chain isn't there, or that what names it is no id. */
const NOT_THERE = [400, 404];

/** Returns the nodes that messages can come to. */
function reachedNodes({ nodes, connections, firstNodeIndex }: ChainMetadata): StoredNode[] {
  const reached = new Set<number>();
  const open = [firstNodeIndex ?? -1];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (nodes[at] !== undefined && !reached.has(at)) {
      reached.add(at);
      open.push(...(connections ?? []).filter(({ fromIndex }) => fromIndex === at).map(({ toIndex }) => toIndex));
    }
  }
  return nodes.filter((_, at) => reached.has(at));
}

/** Returns the chains that messages go on to; some go to the one of the profile, if it names one. */
export function chainsWithin(chain: ChainMetadata, ofProfile?: string): string[] {
  return reachedNodes(chain).flatMap(({ type, configuration }): string[] => {
    const ids = type === INPUT_NODE ? [valueAt(configuration, "ruleChainId"), valueAt(configuration, "forwardMsgToDefaultRuleChain") === true ? ofProfile : undefined] : [];
    return ids.filter((id) => typeof id === "string" && id !== "") as string[];
  });
}

/** Returns a chain with the node before its first one. */
export function withProfileNode(chain: ChainMetadata): ChainMetadata {
  const at = chain.nodes.length;
  const first = chain.firstNodeIndex ?? undefined;
  const node = { type: PROFILE_NODE, name: "Device profile", configuration: { persistAlarmRulesState: false, fetchAlarmRulesStateOnStart: false }, configurationVersion: 1, additionalInfo: { layoutX: 0, layoutY: 0 } };
  return { ...chain, nodes: [...chain.nodes, node], firstNodeIndex: at, connections: [...(chain.connections ?? []), ...(first === undefined ? [] : [{ fromIndex: at, toIndex: first, type: "Success" }])] };
}

async function metadataOf(id: string): Promise<ChainMetadata> {
  return (await ask("GET /api/ruleChain/{ruleChainId}/metadata", { path: { ruleChainId: id } })) as unknown as ChainMetadata;
}

/** Returns a chain that another one names; nothing where there is no such chain, so that no message comes to it. */
async function chainIfThere(id: string): Promise<ChainMetadata | undefined> {
  try {
    return await metadataOf(id);
  } catch (error) {
    if (error instanceof ApiError && NOT_THERE.includes(error.status)) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Returns a draft of a chain that evaluates alarm rules of profiles; nothing where the chain does so itself, or one that it leads to.
 * `ofProfile` is the chain that the profile names.
 */
export async function draftWithProfileNode(id: string, ofProfile?: string): Promise<ChainMetadata | undefined> {
  const chain = await metadataOf(id);
  const seen = new Set([id]);
  const open = [chain];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (reachedNodes(one).some(({ type }) => type === PROFILE_NODE)) {
      return undefined;
    }
    for (const next of chainsWithin(one, ofProfile)) {
      if (!seen.has(next) && seen.size < MOST_CHAINS) {
        seen.add(next);
        const found = await chainIfThere(next);
        open.push(...(found === undefined ? [] : [found]));
      }
    }
  }
  return withProfileNode(chain);
}
