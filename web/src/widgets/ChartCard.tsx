// A value with its course and what comes of the window: average, least, most.

import type { CSSProperties, ReactElement } from "react";
import { latestOf } from "@/dashboard/source";
import { text, type DataKey } from "@/dashboard/model";
import { t } from "@/i18n";
import { Ago } from "@/ui/feedback";
import { colorOf, safeColor } from "./color";
import type { WidgetProps } from "./registry";
import { fillPattern, shownValue } from "./text";
import { aggregate } from "./values";
import classes from "./widgets.module.css";

const CARD: CSSProperties = { containerType: "size" };
const NAMES: Record<string, string> = { AVG: "average", MIN: "least", MAX: "most", SUM: "sum", COUNT: "count" };

/** Returns the line through points in a box of 100 by 30. */
export function linePath(points: readonly { ts: number; value: string }[]): string {
  const shown = points.map(({ ts, value }) => [ts, Number(value)] as const).filter(([, value]) => Number.isFinite(value));
  const [first, last] = [shown[0]?.[0] ?? 0, shown.at(-1)?.[0] ?? 0];
  const values = shown.map(([, value]) => value);
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  return shown.map(([ts, value], n) => `${n === 0 ? "M" : "L"}${(((ts - first) / (last - first || 1)) * 100).toFixed(2)} ${(28 - ((value - low) / (high - low || 1)) * 26).toFixed(2)}`).join("");
}

export default function ChartCard({ widget, entities, sources }: WidgetProps): ReactElement {
  const source = sources[0]?.source;
  const key = source?.dataKeys[0];
  const entity = entities[0];
  const points = (key === undefined ? undefined : entity?.points.get(key.name)) ?? [];
  const latest = points.at(-1) ?? (key === undefined || entity === undefined ? undefined : latestOf(entity, key));
  const { settings } = widget;
  const kinds = (source?.latestKeys ?? []).map((one): [DataKey, string] => [one, text(one.raw["aggregationType"]) ?? "NONE"]);
  const asked = kinds.filter(([, kind]) => kind !== "NONE");
  const shown: [DataKey | undefined, string][] = asked.length > 0 ? asked : ["MIN", "AVG", "MAX"].map((kind) => [key, kind]);
  const isAggregated = widget.fqn.includes("aggregated");
  const color = colorOf(settings["valueColor"], Number(latest?.value), safeColor(key?.color) ?? "#2196f3");
  const subtitle = settings["showSubtitle"] === false ? "" : (text(settings["subtitle"]) ?? (isAggregated ? "${entityName}" : ""));
  return (
    <div className={classes["card"]} style={CARD}>
      <div className={classes["label"]}>{fillPattern(subtitle, entity, source?.dataKeys ?? []) || key?.label}</div>
      <div className={classes["value"]} data-value>
        {latest === undefined || key === undefined ? "–" : shownValue(latest.value, key)}
      </div>
      {settings["showChart"] !== false && points.length > 1 && (
        <svg viewBox="0 0 100 30" preserveAspectRatio="none" className={classes["spark"]} role="img" aria-label={t("Course of {key}", { key: key?.label ?? "" })} data-points={points.length} data-drawing>
          <path d={linePath(points)} fill="none" stroke={color} strokeWidth="2" vectorEffect="non-scaling-stroke" />
        </svg>
      )}
      {isAggregated && (
        <div className={classes["ends"]}>
          {shown.map(([one, kind]) => {
            const value = aggregate(one === undefined ? points : (entity?.points.get(one.name) ?? points), kind);
            return (
              <span key={`${one?.label} ${kind}`} data-aggregate={kind}>
                {t(NAMES[kind] ?? kind)} {value === undefined ? "–" : shownValue(String(Number(value.toFixed(2))), one ?? { units: undefined, decimals: undefined })}
              </span>
            );
          })}
        </div>
      )}
      {settings["showDate"] !== false && latest !== undefined && (
        <div className={classes["label"]}>
          <Ago ts={latest.ts} />
        </div>
      )}
    </div>
  );
}
