// The canvas: what React Flow shows of a chain, and what people do there.

import "@xyflow/react/dist/style.css";
import { useMantineColorScheme } from "@mantine/core";
import { applyNodeChanges, Background, Controls, MarkerType, MiniMap, ReactFlow, useReactFlow, type AriaLabelConfig, type Edge, type Node, type NodeChange } from "@xyflow/react";
import { useEffect, useMemo, useState, type DragEvent, type ReactElement } from "react";
import { t, useLanguage } from "@/i18n";
import { nodeOf } from "@/ruleChain/components";
import { addNode, move, reach, setFirst } from "@/ruleChain/edits";
import { carried } from "@/ruleChain/frames";
import { NODE } from "@/ruleChain/layout";
import { placeOf, type ChainDocument } from "@/ruleChain/model";
import { notify } from "@/ui/feedback";
import { rootScale } from "@/ui/rootScale";
import { EntryBox, pace, RemarkNodeBox, RuleNodeBox, type RemarkBox, type RuleBox } from "./boxes";
import { useEditor } from "./editor";
import type { LiveCounts } from "./live";
import classes from "./ruleChain.module.css";

const ENTRY = "entry";
const TYPES = { rule: RuleNodeBox, entry: EntryBox, remark: RemarkNodeBox };
/** What a dragged type of node is called in the browser. */
export const DRAGGED = "application/x-fieldline-node";

type Box = RuleBox | RemarkBox | Node<Record<string, never>, "entry">;

function boxesOf(chain: ChainDocument, selected: ReadonlySet<string>, before: Box[]): Box[] {
  const measured = new Map(before.map((box) => [box.id, box.measured]));
  const common = (id: string) => ({ id, selected: selected.has(id), ...(measured.get(id) === undefined ? {} : { measured: measured.get(id) ?? {} }) });
  const first = chain.nodes.find(({ key }) => key === chain.first);
  const at = first === undefined ? { x: 40, y: 150 } : placeOf(first);
  return [
    ...chain.remarks.map((remark): RemarkBox => ({
      ...common(remark.key),
      type: "remark",
      position: { x: remark.x, y: remark.y },
      data: { remark },
      zIndex: remark.kind === "frame" ? -1 : 0,
      style: { width: remark.width, height: remark.height },
      ariaLabel: remark.text,
    })),
    { ...common(ENTRY), type: "entry", position: { x: Math.min(at.x - 180, 40), y: at.y + 6 }, data: {}, draggable: false, selectable: false, focusable: false, deletable: false },
    ...chain.nodes.map((node): RuleBox => ({ ...common(node.key), type: "rule", position: placeOf(node), data: { node }, ariaLabel: node.stored.name })),
  ];
}

/** What wires say of themselves: the numbers of a replay or of debug events, where there are any, else what is counted now. */
function countsOf(chain: ChainDocument, marked: ReadonlyMap<string, number>, live: LiveCounts): ReadonlyMap<string, string> {
  if (marked.size > 0) {
    return new Map([...marked].map(([wire, count]) => [wire, String(count)]));
  }
  const ids = new Map(chain.nodes.map(({ key, stored }) => [key, stored.id?.id ?? ""]));
  const counts = new Map<string, string>();
  for (const { from, label } of chain.wires) {
    const count = live.wires.get(`${ids.get(from) ?? ""}>${label.toLowerCase()}`);
    if (count !== undefined && count.total > 0) {
      counts.set(`${from}>${label.toLowerCase()}`, pace(count));
    }
  }
  return counts;
}

function wiresOf(chain: ChainDocument, counts: ReadonlyMap<string, string>, chosen: { from: string; to: string } | undefined): Edge[] {
  const labels = new Map<string, string[]>();
  for (const { from, to, label } of chain.wires) {
    const id = `${from}>${to}`;
    const count = counts.get(`${from}>${label.toLowerCase()}`);
    labels.set(id, [...(labels.get(id) ?? []), count === undefined ? label : `${label} (${count})`]);
  }
  const edges = [...labels].map(([id, names]): Edge => {
    const [source = "", target = ""] = id.split(">");
    return {
      id,
      source,
      target,
      label: names.join(" / "),
      selected: chosen?.from === source && chosen.to === target,
      ariaLabel: names.join(" / "),
      markerEnd: { type: MarkerType.ArrowClosed },
      labelStyle: { fill: "var(--mantine-color-text)" },
      labelBgStyle: { fill: "var(--mantine-color-body)" },
      ...(names.every((name) => name.toLowerCase() === "failure") ? { style: { stroke: "#c9543e" } } : {}),
    };
  });
  return chain.first === undefined ? edges : [{ id: ENTRY, source: ENTRY, target: chain.first, selectable: false, focusable: false, markerEnd: { type: MarkerType.ArrowClosed }, ariaLabel: t("To the first node") }, ...edges];
}

/** Adds to what is moved what lies within the frames among it. A frame that is made larger moves, too, but carries nothing: that is no drag. */
function withCarried(chain: ChainDocument, changes: NodeChange<Box>[]): NodeChange<Box>[] {
  const drags = changes.flatMap((change) => (change.type === "position" && change.position !== undefined && change.dragging !== undefined ? [{ ...change, position: change.position }] : []));
  const [first] = drags;
  if (first === undefined) {
    return changes;
  }
  const moved = new Map(drags.map(({ id, position }) => [id, position]));
  const more = [...carried(chain, moved)].filter(([id]) => !moved.has(id));
  return [...changes, ...more.map(([id, position]): NodeChange<Box> => ({ type: "position", id, position, dragging: first.dragging === true }))];
}

