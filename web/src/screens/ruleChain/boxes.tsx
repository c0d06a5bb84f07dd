// How nodes, the entry, frames and notes look on the canvas.

import { Handle, NodeResizer, Position, type Node, type NodeProps } from "@xyflow/react";
import type { ReactElement } from "react";
import { formatNumber, formatTime, plural, t } from "@/i18n";
import { setRemark } from "@/ruleChain/edits";
import type { ChainNode, Remark } from "@/ruleChain/model";
import { DebugSwitch } from "./DebugSwitch";
import { useEditor } from "./editor";
import type { LiveNode } from "./live";
import classes from "./ruleChain.module.css";

export type RuleBox = Node<{ node: ChainNode }, "rule">;
export type RemarkBox = Node<{ remark: Remark }, "remark">;

const compact = (n: number): string => formatNumber(n, { notation: "compact", maximumFractionDigits: 1 });

/** A number and how fast it grows, such as `1.2K · 35/s`. */
export function pace({ total, perSecond }: LiveNode["input"]): string {
  return perSecond > 0 ? t("{total} · {rate}/s", { total: compact(total), rate: compact(perSecond) }) : compact(total);
}

function LiveLine({ node: { input, failures, lastFailure, micros } }: { node: LiveNode }): ReactElement | null {
  if (input.total === 0 && failures === 0) {
    return null;
  }
  const took = micros === undefined || micros === 0 ? "" : t("{n} µs a message", { n: formatNumber(micros, { maximumSignificantDigits: 2 }) });
  return (
    <span className={classes["counts"]} data-live title={took}>
      {pace(input)}
      {failures > 0 && (
        <b title={lastFailure == null ? undefined : `${formatTime(lastFailure.ts)}: ${lastFailure.error}`}> · {plural(failures, "{n} error", "{n} errors")}</b>
      )}
    </span>
  );
}

export function RuleNodeBox({ data: { node } }: NodeProps<RuleBox>): ReactElement {
  const { classes: known, findings, marks, live } = useEditor();
  const component = known.get(node.stored.type);
  const definition = component?.configurationDescriptor.nodeDefinition;
  const found = findings.filter(({ node: key }) => key === node.key);
  const counts = marks.counts.get(node.key);
  const now = marks.counts.size === 0 ? live.nodes.get(node.stored.id?.id ?? "") : undefined;
  return (
    <div className={classes["node"]} data-category={component?.type ?? "UNKNOWN"} data-dim={marks.lit !== undefined && !marks.lit.has(node.key)} data-node-name={node.stored.name}>
      {definition?.inEnabled !== false && <Handle type="target" position={Position.Left} />}
      <span className={classes["kind"]}>
        <span>{component === undefined ? t("unknown type") : t(component.name)}</span>
        <DebugSwitch node={node} />
      </span>
      <span className={classes["name"]}>{node.stored.name}</span>
      {found.length > 0 && (
        <span className={classes["finding"]} data-level={found.some(({ level }) => level === "error") ? "error" : "warning"} title={found.map(({ text }) => t(text)).join("\n")}>
          !
        </span>
      )}
      {now !== undefined && <LiveLine node={now} />}
      {counts !== undefined && (
        <span className={classes["counts"]}>
          {t("in {in} · out {out}", { in: counts.in, out: counts.out })}
          {counts.errors > 0 && <b> · {plural(counts.errors, "{n} error", "{n} errors")}</b>}
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
