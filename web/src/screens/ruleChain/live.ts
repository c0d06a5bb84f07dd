// What the nodes of a chain have done, asked for again and again while the page is seen.

import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import type { RuleChainCounts, RuleNodeCount } from "@/api/schema.gen";
import { ask } from "@/api/typed";

const EVERY_MS = 2_000;

/** A number since the chain was loaded, and how fast it grows now. */
export interface LiveCount {
  total: number;
  perSecond: number;
}

export interface LiveNode {
  input: LiveCount;
  failures: number;
  lastFailure: RuleNodeCount["lastFailure"];
  /** Mean time of a message in the node, microseconds; `undefined` before the first. */
  micros: number | undefined;
}

export interface LiveCounts {
  nodes: ReadonlyMap<string, LiveNode>;
  /** By `from>label`, the label in lower case. */
  wires: ReadonlyMap<string, LiveCount>;
}

export const NO_COUNTS: LiveCounts = { nodes: new Map(), wires: new Map() };

/** Counts with their growth since an earlier answer. Where a node has begun anew meanwhile, nothing is said of growth. */
export function liveCounts(now: RuleChainCounts, before: RuleChainCounts | undefined): LiveCounts {
  const seconds = before === undefined ? 0 : (now.ts - before.ts) / 1000;
  const earlier = new Map(before?.nodes.map((node) => [node.id.id, node]));
  const grown = (total: number, was: number | undefined): LiveCount => ({
    total,
    perSecond: was === undefined || seconds <= 0 ? 0 : Math.max(0, (total - was) / seconds),
  });
  const nodes = new Map<string, LiveNode>();
  const wires = new Map<string, LiveCount>();
  for (const node of now.nodes) {
    const id = node.id.id;
    const was = earlier.get(id);
    nodes.set(id, {
      input: grown(node.input, was?.input),
      failures: node.failures,
      lastFailure: node.lastFailure,
      micros: node.input === 0 ? undefined : node.timeMicros / node.input,
    });
    for (const [label, total] of Object.entries(node.output)) {
      wires.set(`${id}>${label.toLowerCase()}`, grown(total, was?.output[label]));
    }
  }
  return { nodes, wires };
}

/** The counts of a saved chain. */
export function useLiveCounts(id: string): LiveCounts {
  const { data } = useQuery({
    queryKey: ["rule chain counters", id],
    queryFn: () => ask("GET /api/ruleChain/{ruleChainId}/counters", { path: { ruleChainId: id } }),
    refetchInterval: EVERY_MS,
    gcTime: 0,
    // Counters are beside the point: without them the chain is edited all the same.
    retry: false,
  });
  const answers = useRef<{ now?: RuleChainCounts; before?: RuleChainCounts }>({});
  return useMemo(() => {
    if (data === undefined) {
      return NO_COUNTS;
    }
    const { now } = answers.current;
    if (now !== data) {
      answers.current = { now: data, ...(now === undefined ? {} : { before: now }) };
    }
    return liveCounts(data, answers.current.before);
  }, [data]);
}