/** What whoever hears the page is told of boxes, wires and buttons. Boxes are moved by the arrows; the editor deletes, and Ctrl+Z brings back. */
const spoken = (): Partial<AriaLabelConfig> => ({
  "node.a11yDescription.default": t("Enter or space selects a node. Arrows move it, Delete removes it, Escape gives it up."),
  "node.a11yDescription.keyboardDisabled": t("Enter or space selects a node. Arrows move it, Delete removes it, Escape gives it up."),
  "node.a11yDescription.ariaLiveMessage": ({ x, y }) => t("The node is at {x}, {y} now.", { x, y }),
  "edge.a11yDescription.default": t("Enter or space selects a connection. Delete removes it, Escape gives it up."),
  "controls.ariaLabel": t("Zoom"),
  "controls.zoomIn.ariaLabel": t("Nearer"),
  "controls.zoomOut.ariaLabel": t("Further away"),
  "controls.fitView.ariaLabel": t("The whole chain"),
  "handle.ariaLabel": t("End of a connection"),
});

interface CanvasProps {
  onWire: (from: string, to: string) => void;
  /** A wire was let go where nothing is. */
  onLetGo: (from: string, x: number, y: number) => void;
}

export function Canvas({ onWire, onLetGo }: CanvasProps): ReactElement {
  const { chain, edit, selected, select, classes: known, marks, wire, setWire, live } = useEditor();
  const flow = useReactFlow();
  const { colorScheme } = useMantineColorScheme();
  const language = useLanguage();
  // All boxes are drawn again when it is another object.
  const labels = useMemo(spoken, [language]);
  const [boxes, setBoxes] = useState<Box[]>(() => boxesOf(chain, selected, []));
  useEffect(() => setBoxes((before) => boxesOf(chain, selected, before)), [chain, selected]);
  const counts = useMemo(() => countsOf(chain, marks.wires, live), [chain, marks.wires, live]);
  const edges = useMemo(() => wiresOf(chain, counts, wire), [chain, counts, wire]);

  const changed = (given: NodeChange<Box>[]): void => {
    const changes = withCarried(chain, given);
    setBoxes((before) => applyNodeChanges(changes, before));
    const ended = changes.flatMap((change) => (change.type === "position" && change.dragging === false && change.position !== undefined ? [[change.id, change.position] as const] : []));
    if (ended.length > 0) {
      edit((now) => {
        const places = new Map(ended.filter(([id, { x, y }]) => {
          const node = now.nodes.find(({ key }) => key === id);
          const at = node === undefined ? now.remarks.find(({ key }) => key === id) : placeOf(node);
          return at !== undefined && (Math.round(at.x) !== Math.round(x) || Math.round(at.y) !== Math.round(y));
        }));
        return places.size === 0 ? now : move(now, places);
      });
    }
    const picks = changes.filter((change) => change.type === "select");
    if (picks.length > 0) {
      const next = new Set(selected);
      picks.forEach((pick) => (pick.selected ? next.add(pick.id) : next.delete(pick.id)));
      select(next);
      if (next.size > 0) {
        setWire(undefined);
      }
    }
  };
  const dropped = (event: DragEvent): void => {
    const component = known.get(event.dataTransfer.getData(DRAGGED));
    if (component !== undefined) {
      event.preventDefault();
      const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
      const node = nodeOf(component, at.x - NODE.width / 2, at.y - NODE.height / 2);
      edit((now) => addNode(now, node));
      select(new Set([node.key]));
    }
  };
  const link = (from: string, to: string): void => {
    if (from === ENTRY) {
      edit((now) => setFirst(now, to));
    } else if (from === to || reach(chain, to, "downstream").has(from)) {
      notify.error(new Error(t("That wire would close a circle, in which messages would go round without end.")));
    } else {
      onWire(from, to);
    }
  };
  return (
    <div className={classes["canvas"]} dir="ltr" onDragOver={(event) => event.preventDefault()} onDrop={dropped}>
      <ReactFlow<Box>
        nodes={boxes}
        edges={edges}
        nodeTypes={TYPES}
        colorMode={colorScheme === "auto" ? "system" : colorScheme}
        onNodesChange={changed}
        onEdgesChange={(changes) =>
          changes.forEach((change) => {
            const [from = "", to = ""] = change.type === "select" ? change.id.split(">") : [];
            if (change.type === "select" && to !== "") {
              setWire(change.selected ? { from, to } : undefined);
            }
          })
        }
        onConnect={({ source, target }) => link(source, target)}
        onConnectEnd={(event, { fromNode, fromHandle, toNode }) => {
          if (toNode === null && fromNode !== null && fromHandle?.type === "source" && fromNode.id !== ENTRY) {
            const { clientX, clientY } = "changedTouches" in event ? (event.changedTouches[0] ?? { clientX: 0, clientY: 0 }) : event;
            const { x, y } = flow.screenToFlowPosition({ x: clientX, y: clientY });
            onLetGo(fromNode.id, x, y);
          }
        }}
        onEdgeDoubleClick={(_event, { source, target }) => link(source, target)}
        deleteKeyCode={null}
        // A selected frame would come to lie above the nodes within it.
        elevateNodesOnSelect={false}
        selectionKeyCode="Shift"
        multiSelectionKeyCode={["Control", "Meta", "Shift"]}
        minZoom={0.1}
        fitView
        fitViewOptions={{ maxZoom: rootScale(), padding: 0.15 }}
        onlyRenderVisibleElements={chain.nodes.length > 200}
        proOptions={{ hideAttribution: true }}
        aria-label={t("Rule chain")}
        ariaLabelConfig={labels}
      >
        <Background gap={20} />
        <MiniMap pannable zoomable ariaLabel={t("Overview of the chain")} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}
