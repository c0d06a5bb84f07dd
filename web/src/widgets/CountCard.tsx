// How many entities or alarms there are.

import type { CSSProperties, ReactElement } from "react";
import { actionsOf } from "@/dashboard/actions";
import { text } from "@/dashboard/model";
import { t } from "@/i18n";
import { Icon } from "@/icons/Icon";
import { useDrawings } from "@/icons/drawings";
import type { WidgetProps } from "./registry";
import { colorOf } from "./color";
import { labelOf } from "./values";
import classes from "./widgets.module.css";

const CARD: CSSProperties = { containerType: "size" };

export default function CountCard({ widget, entities, act }: WidgetProps): ReactElement {
  const { settings } = widget;
  const drawingOf = useDrawings();
  const icon = text(settings["icon"]) ?? "";
  const count = entities.map((entity) => entity.latest.get("COUNT/count")?.value).find((value) => value !== undefined);
  const isAlarm = widget.fqn.includes("alarm");
  const color = colorOf(widget.settings["iconBackgroundColor"], Number(count ?? 0), isAlarm && Number(count ?? 0) > 0 ? "#e5484d" : "#2196f3");
  const label = labelOf(widget.settings, t(isAlarm ? "Alarms" : "Entities"));
  const opens = actionsOf(widget.config, "click").length > 0;
  return (
    <div className={classes["card"]} style={CARD}>
      <div className={classes["label"]}>
        {settings["showIcon"] !== false && drawingOf(icon) !== undefined ? (
          <span style={{ color, lineHeight: 0 }}>
            <Icon name={icon} />
          </span>
        ) : (
          <i className={classes["dot"]} style={{ background: color }} />
        )}
        {opens ? (
          <button type="button" className={classes["link"]} onClick={() => act("click", undefined)}>
            {label}
          </button>
        ) : (
          label
        )}
      </div>
      <div className={classes["value"]} data-value>
        {count ?? "–"}
      </div>
    </div>
  );
}
