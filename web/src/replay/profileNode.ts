// The alarm rules of device profiles are evaluated by a node of the rule chain. Where a chain has none, a replay of such rules gets one.

import { ask } from "@/api/typed";
import { valueAt } from "@/ui/form/values";
import { INPUT_NODE, type ChainMetadata } from "@/ruleChain/model";

export const PROFILE_NODE = "org.thingsboard.rule.engine.profile.TbDeviceProfileNode";
/** The most chains that are looked into for the node. */
const MOST_CHAINS = 20;

const hasNode = ({ nodes }: ChainMetadata): boolean => nodes.some(({ type }) => type === PROFILE_NODE);

/** Returns the chains that messages go on to. */
export function chainsWithin({ nodes }: ChainMetadata): string[] {
  return nodes.flatMap(({ type, configuration }): string[] => {
    const id = type === INPUT_NODE ? valueAt(configuration, "ruleChainId") : undefined;
    return typeof id === "string" ? [id] : [];
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

/** Returns a draft of a chain that evaluates alarm rules of profiles; nothing where the chain does so itself, or one that it leads to. */
export async function draftWithProfileNode(id: string): Promise<ChainMetadata | undefined> {
  const chain = await metadataOf(id);
  const seen = new Set([id]);
  const open = [chain];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (hasNode(one)) {
      return undefined;
    }
    for (const next of chainsWithin(one)) {
      if (!seen.has(next) && seen.size < MOST_CHAINS) {
        seen.add(next);
        open.push(await metadataOf(next));
      }
    }
  }
  return withProfileNode(chain);
}
