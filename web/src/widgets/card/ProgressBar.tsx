// A value between two limits, as a bar.

import type { ReactElement } from "react";
import { number, text } from "@/dashboard/json";
import { fontStyle } from "@/dashboard/look";
import type { WidgetProps } from "../registry";
import { shareOf, singleOf } from "../values";
import { useColor } from "../useColor";
import { chosen } from "../color";
import { fontOf, valueText } from "./parts";
import classes from "./card.module.css";

export default function ProgressBar({ widget, sources }: WidgetProps): ReactElement {
  const { settings } = widget;
  const single = singleOf(widget, sources);
  const low = number(settings["tickMin"]) ?? number(settings["minValue"]) ?? 0;
  const high = number(settings["tickMax"]) ?? number(settings["maxValue"]) ?? 100;
  const layout = settings["layout"] === "simplified" ? "simplified" : "default";
  const color = useColor(settings["barColor"], single.value, "#3F52DD");
  const valueColor = useColor(settings["valueColor"], single.value, "var(--mantine-color-text)");
  const ground = chosen(settings["barBackground"]);
  const label = text(settings["label"]) ?? single.label;
  const share = high > low ? shareOf(single.value, [low, high]) : 0;
  return (
    <div className={classes["progress"]}>
      <div className={classes["titleRow"]} data-layout={layout}>
        {(layout === "simplified" || !widget.showTitle || widget.title === "") && <span>{label}</span>}
        {settings["showValue"] !== false && (
          <div className={classes["value"]} style={{ ...fontStyle(fontOf(settings, "valueFont", 24, "500", "32px")), color: valueColor }} data-value>
            {valueText(single.point?.value, single.key ?? { units: undefined, decimals: undefined })}
          </div>
        )}
      </div>
      <div className={classes["bar"]} style={ground === undefined ? {} : { background: ground }} role="meter" aria-label={label} aria-valuemin={low} aria-valuemax={high} aria-valuenow={Number.isFinite(single.value) ? single.value : low}>
        <div style={{ width: `${share * 100}%`, background: color }} />
      </div>
      {settings["showTicks"] !== false && (
        <div className={classes["ticks"]} style={{ ...fontStyle(fontOf(settings, "ticksFont", 11, "400", "16px")), color: chosen(settings["ticksColor"]) ?? "var(--soft-text)" }}>
          <span>{low}</span>
          <span>{high}</span>
        </div>
      )}
    </div>
  );
}
