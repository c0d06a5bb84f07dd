// What differs between two forms of a rule chain.

import { diffOf, listParts, restOf, type Section, type SectionChange } from "@/editing/diff";
import { list, object, text, type Json } from "@/dashboard/json";

const nameOf = (node: Json): string => text(node["name"]) ?? text(node["type"]) ?? "";
/** A saved node has an id; a new one is told by what it is called. */
const keyOf = (node: Json): string => text(object(node["id"])["id"]) ?? `${text(node["type"]) ?? ""} ${nameOf(node)}`;

function nodeName(chain: Json, index: unknown): string {
  return nameOf(object(list(chain["nodes"])[Number(index)]));
}

function wires(chain: Json): Map<string, { name: string; value: unknown }> {
  return new Map(
    list(chain["connections"]).map((stored) => {
      const wire = object(stored);
      const name = `${nodeName(chain, wire["fromIndex"])} → ${nodeName(chain, wire["toIndex"])} (${text(wire["type"]) ?? ""})`;
      return [name, { name, value: name }];
    }),
  );
}

/** Where messages enter, by its name: the number of the node says nothing. */
function first(chain: Json): Map<string, { name: string; value: unknown }> {
  const name = nodeName(chain, chain["firstNodeIndex"] ?? -1);
  return new Map([["first", { name, value: name }]]);
}

const SECTIONS: readonly Section[] = [
  { title: "Nodes", parts: (chain) => listParts(list(chain["nodes"]).map((node) => without(object(node))), keyOf, nameOf) },
  { title: "Connections", parts: wires },
  { title: "Messages enter here", parts: first },
  { title: "Frames and notes", parts: (chain) => listParts(chain["remarks"], ({ kind, text: said }) => `${String(kind)} ${String(said)}`, ({ text: said }) => text(said) ?? "") },
  restOf("Settings", ["remarks", "nodes", "connections", "ruleChainConnections", "ruleChainId", "version", "firstNodeIndex"]),
];

/** When a node was saved is no change of it. */
function without({ createdTime: _created, ruleChainId: _chain, ...node }: Json): Json {
  return node;
}

/** Tells what differs between the metadata of a rule chain at two times, with its `remarks` where they are known. */
export function ruleChainDiff(before: unknown, after: unknown): SectionChange[] {
  return diffOf(object(before), object(after), SECTIONS);
}
