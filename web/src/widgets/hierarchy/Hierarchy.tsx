// A tree of entities by their relations. What is below a node is asked for when it is opened.

import { useEffect, useMemo, useState, type KeyboardEvent, type ReactElement } from "react";
import { actionsOf } from "@/dashboard/actions";
import { object, text, type Json } from "@/dashboard/model";
import type { EntityValues, SourceRequest } from "@/dashboard/source";
import { t } from "@/i18n";
import { useFunctions, type Ask } from "@/sandbox/functions";
import CleanHtml from "@/ui/cleaned";
import { isLocalAddress } from "@/ui/cleanStyle";
import { EmptyState, Waiting } from "@/ui/feedback";
import type { WidgetProps } from "../registry";
import { functionContext } from "../table/cells";
import { useEntityPages } from "../table/useEntityPages";
import { childrenFilter, childrenRequest, contextOf, ordered, readFunctions, said, sortingBody, type TreeFunctions, type TreeNode } from "./nodes";
import classes from "./hierarchy.module.css";

/** The most children of one node that are shown. */
const MOST = 500;
const ORDER = { key: { type: "ENTITY_FIELD", key: "name" }, direction: "ASC" as const };
/** Levels that are open at first. */
const OPEN_LEVELS = 2;

interface Tree {
  widget: string;
  functions: TreeFunctions;
  ask: Ask;
  chosen: string | undefined;
  choose: (node: TreeNode) => void;
}

function Level({ tree, request, parent, onCount }: { tree: Tree; request: SourceRequest; parent: TreeNode | undefined; onCount?: (count: number) => void }): ReactElement {
  const { total, problem, isLoaded, rowAt } = useEntityPages(tree.widget, [request], { pageSize: MOST, search: "", order: ORDER, keyFilters: [] });
  const shown = Math.min(total, MOST);
  useEffect(() => {
    if (isLoaded) {
      onCount?.(total);
    }
  }, [isLoaded, total, onCount]);
  if (problem !== undefined) {
    return <EmptyState>{t("The server refused this: {problem}", { problem })}</EmptyState>;
  }
  if (!isLoaded) {
    return <Waiting />;
  }
  const keys = request.source.dataKeys;
  const nodes = Array.from({ length: shown }, (_, n) => rowAt(n)).flatMap((entity): TreeNode[] => (entity === undefined ? [] : [{ entity, parent, level: (parent?.level ?? 0) + 1 }]));
  const { sort } = tree.functions;
  const order = sort === undefined || nodes.length < 2 ? undefined : tree.ask(sortingBody(sort), ["nodes"], [nodes.map((node) => contextOf(node, keys, false))])?.value;
  return (
    <ul className={classes["level"]} role="group">
      {ordered(nodes, order).map((node) => (
        <Node key={`${node.entity.id.entityType}/${node.entity.id.id}`} tree={tree} node={node} request={request} />
      ))}
      {total > MOST && <li role="none">{t("{n} more are not shown.", { n: total - MOST })}</li>}
    </ul>
  );
}

function Icon({ made }: { made: unknown }): ReactElement | null {
  const url = text(object(made)["iconUrl"]);
  return url !== undefined && isLocalAddress(url) ? <img src={url} alt="" width={18} height={18} /> : null;
}

/** Whether an entity is among those that lead to a node: relations may go in circles. */
function isAbove(node: TreeNode, entity: EntityValues): boolean {
  return node.parent !== undefined && (node.parent.entity.id.id === entity.id.id || isAbove(node.parent, entity));
}

