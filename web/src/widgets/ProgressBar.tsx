// A value between two limits, as a bar.

import type { ReactElement } from "react";
import { number } from "@/dashboard/model";
import { latestOf } from "@/dashboard/source";
import type { WidgetProps } from "./registry";
import { shownValue } from "./text";
import classes from "./widgets.module.css";

export default function ProgressBar({ widget, entities }: WidgetProps): ReactElement {
  const key = widget.datasources[0]?.dataKeys[0];
  const latest = key === undefined || entities[0] === undefined ? undefined : latestOf(entities[0], key);
  const low = number(widget.settings["tickMin"]) ?? number(widget.settings["minValue"]) ?? 0;
  const high = number(widget.settings["tickMax"]) ?? number(widget.settings["maxValue"]) ?? 100;
  const value = Number(latest?.value);
  const label = key?.label ?? "";
  return (
    <div className={classes["card"]}>
      <div className={classes["label"]}>{label}</div>
      <div className={classes["value"]} data-value>
        {latest === undefined || key === undefined ? "–" : shownValue(latest.value, key)}
      </div>
      <meter className={classes["meter"]} min={low} max={high} value={Number.isFinite(value) ? value : low} aria-label={label} />
      <div className={classes["ends"]}>
        <span>{low}</span>
        <span>{high}</span>
      </div>
    </div>
  );
}
