// The debug of a node, on its box: which messages it keeps, for how many minutes yet, and the choice of others.

import { useEffect, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { changeNode } from "@/ruleChain/edits";
import type { ChainNode } from "@/ruleChain/model";
import { debugChoices, debugOf, debugSettings, minutesLeft } from "./debug";
import { useEditor } from "./editor";
import classes from "./ruleChain.module.css";

/** Minutes are counted down, and debug that has ended is told as ended. */
const EVERY_MS = 5_000;

/** Draws anew from time to time while something runs out. */
function useTicks(isRunning: boolean): void {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = isRunning ? setInterval(() => setTick((before) => before + 1), EVERY_MS) : undefined;
    return () => clearInterval(timer);
  }, [isRunning]);
}

/** A list of the browser's own: chains have hundreds of nodes. */
export function DebugSwitch({ node }: { node: ChainNode }): ReactElement {
  const { edit } = useEditor();
  const settings = node.stored["debugSettings"];
  const mode = debugOf(settings);
  const left = minutesLeft(settings);
  useTicks(left !== undefined);
  return (
    <select
      className={`nodrag ${classes["debug"] ?? ""}`}
      data-on={mode !== "off"}
      aria-label={t("Debug of {name}", { name: node.stored.name })}
      title={t("Debug: keep messages")}
      value={mode}
      onChange={(event) => {
        const chosen = debugSettings(event.currentTarget.value);
        if (chosen !== undefined) {
          edit((chain) => changeNode(chain, node.key, (stored) => ({ ...stored, debugSettings: chosen })));
        }
      }}
    >
      {debugChoices(mode, left === undefined ? t("all at present") : t("all, {n} min", { n: left })).map(({ value, label }) => (
        <option key={value} value={value}>
          {value === "off" ? t("no debug") : value === mode ? `● ${label}` : label}
        </option>
      ))}
    </select>
  );
}
