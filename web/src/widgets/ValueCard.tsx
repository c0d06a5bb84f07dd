// One big value with its name and age.

import type { CSSProperties, ReactElement } from "react";
import { latestOf } from "@/dashboard/source";
import { t } from "@/i18n";
import { Ago } from "@/ui/feedback";
import type { WidgetProps } from "./registry";
import { shownValue } from "./text";
import classes from "./widgets.module.css";

const CARD: CSSProperties = { containerType: "size" };

export default function ValueCard({ widget, entities }: WidgetProps): ReactElement {
  const key = widget.datasources[0]?.dataKeys[0];
  const latest = key === undefined || entities[0] === undefined ? undefined : latestOf(entities[0], key);
  const own = { units: widget.config["units"], decimals: widget.config["decimals"] };
  const style = {
    units: key?.units ?? (typeof own.units === "string" && own.units !== "" ? own.units : undefined),
    decimals: key?.decimals ?? (typeof own.decimals === "number" ? own.decimals : undefined),
  };
  const { showLabel, label, showDate } = widget.settings;
  return (
    <div className={classes["card"]} style={CARD}>
      {showLabel !== false && <div className={classes["label"]}>{typeof label === "string" && label !== "" ? label : (key?.label ?? "")}</div>}
      <div className={classes["value"]} data-value>
        {latest === undefined ? "–" : shownValue(latest.value, style)}
      </div>
      {latest === undefined ? (
        <div className={classes["label"]}>{t("No value yet")}</div>
      ) : (
        showDate !== false && (
          <div className={classes["label"]}>
            <Ago ts={latest.ts} />
          </div>
        )
      )}
    </div>
  );
}
