// How nodes, the entry, frames and notes look on the canvas.

import { Handle, NodeResizer, Position, type Node, type NodeProps } from "@xyflow/react";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { setRemark } from "@/ruleChain/edits";
import { isRecord, type ChainNode, type Remark } from "@/ruleChain/model";
import { useEditor } from "./editor";
import classes from "./ruleChain.module.css";

export type RuleBox = Node<{ node: ChainNode }, "rule">;
export type RemarkBox = Node<{ remark: Remark }, "remark">;

/** Whether a node stores all or failed messages as debug events at present. */
export function debugOf(settings: unknown, now = Date.now()): "all" | "failures" | "off" {
  const { allEnabled, allEnabledUntil, failuresEnabled } = isRecord(settings) ? settings : {};
  return allEnabled === true || Number(allEnabledUntil ?? 0) > now ? "all" : failuresEnabled === true ? "failures" : "off";
}

export function RuleNodeBox({ data: { node } }: NodeProps<RuleBox>): ReactElement {
  const { classes: known, findings, marks } = useEditor();
  const component = known.get(node.stored.type);
  const definition = component?.configurationDescriptor.nodeDefinition;
  const found = findings.filter(({ node: key }) => key === node.key);
  const counts = marks.counts.get(node.key);
  const debug = debugOf(node.stored["debugSettings"]);
  return (
    <div className={classes["node"]} data-category={component?.type ?? "UNKNOWN"} data-dim={marks.lit !== undefined && !marks.lit.has(node.key)} data-node-name={node.stored.name}>
      {definition?.inEnabled !== false && <Handle type="target" position={Position.Left} />}
      <span className={classes["kind"]}>
        {component?.name ?? t("unknown type")}
        {debug !== "off" && <b title={t("Debug is on")}> ● {t(debug === "all" ? "debug" : "failures")}</b>}
      </span>
      <span className={classes["name"]}>{node.stored.name}</span>
      {found.length > 0 && (
        <span className={classes["finding"]} data-level={found.some(({ level }) => level === "error") ? "error" : "warning"} title={found.map(({ text }) => t(text)).join("\n")}>
          !
        </span>
      )}
      {counts !== undefined && (
        <span className={classes["counts"]}>
          {t("in {in} · out {out}", { in: counts.in, out: counts.out })}
          {counts.errors > 0 && <b> · {t("{n} errors", { n: counts.errors })}</b>}
        </span>
      )}
      {definition?.outEnabled !== false && <Handle type="source" position={Position.Right} />}
    </div>
  );
}

export function EntryBox(): ReactElement {
  return (
    <div className={classes["entry"]}>
      {t("Messages")}
      <Handle type="source" position={Position.Right} />
    </div>
  );
}

export function RemarkNodeBox({ data: { remark }, selected }: NodeProps<RemarkBox>): ReactElement {
  const { edit } = useEditor();
  return (
    <div className={classes[remark.kind]}>
      <NodeResizer
        isVisible={selected}
        minWidth={100}
        minHeight={50}
        onResizeEnd={(_event, { x, y, width, height }) => edit((chain) => setRemark(chain, { ...remark, x, y, width, height }))}
      />
      <textarea
        className="nodrag"
        aria-label={t(remark.kind === "frame" ? "Title of the frame" : "Note")}
        defaultValue={remark.text}
        key={remark.text}
        rows={remark.kind === "frame" ? 1 : 4}
        onBlur={(event) => {
          const text = event.currentTarget.value;
          if (text !== remark.text) {
            edit((chain) => setRemark(chain, { ...remark, text }));
          }
        }}
      />
    </div>
  );
}
