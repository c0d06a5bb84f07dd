// Places nodes from left to right, by the library that is loaded only for this.

import type { ChainDocument } from "./model";

export const NODE = { width: 200, height: 48 };

export async function arrange(chain: ChainDocument): Promise<Map<string, { x: number; y: number }>> {
  const { graphlib, layout } = await import("@dagrejs/dagre");
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 36, ranksep: 120, marginx: 200, marginy: 60 });
  graph.setDefaultEdgeLabel(() => ({}));
  chain.nodes.forEach(({ key }) => graph.setNode(key, { ...NODE }));
  chain.wires.forEach(({ from, to }) => graph.setEdge(from, to));
  layout(graph);
  return new Map(
    chain.nodes.map(({ key }) => {
      const { x = 0, y = 0 } = graph.node(key) as { x?: number; y?: number };
      return [key, { x: x - NODE.width / 2, y: y - NODE.height / 2 }];
    }),
  );
}
