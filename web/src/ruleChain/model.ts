// A rule chain as it is edited: nodes with keys that stay, wires between keys. What this program doesn't know is kept.

export type Json = Record<string, unknown>;

/** A node as the server and exported files have it; fields beyond these are kept as they are. */
export interface StoredNode extends Json {
  id?: { entityType: string; id: string } | null;
  type: string;
  name: string;
  configuration?: unknown;
  additionalInfo?: Json | null;
}

export interface ChainNode {
  /** Names the node while it is edited; the id of a saved one. */
  key: string;
  stored: StoredNode;
}

export interface Wire {
  from: string;
  to: string;
  label: string;
}

/** A frame around nodes or a note: for people, without meaning for messages. */
export interface Remark {
  key: string;
  kind: "frame" | "note";
  text: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface ChainDocument {
  nodes: ChainNode[];
  wires: Wire[];
  /** Where messages enter. */
  first: string | undefined;
  remarks: Remark[];
}

/** Nodes and connections as `/api/ruleChain/metadata` and exported files have them. */
export interface ChainMetadata extends Json {
  firstNodeIndex?: number | null;
  nodes: StoredNode[];
  connections?: { fromIndex: number; toIndex: number; type: string }[] | null;
  ruleChainConnections?: { fromIndex: number; targetRuleChainId: { id: string }; type: string; additionalInfo?: Json | null }[] | null;
}

export const INPUT_NODE = "org.thingsboard.rule.engine.flow.TbRuleChainInputNode";

/** Where the remarks are kept in the chain's `additionalInfo`: other programs don't look there. */
const REMARKS = "fieldlineRemarks";

let made = 0;
export const newKey = (): string => `new-${Date.now().toString(36)}-${(made++).toString(36)}`;

export function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

export function placeOf({ stored }: ChainNode): { x: number; y: number } {
  return { x: numberOf(stored.additionalInfo?.["layoutX"], 0), y: numberOf(stored.additionalInfo?.["layoutY"], 0) };
}

export function placed(node: ChainNode, x: number, y: number): ChainNode {
  return { ...node, stored: { ...node.stored, additionalInfo: { ...node.stored.additionalInfo, layoutX: Math.round(x), layoutY: Math.round(y) } } };
}

function remarksOf(info: unknown): Remark[] {
  const list = isRecord(info) ? info[REMARKS] : undefined;
  return (Array.isArray(list) ? list : []).filter(isRecord).map((one) => ({
    key: newKey(),
    kind: one["kind"] === "frame" ? "frame" : "note",
    text: String(one["text"] ?? ""),
    x: numberOf(one["x"], 0),
    y: numberOf(one["y"], 0),
    width: numberOf(one["width"], 240),
    height: numberOf(one["height"], 120),
  }));
}

export function infoWith(info: unknown, remarks: Remark[]): Json {
  const { [REMARKS]: _former, ...rest } = isRecord(info) ? info : {};
  return remarks.length === 0 ? rest : { ...rest, [REMARKS]: remarks.map(({ key: _key, ...remark }) => remark) };
}

/** Reads nodes and connections. The older form of connections to other chains becomes nodes, as the server does it. */
export function readChain(metadata: ChainMetadata, additionalInfo: unknown): ChainDocument {
  const nodes = metadata.nodes.map((stored): ChainNode => ({ key: stored.id?.id ?? newKey(), stored }));
  const key = (at: number): string | undefined => nodes[at]?.key;
  const wires: Wire[] = [];
  for (const { fromIndex, toIndex, type } of metadata.connections ?? []) {
    const [from, to] = [key(fromIndex), key(toIndex)];
    if (from !== undefined && to !== undefined) {
      wires.push({ from, to, label: type });
    }
  }
  for (const { fromIndex, targetRuleChainId, type, additionalInfo: info } of metadata.ruleChainConnections ?? []) {
    const from = key(fromIndex);
    const node: ChainNode = {
      key: newKey(),
      stored: { type: INPUT_NODE, name: "Rule chain", configuration: { ruleChainId: targetRuleChainId.id }, additionalInfo: info ?? null },
    };
    nodes.push(node);
    if (from !== undefined) {
      wires.push({ from, to: node.key, label: type });
    }
  }
  return { nodes, wires, first: key(metadata.firstNodeIndex ?? -1), remarks: remarksOf(additionalInfo) };
}

/** Returns what is sent to the server; `rest` are the fields of the metadata that are not edited here. */
export function writeChain(chain: ChainDocument, rest: Json): ChainMetadata {
  const index = new Map(chain.nodes.map((node, at) => [node.key, at]));
  return {
    ...rest,
    firstNodeIndex: index.get(chain.first ?? "") ?? null,
    nodes: chain.nodes.map(({ stored }) => stored),
    connections: chain.wires.flatMap(({ from, to, label }) => {
      const [fromIndex, toIndex] = [index.get(from), index.get(to)];
      return fromIndex === undefined || toIndex === undefined ? [] : [{ fromIndex, toIndex, type: label }];
    }),
    ruleChainConnections: null,
  };
}
