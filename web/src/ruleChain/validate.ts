// What is wrong or unfinished in a chain, before the server is asked.

import { definitionOf, type Component } from "./components";
import { INPUT_NODE, isRecord, type ChainDocument } from "./model";

export interface Finding {
  node?: string;
  /** An error keeps the server from saving the chain. */
  level: "error" | "warning";
  text: string;
}

/** Returns the nodes that lie on or between circles: what is left when nodes that nothing leads to are taken away. */
function circling({ nodes, wires }: ChainDocument): Set<string> {
  const left = new Set(nodes.map(({ key }) => key));
  for (let found = true; found; ) {
    const targets = new Set(wires.filter(({ from }) => left.has(from)).map(({ to }) => to));
    const free = [...left].filter((key) => !targets.has(key));
    free.forEach((key) => left.delete(key));
    found = free.length > 0;
  }
  for (let found = true; found; ) {
    const sources = new Set(wires.filter(({ to }) => left.has(to)).map(({ from }) => from));
    const free = [...left].filter((key) => !sources.has(key));
    free.forEach((key) => left.delete(key));
    found = free.length > 0;
  }
  return left;
}

export function validate(chain: ChainDocument, components: ReadonlyMap<string, Component>): Finding[] {
  const findings: Finding[] = [];
  const targets = new Set(chain.wires.map(({ to }) => to));
  const circle = circling(chain);
  if (chain.first === undefined && chain.nodes.length > 0) {
    findings.push({ level: "warning", text: "No node receives the messages that come to this chain." });
  }
  for (const { key, stored } of chain.nodes) {
    const definition = definitionOf(components.get(stored.type));
    const add = (level: Finding["level"], text: string): number => findings.push({ node: key, level, text });
    if (stored.name.trim() === "") {
      add("error", "The node has no name.");
    }
    if (definition === undefined) {
      add("error", "The server doesn't know this type of node.");
      continue;
    }
    if (definition.inEnabled && !targets.has(key) && chain.first !== key) {
      add("warning", "No message comes to this node.");
    }
    if (circle.has(key)) {
      add("error", "The node lies on a circle, which the server refuses.");
    }
    const { configuration } = stored;
    if (!isRecord(configuration) && isRecord(definition.defaultConfiguration)) {
      add("error", "The node has no configuration.");
    } else if (stored.type === INPUT_NODE && isRecord(configuration) && !configuration["ruleChainId"] && configuration["forwardMsgToDefaultRuleChain"] !== true) {
      add("error", "No rule chain is chosen.");
    }
    for (const { label } of chain.wires.filter(({ from }) => from === key)) {
      if (!definition.customRelations && !definition.relationTypes.some((known) => known.toLowerCase() === label.toLowerCase())) {
        add("warning", "A wire has a label that this node never uses.");
      }
    }
  }
  return findings;
}
