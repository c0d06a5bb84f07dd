// Joins what two people have changed in the same rule chain: node by node, wire by wire.

import { object, type Json } from "@/dashboard/json";
import { mergeParts, type Merge } from "@/editing/merge";
import type { ChainDocument, ChainNode, Remark, StoredNode, Wire } from "./model";

/** The settings of a node make sense only as a whole; its name and its place are parts of their own. */
const WHOLE = /^(nodes\/[^/]+\/(configuration|debugSettings)|wires\/.+|remarks\/[^/]+)$/;

const idOf = ({ stored }: ChainNode): string | undefined => stored.id?.id;

/** Remarks have no ids: they are the same if they say the same, or lie in the same place. */
function sameRemark(remark: Remark, others: readonly Remark[]): Remark | undefined {
  const alike = others.filter(({ kind }) => kind === remark.kind);
  const lies = (one: Remark): boolean => one.x === remark.x && one.y === remark.y && one.width === remark.width && one.height === remark.height;
  return alike.find((one) => one.text === remark.text && lies(one)) ?? alike.find((one) => one.text === remark.text) ?? alike.find(lies);
}

/** Returns a chain whose nodes and remarks have the keys that the same ones have in others. */
function withKeysOf(chain: ChainDocument, others: readonly ChainDocument[]): ChainDocument {
  const known = new Map(others.flatMap(({ nodes }) => nodes.flatMap((node) => (idOf(node) === undefined ? [] : [[idOf(node), node.key] as const]))));
  const keys = new Map(chain.nodes.map((node) => [node.key, known.get(idOf(node)) ?? node.key]));
  const key = (of: string): string => keys.get(of) ?? of;
  const left = others.flatMap(({ remarks }) => remarks).filter((one, at, all) => all.findIndex((other) => other.key === one.key) === at);
  return {
    nodes: chain.nodes.map((node) => ({ ...node, key: key(node.key) })),
    wires: chain.wires.map(({ from, to, label }) => ({ from: key(from), to: key(to), label })),
    first: chain.first === undefined ? undefined : key(chain.first),
    remarks: chain.remarks.map((remark) => {
      const same = sameRemark(remark, left);
      if (same === undefined) {
        return remark;
      }
      left.splice(left.indexOf(same), 1);
      return { ...remark, key: same.key };
    }),
  };
}

/** When a node was saved, and where, is no change of it. */
const OF_SERVER = ["createdTime", "ruleChainId"] as const;

const wiresOf = (wires: readonly Wire[]): Json => Object.fromEntries(wires.map((wire) => [`${wire.from}>${wire.to}>${wire.label}`, wire]));

function partsOf({ nodes, wires, first, remarks }: ChainDocument): Json {
  return {
    nodes: Object.fromEntries(nodes.map(({ key, stored }) => [key, Object.fromEntries(Object.entries(stored).filter(([name]) => !OF_SERVER.some((one) => one === name)))])),
    wires: wiresOf(wires),
    first,
    remarks: Object.fromEntries(remarks.map((remark) => [remark.key, remark])),
  };
}

/** Returns the keys of the nodes that the other has deleted and that are kept all the same, because they were changed here. */
function keptNodes(base: ChainDocument, mine: ChainDocument, theirs: ChainDocument, joined: Json): ReadonlySet<string> {
  const [began, there] = [new Set(base.nodes.map(({ key }) => key)), new Set(theirs.nodes.map(({ key }) => key))];
  return new Set(mine.nodes.map(({ key }) => key).filter((key) => began.has(key) && !there.has(key) && key in joined));
}

/** Merges two forms of a chain that began as the same one. */
export function mergeChains(base: ChainDocument, mine: ChainDocument, saved: ChainDocument): Merge<ChainDocument> {
  const theirs = withKeysOf(saved, [base, mine]);
  const { merged, conflicts } = mergeParts(partsOf(base), partsOf(mine), partsOf(theirs), WHOLE);
  const joined = object(merged["nodes"]);
  const kept = keptNodes(base, mine, theirs, joined);
  // A node that is kept is so as it was: with its wires, and as the first one, which went with it.
  const wires = { ...object(merged["wires"]), ...wiresOf(mine.wires.filter(({ from, to }) => kept.has(from) || kept.has(to))) };
  const first = merged["first"] ?? (mine.first !== undefined && kept.has(mine.first) ? mine.first : undefined);
  return {
    merged: {
      nodes: Object.entries(joined).map(([key, stored]) => ({ key, stored: stored as StoredNode })),
      // A wire to a node that the other has deleted leads nowhere.
      wires: (Object.values(wires) as Wire[]).filter(({ from, to }) => from in joined && to in joined),
      first: typeof first === "string" && first in joined ? first : undefined,
      remarks: Object.values(object(merged["remarks"])) as Remark[],
    },
    conflicts,
  };
}

/** Returns a chain as it can be saved onto another one: nodes that are gone there are made anew. */
export function onto(chain: ChainDocument, saved: ChainDocument): ChainDocument {
  const known = new Set(saved.nodes.map(idOf));
  return { ...chain, nodes: chain.nodes.map((node) => (idOf(node) === undefined || known.has(idOf(node)) ? node : { ...node, stored: { ...node.stored, id: null } })) };
}
