// Nodes of a tree of entities, and what functions of the dashboard say about them.

import { bodyOf } from "@/dashboard/actions";
import { object, text, type DataKey, type Datasource, type Json } from "@/dashboard/model";
import type { EntityValues, SourceRequest } from "@/dashboard/source";
import type { Ask } from "@/sandbox/functions";
import { formatted } from "../map/formatted";

export interface TreeNode {
  entity: EntityValues;
  parent: TreeNode | undefined;
  level: number;
}

/** The functions that the settings of a tree may have. */
export interface TreeFunctions {
  query: string | undefined;
  hasChildren: string | undefined;
  opened: string | undefined;
  disabled: string | undefined;
  icon: string | undefined;
  text: string | undefined;
  sort: string | undefined;
}

export function readFunctions(settings: Json): TreeFunctions {
  return {
    query: bodyOf(settings["nodeRelationQueryFunction"]),
    hasChildren: bodyOf(settings["nodeHasChildrenFunction"]),
    opened: bodyOf(settings["nodeOpenedFunction"]),
    disabled: bodyOf(settings["nodeDisabledFunction"]),
    icon: bodyOf(settings["nodeIconFunction"]),
    text: bodyOf(settings["nodeTextFunction"]),
    sort: bodyOf(settings["nodesSortFunction"]),
  };
}

/** Returns a node as functions know it. Parents are told without their own parents beyond the second. */
export function contextOf(node: TreeNode, keys: readonly DataKey[], childrenNodesLoaded: boolean, depth = 0): Json {
  const { entity } = node;
  const label = entity.latest.get("ENTITY_FIELD/label")?.value ?? "";
  return {
    parentNodeCtx: node.parent === undefined || depth > 1 ? null : contextOf(node.parent, keys, true, depth + 1),
    entity: { id: entity.id, name: entity.name, label },
    childrenNodesLoaded,
    level: node.level,
    data: formatted(entity, keys, undefined, 0),
  };
}

const NODE = ["nodeCtx"];

/** What a function says of a node; nothing as long as that is not known, or if there is no function. */
export function said(ask: Ask, body: string | undefined, context: Json): unknown {
  return body === undefined ? undefined : ask(body, NODE, [context])?.value;
}

/** Returns the filter of entities that a node's children are found by: what its function returns, or what it contains. */
export function childrenFilter(entity: EntityValues, made: unknown): Json {
  const query = object(made);
  const parameters = object(query["parameters"]);
  const filters = Array.isArray(query["filters"]) ? query["filters"] : [{ relationType: "Contains", entityTypes: [] }];
  return {
    type: "relationsQuery",
    rootEntity: { entityType: text(parameters["rootType"]) ?? entity.id.entityType, id: text(parameters["rootId"]) ?? entity.id.id },
    direction: parameters["direction"] === "TO" ? "TO" : "FROM",
    maxLevel: 1,
    fetchLastLevelOnly: false,
    filters,
  };
}

/** Returns what to ask for the children of a node. */
export function childrenRequest(source: Datasource, filter: Json): SourceRequest {
  return { source, filter, keyFilters: [], window: undefined };
}

/** A function that sorts is called for pairs, so the sandbox sorts, and returns the order. */
export function sortingBody(body: string): string {
  return `const compare = new Function("nodeCtx1", "nodeCtx2", ${JSON.stringify(body)}); return nodes.map((_, n) => n).sort((a, b) => Number(compare(nodes[a], nodes[b])) || 0);`;
}

/** Returns nodes in the order that a function made of their places; an odd order changes nothing. */
export function ordered<T>(nodes: readonly T[], order: unknown): readonly T[] {
  const places = Array.isArray(order) ? order.filter((n): n is number => Number.isInteger(n) && n >= 0 && n < nodes.length) : [];
  return new Set(places).size === nodes.length ? places.flatMap((n) => nodes[n] ?? []) : nodes;
}
