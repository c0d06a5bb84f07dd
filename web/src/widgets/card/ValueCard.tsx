// One value with its icon, name and age, laid out as settings say.

import type { CSSProperties, ReactElement } from "react";
import { text } from "@/dashboard/json";
import { fontStyle } from "@/dashboard/look";
import { latestOf } from "@/dashboard/source";
import { wasSent } from "@/dashboard/emptiness";
import { t } from "@/i18n";
import { Icon } from "@/icons/Icon";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import { useColor } from "../useColor";
import { FitBox } from "./FitBox";
import { fontOf, sizeOf, ValueDate, valueText } from "./parts";
import classes from "./card.module.css";

const LAYOUTS = ["square", "vertical", "centered", "simplified", "horizontal", "horizontal_reversed"] as const;
type Layout = (typeof LAYOUTS)[number];

/** Returns how the parts of a card lie; the names of types say it where settings don't. */
export function layoutOf(fqn: string, settings: Record<string, unknown>): Layout {
  if (/cards\.simple_card$/.test(fqn)) {
    return settings["labelPosition"] === "top" ? "centered" : "horizontal";
  }
  return LAYOUTS.find((one) => one === settings["layout"]) ?? (/horizontal_|label_value_card$|label_card$/.test(fqn) ? "horizontal" : "square");
}

export default function ValueCard({ widget, entities, sources }: WidgetProps): ReactElement {
  const { settings, fqn } = widget;
  const keys = sources[0]?.source.dataKeys ?? widget.datasources[0]?.dataKeys ?? [];
  const key = keys[0];
  const entity = entities[0];
  const stored = key === undefined || entity === undefined ? undefined : latestOf(entity, key);
  const latest = wasSent(stored) ? stored : undefined;
  const read = latest === undefined || latest.value.trim() === "" || !Number.isFinite(Number(latest.value)) ? latest?.value : Number(latest.value);
  const isSimple = /cards\.simple_card$/.test(fqn);
  const layout = layoutOf(fqn, settings);
  const colors = {
    label: useColor(settings["labelColor"], read, "var(--mantine-color-text)"),
    icon: useColor(settings["iconColor"], read, "#5469FF"),
    value: useColor(settings["valueColor"], read, "var(--mantine-color-text)"),
  };
  const pattern = text(settings["label"]);
  const words = pattern === undefined ? (key?.label ?? "") : fillPattern(pattern, entity, keys);
  const withDate = settings["showDate"] !== false && !isSimple && !/label_(value_)?card$/.test(fqn) && layout !== "vertical" && layout !== "simplified";
  const withIcon = settings["showIcon"] !== false && !isSimple && layout !== "simplified";
  const iconSize = sizeOf(settings, "iconSize", 40);

  const label = settings["showLabel"] === false ? null : <div style={{ ...fontStyle(fontOf(settings, "labelFont", 16, "500", "1.5")), color: colors.label }}>{words}</div>;
  const icon = withIcon ? (
    <span className={classes["icon"]} style={{ color: colors.icon }}>
      <Icon name={text(settings["icon"]) ?? "thermostat"} size={iconSize} />
    </span>
  ) : null;
  const date = latest === undefined ? withDate && !/label_card$/.test(fqn) ? <div style={{ color: "var(--soft-text)" }}>{t("No value yet")}</div> : null : withDate && latest.ts > 0 ? <ValueDate ts={latest.ts} settings={settings} value={read} /> : null;
  const valueStyle: CSSProperties = { ...fontStyle(fontOf(settings, "valueFont", 52, "500", "100%")), color: colors.value };
  const value = /label_card$/.test(fqn) ? null : (
    <div className={classes["value"]} style={valueStyle} data-value>
      {valueText(latest?.value, key ?? { units: undefined, decimals: undefined })}
    </div>
  );
  const named = (
    <div className={classes["pair"]}>
      {icon}
      <div className={classes["words"]}>
        {label}
        {date}
      </div>
    </div>
  );
  return (
    <FitBox enabled={settings["autoScale"] !== false}>
      <div className={classes["content"]} data-layout={layout}>
        {(layout === "square" || layout.startsWith("horizontal")) && (
          <>
            {named}
            {value}
          </>
        )}
        {layout === "vertical" && (
          <>
            {label}
            {value}
            {icon}
          </>
        )}
        {layout === "centered" && (
          <>
            {label}
            <div className={classes["pair"]}>
              {icon}
              {value}
            </div>
            {date}
          </>
        )}
        {layout === "simplified" && (
          <>
            {value}
            {label}
          </>
        )}
      </div>
    </FitBox>
  );
}
