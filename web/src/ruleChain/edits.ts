// Changes of a chain. Each returns a new document, so that undoing is going back to the former one.

import { newKey, placed, placeOf, type ChainDocument, type ChainNode, type Remark, type StoredNode, type Wire } from "./model";

export function addNode(chain: ChainDocument, node: ChainNode): ChainDocument {
  return { ...chain, nodes: [...chain.nodes, node], first: chain.nodes.length === 0 ? node.key : chain.first };
}

export function changeNode(chain: ChainDocument, key: string, change: (stored: StoredNode) => StoredNode): ChainDocument {
  return { ...chain, nodes: chain.nodes.map((node) => (node.key === key ? { ...node, stored: change(node.stored) } : node)) };
}

export function move(chain: ChainDocument, places: ReadonlyMap<string, { x: number; y: number }>): ChainDocument {
  return {
    ...chain,
    nodes: chain.nodes.map((node) => {
      const to = places.get(node.key);
      return to === undefined ? node : placed(node, to.x, to.y);
    }),
    remarks: chain.remarks.map((remark) => ({ ...remark, ...places.get(remark.key) })),
  };
}

/** Sets all labels of the wires from one node to another; none takes them away. Labels that differ in case only are one. */
export function connect(chain: ChainDocument, from: string, to: string, labels: string[]): ChainDocument {
  const unique = labels.filter((label, at) => label.trim() !== "" && labels.findIndex((other) => other.toLowerCase() === label.toLowerCase()) === at);
  return {
    ...chain,
    wires: [...chain.wires.filter((wire) => wire.from !== from || wire.to !== to), ...unique.map((label) => ({ from, to, label }))],
  };
}

export function setFirst(chain: ChainDocument, first: string | undefined): ChainDocument {
  return { ...chain, first };
}

export function setRemark(chain: ChainDocument, remark: Remark): ChainDocument {
  const known = chain.remarks.some(({ key }) => key === remark.key);
  return { ...chain, remarks: known ? chain.remarks.map((one) => (one.key === remark.key ? remark : one)) : [...chain.remarks, remark] };
}

/** Takes nodes, remarks and wires away. With `reconnect`, what led to a node leads to where the node led. */
export function remove(chain: ChainDocument, keys: ReadonlySet<string>, wires: readonly [string, string][] = [], reconnect = false): ChainDocument {
  const kept: Wire[] = chain.wires.filter(({ from, to }) => !wires.some((wire) => wire[0] === from && wire[1] === to));
  let result = kept;
  let first = chain.first;
  for (const key of keys) {
    const targets = [...new Set(result.filter((wire) => wire.from === key).map(({ to }) => to))];
    const bridges = reconnect ? result.filter((wire) => wire.to === key).flatMap(({ from, label }) => targets.map((to) => ({ from, to, label }))) : [];
    result = [...result.filter(({ from, to }) => from !== key && to !== key), ...bridges].filter(
      (wire, at, all) => all.findIndex((other) => other.from === wire.from && other.to === wire.to && other.label === wire.label) === at,
    );
    first = first === key ? (reconnect ? targets[0] : undefined) : first;
  }
  return {
    ...chain,
    nodes: chain.nodes.filter(({ key }) => !keys.has(key)),
    remarks: chain.remarks.filter(({ key }) => !keys.has(key)),
    wires: result,
    first,
  };
}

/** A piece of a chain, for the clipboard and for other chains. */
export interface Piece {
  fieldlineRuleNodes: { nodes: StoredNode[]; connections: { from: number; to: number; type: string }[]; remarks: Omit<Remark, "key">[] };
}

export function cut(chain: ChainDocument, keys: ReadonlySet<string>): Piece {
  const nodes = chain.nodes.filter(({ key }) => keys.has(key));
  const at = (key: string): number => nodes.findIndex((node) => node.key === key);
  return {
    fieldlineRuleNodes: {
      nodes: nodes.map(({ stored: { id: _id, createdTime: _created, ruleChainId: _chain, externalId: _external, ...rest } }) => ({ ...rest, type: rest.type, name: rest.name })),
      connections: chain.wires.filter(({ from, to }) => at(from) >= 0 && at(to) >= 0).map(({ from, to, label }) => ({ from: at(from), to: at(to), type: label })),
      remarks: chain.remarks.filter(({ key }) => keys.has(key)).map(({ key: _key, ...remark }) => remark),
    },
  };
}

export function pieceOf(text: string): Piece | undefined {
  try {
    const piece = JSON.parse(text) as Piece;
    const { nodes, connections, remarks } = piece.fieldlineRuleNodes;
    const isPiece = Array.isArray(connections) && Array.isArray(remarks) && nodes.every((node) => typeof node.type === "string" && typeof node.name === "string");
    return isPiece ? piece : undefined;
  } catch {
    return undefined;
  }
}

/** Adds a piece, a little aside of where it was; returns the keys of what is new. */
export function paste(chain: ChainDocument, { fieldlineRuleNodes: piece }: Piece, aside = 40): { chain: ChainDocument; keys: string[] } {
  const nodes = piece.nodes.map((stored) => {
    const node = { key: newKey(), stored };
    const { x, y } = placeOf(node);
    return placed(node, x + aside, y + aside);
  });
  const wires = piece.connections.flatMap(({ from, to, type }) => {
    const [source, target] = [nodes[from], nodes[to]];
    return source === undefined || target === undefined ? [] : [{ from: source.key, to: target.key, label: type }];
  });
  const remarks = piece.remarks.map((remark) => ({ ...remark, key: newKey(), x: remark.x + aside, y: remark.y + aside }));
  return {
    chain: { ...chain, nodes: [...chain.nodes, ...nodes], wires: [...chain.wires, ...wires], remarks: [...chain.remarks, ...remarks] },
    keys: [...nodes, ...remarks].map(({ key }) => key),
  };
}

/** Returns all nodes from which messages come to a node, or to which they go from it. */
export function reach(chain: ChainDocument, start: string, way: "upstream" | "downstream"): Set<string> {
  const found = new Set([start]);
  for (const key of found) {
    for (const { from, to } of chain.wires) {
      const [here, next] = way === "downstream" ? [from, to] : [to, from];
      if (here === key) {
        found.add(next);
      }
    }
  }
  return found;
}