function Node({ tree, node, request }: { tree: Tree; node: TreeNode; request: SourceRequest }): ReactElement {
  const { functions, ask } = tree;
  const { entity, level } = node;
  const [count, setCount] = useState<number>();
  const [chosen, setOpen] = useState<boolean>();
  const keys = request.source.dataKeys;
  const context = contextOf(node, keys, count !== undefined);
  const opened = said(ask, functions.opened, context);
  const isCircle = isAbove(node, entity);
  const isLeaf = isCircle || count === 0 || said(ask, functions.hasChildren, context) === false;
  const isOpen = !isLeaf && (chosen ?? (functions.opened === undefined ? level < OPEN_LEVELS : opened === true));
  const isDisabled = said(ask, functions.disabled, context) === true;
  const made = said(ask, functions.text, context);
  const query = said(ask, functions.query, context);
  // A query that is still being made is not guessed.
  const isAsked = functions.query === undefined || query !== undefined;
  const filter = JSON.stringify(childrenFilter(entity, query));
  const below = useMemo(() => childrenRequest(request.source, JSON.parse(filter) as Json), [request.source, filter]);
  const keysDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    if (event.target !== event.currentTarget) {
      return;
    }
    const items = [...(event.currentTarget.closest("[role=tree]")?.querySelectorAll<HTMLElement>("[role=treeitem]") ?? [])];
    const at = items.indexOf(event.currentTarget);
    const moves: Record<string, () => void> = {
      ArrowDown: () => items[at + 1]?.focus(),
      ArrowUp: () => items[at - 1]?.focus(),
      ArrowRight: () => (isOpen || isLeaf ? items[at + 1]?.focus() : setOpen(true)),
      ArrowLeft: () => (isOpen ? setOpen(false) : event.currentTarget.closest("ul")?.parentElement?.querySelector<HTMLElement>(":scope > [role=treeitem]")?.focus()),
      Enter: () => !isDisabled && tree.choose(node),
      " ": () => !isDisabled && tree.choose(node),
    };
    const move = moves[event.key];
    if (move !== undefined) {
      event.preventDefault();
      move();
    }
  };
  return (
    <li role="none">
      <div
        role="treeitem"
        aria-level={level}
        aria-expanded={isLeaf ? undefined : isOpen}
        aria-selected={tree.chosen === entity.id.id}
        aria-disabled={isDisabled}
        tabIndex={level === 1 || tree.chosen === entity.id.id ? 0 : -1}
        className={classes["row"]}
        data-chosen={tree.chosen === entity.id.id}
        onKeyDown={keysDown}
      >
        <span aria-hidden className={classes["arrow"]} style={{ visibility: isLeaf ? "hidden" : "visible" }} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "▾" : "▸"}
        </span>
        <Icon made={said(ask, functions.icon, context)} />
        <span className={classes["text"]} data-disabled={isDisabled} onClick={() => !isDisabled && tree.choose(node)}>
          {typeof made === "string" && /[<&]/.test(made) ? <CleanHtml html={made} /> : typeof made === "string" && made !== "" ? made : entity.name}
          {isCircle && ` (${t("already above")})`}
        </span>
      </div>
      {isOpen && isAsked && <Level tree={tree} request={below} parent={node} onCount={setCount} />}
    </li>
  );
}

export default function Hierarchy(props: WidgetProps): ReactElement {
  const { widget, requests, act } = props;
  const { ask } = useFunctions(useMemo(() => functionContext(widget), [widget]));
  const functions = useMemo(() => readFunctions(widget.settings), [widget]);
  const [chosen, setChosen] = useState<string>();
  const roots = requests.filter((request) => request !== undefined);
  if (roots.length === 0) {
    return <EmptyState>{t("No entity is chosen for this.")}</EmptyState>;
  }
  const tree: Tree = {
    widget: widget.id,
    functions,
    ask,
    chosen,
    choose: (node) => {
      setChosen(node.entity.id.id);
      if (actionsOf(widget.config, "nodeSelected").length > 0) {
        act("nodeSelected", node.entity, undefined, contextOf(node, roots[0]?.source.dataKeys ?? [], true));
      }
    },
  };
  return (
    <div role="tree" aria-label={widget.title || t("Entities")} className={classes["tree"]}>
      {roots.map((request, n) => (
        <Level key={n} tree={tree} request={request} parent={undefined} />
      ))}
    </div>
  );
}
