// Files of one chain, as the editor of ThingsBoard exports and imports them.

import { isRecord, type ChainMetadata, type Json } from "./model";

export interface ChainFile {
  ruleChain: Json;
  metadata: ChainMetadata;
}

/** Reads a file; ids of where it comes from are left out. */
export function readFile(text: string): ChainFile {
  const file = JSON.parse(text) as unknown;
  const [chain, metadata] = isRecord(file) ? [file["ruleChain"], file["metadata"]] : [];
  const nodes: unknown = isRecord(metadata) ? metadata["nodes"] : undefined;
  if (!isRecord(chain) || typeof chain["name"] !== "string" || !isRecord(metadata) || !Array.isArray(nodes)) {
    throw new Error("This file holds no rule chain.");
  }
  const { id: _id, tenantId: _tenant, createdTime: _created, firstRuleNodeId: _first, version: _version, root: _root, ...ruleChain } = chain;
  const { ruleChainId: _chain, version: _number, ...rest } = metadata;
  return { ruleChain, metadata: { ...rest, nodes: nodes.filter(isRecord).map(({ id: _node, ruleChainId: _of, ...node }) => node) } as ChainMetadata };
}

export function writeFile(chain: Json, metadata: ChainMetadata): string {
  const { id: _id, tenantId: _tenant, createdTime: _created, version: _version, externalId: _external, ...ruleChain } = chain;
  const { ruleChainId: _chain, version: _number, ...rest } = metadata;
  const nodes = metadata.nodes.map(({ id: _node, createdTime: _at, ruleChainId: _of, externalId: _other, ...node }) => node);
  return JSON.stringify({ ruleChain: { ...ruleChain, firstRuleNodeId: null, root: false }, metadata: { ...rest, nodes } }, null, 2);
}
