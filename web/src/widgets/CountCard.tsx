// How many entities or alarms there are.

import type { CSSProperties, ReactElement } from "react";
import { actionsOf } from "@/dashboard/actions";
import { text, type Json } from "@/dashboard/json";
import { fontStyle } from "@/dashboard/look";
import { t } from "@/i18n";
import { Icon } from "@/icons/Icon";
import { FitBox } from "./card/FitBox";
import { fontOf, sizeOf } from "./card/parts";
import type { WidgetProps } from "./registry";
import { safeColor } from "./color";
import { shownValue } from "./text";
import { useColor } from "./useColor";
import { labelOf } from "./values";
import classes from "./count.module.css";

/** Alarms are green as long as there are none. */
const ALARM_COLOR = { type: "range", color: "rgba(0, 105, 92, 1)", rangeList: { range: [{ from: 0, to: 0, color: "rgba(0, 105, 92, 1)" }, { from: 1, color: "rgba(209, 39, 48, 1)" }] } };
const ENTITY_COLOR = "rgba(241, 141, 23, 1)";

function IconOnGround({ settings, count, isAlarm }: { settings: Json; count: number | undefined; isAlarm: boolean }): ReactElement | null {
  const ground = useColor(settings["iconBackgroundColor"] ?? (isAlarm ? ALARM_COLOR : ENTITY_COLOR), count, ENTITY_COLOR);
  const withGround = settings["showIconBackground"] !== false;
  // White is what shows on a ground; where there is none, the colour of texts.
  const color = useColor(settings["iconColor"], count, withGround ? "#fff" : "var(--mantine-color-text)");
  const withIcon = settings["showIcon"] !== false;
  const iconSize = sizeOf(settings, "iconSize", 20);
  const size = withGround ? sizeOf(settings, "iconBackgroundSize", 36) : iconSize;
  return withIcon || withGround ? (
    <span className={classes["icon"]} style={{ minWidth: size, minHeight: size, color, ...(withGround ? { background: ground } : {}) }} data-ground>
      {withIcon && <Icon name={text(settings["icon"]) ?? (isAlarm ? "warning" : "devices")} size={iconSize} />}
    </span>
  ) : null;
}

export default function CountCard({ widget, entities, act }: WidgetProps): ReactElement {
  const { settings } = widget;
  const stored = entities.map((entity) => entity.latest.get("COUNT/count")?.value).find((value) => value !== undefined);
  const count = stored === undefined || stored.trim() === "" ? undefined : Number(stored);
  const isAlarm = widget.fqn.includes("alarm");
  const labelColor = useColor(settings["labelColor"], count, "var(--soft-text)");
  const valueColor = useColor(settings["valueColor"], count, "var(--mantine-color-text)");
  const label = labelOf(settings, t(isAlarm ? "Alarms" : "Entities"));
  // Actions of cards are called `cardClick`; those that were made here are `click`, too.
  const source = ["cardClick", "click"].find((name) => actionsOf(widget.config, name).length > 0);
  const labelStyle: CSSProperties = { ...fontStyle(fontOf(settings, "labelFont", 12, "400", "16px")), color: labelColor };
  const valueStyle: CSSProperties = { ...fontStyle(fontOf(settings, "valueFont", 20, "500", "24px")), color: valueColor };
  const content = (
    <>
      <IconOnGround settings={settings} count={count} isAlarm={isAlarm} />
      <span className={classes["words"]} data-layout={settings["layout"] === "row" ? "row" : "column"}>
        {settings["showLabel"] !== false && (
          <span style={labelStyle} data-label>
            {label}
          </span>
        )}
        <span className={classes["value"]} style={valueStyle} data-value>
          {stored === undefined ? "–" : shownValue(stored, { units: undefined, decimals: 0 })}
        </span>
      </span>
      {settings["showChevron"] === true && (
        <span className={classes["chevron"]} style={{ color: safeColor(settings["chevronColor"]) ?? "var(--soft-text)" }} data-chevron>
          <Icon name="chevron_right" size={sizeOf(settings, "chevronSize", 24)} />
        </span>
      )}
    </>
  );
  return (
    <FitBox enabled={settings["autoScale"] !== false}>
      {source === undefined ? (
        <div className={classes["card"]}>{content}</div>
      ) : (
        <button type="button" className={classes["card"]} onClick={() => act(source, undefined)}>
          {content}
        </button>
      )}
    </FitBox>
  );
}
