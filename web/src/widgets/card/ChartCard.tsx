// A value beside its course, or in the middle of what its window comes to.

import { useContext, type ReactElement } from "react";
import { aggregationIn } from "@/dashboard/aggregated";
import { number, text, type Json } from "@/dashboard/json";
import { fontStyle } from "@/dashboard/look";
import type { DataKey, Widget } from "@/dashboard/model";
import { latestOf, type EntityValues } from "@/dashboard/source";
import { TimeContext } from "@/dashboard/time/control";
import { t } from "@/i18n";
import { PALETTE, chosen, paletteColor } from "../color";
import type { WidgetProps } from "../registry";
import { fillPattern, shownValue } from "../text";
import { useColor } from "../useColor";
import { useScheme } from "../useScheme";
import { Course, endsOf } from "./Course";
import { FitBox } from "./FitBox";
import { fontOf, ValueDate, valueText } from "./parts";
import classes from "./card.module.css";

const NAMES: Record<string, string> = { AVG: "average", MIN: "least", MAX: "greatest", SUM: "sum", COUNT: "count" };
const TEXT = "var(--mantine-color-text)";

function useCourseColor(widget: Widget, key: DataKey | undefined): string {
  const scheme = useScheme(widget);
  return key === undefined ? paletteColor(PALETTE[0] ?? TEXT, scheme) : paletteColor(chosen(key.color) ?? TEXT, scheme);
}

/** A value of one of the corners or of the middle. */
function Part({ entity, dataKey, size }: { entity: EntityValues | undefined; dataKey: DataKey; size: number }): ReactElement {
  const { settings } = dataKey;
  const point = entity === undefined ? undefined : latestOf(entity, dataKey);
  const value = point === undefined ? NaN : Number(point.value);
  const color = useColor(settings["color"], value, TEXT);
  const arrow = settings["showArrow"] === true && Number.isFinite(value) && value !== 0 ? (value > 0 ? "↑ " : "↓ ") : "";
  const kind = aggregationIn(dataKey);
  return (
    <span style={{ ...fontStyle(fontOf(settings, "font", size, "500", "1")), color }} data-aggregate={kind} title={kind === undefined ? dataKey.label : `${dataKey.label}: ${t(NAMES[kind] ?? kind)}`}>
      {arrow}
      {valueText(point?.value, dataKey)}
    </span>
  );
}

function Aggregated({ widget, entities, sources, bounds }: WidgetProps): ReactElement {
  const { settings } = widget;
  const source = sources[0]?.source;
  const key = source?.dataKeys[0];
  const entity = entities[0];
  const zone = useContext(TimeContext)?.window.zone;
  const points = (key === undefined ? undefined : entity?.points.get(key.name)) ?? [];
  const at = (position: string): DataKey[] => (source?.latestKeys ?? []).filter((one) => (text(one.settings["position"]) ?? "center") === position);
  const latest = points.at(-1) ?? (key === undefined || entity === undefined ? undefined : latestOf(entity, key));
  const center = at("center")[0] ?? (source?.latestKeys.length === 0 ? key : undefined);
  const corner = (positions: string[]): DataKey[] => positions.flatMap(at);
  const subtitle = settings["showSubtitle"] === false ? "" : fillPattern(text(settings["subtitle"]) ?? "${entityName}", entity, [...(source?.dataKeys ?? []), ...(source?.latestKeys ?? [])]);
  const courseColor = useCourseColor(widget, key);
  const ends = endsOf(points);
  const shown = (value: number): string => shownValue(String(value), { units: undefined, decimals: key?.decimals ?? 1 });
  return (
    <div className={classes["aggregated"]}>
      {subtitle !== "" && <div style={{ ...fontStyle(fontOf(settings, "subtitleFont", 12, "400", "16px")), color: chosen(settings["subtitleColor"]) ?? "var(--soft-text)" }}>{subtitle}</div>}
      <div className={classes["corners"]}>
        <div className={classes["corner"]}>
          {corner(["leftTop", "leftBottom"]).map((one) => (
            <Part key={one.label} entity={entity} dataKey={one} size={14} />
          ))}
        </div>
        <div className={classes["center"]} data-value>
          {center === undefined || entity === undefined ? "–" : center === key ? valueText(latest?.value, center) : <Part entity={entity} dataKey={center} size={32} />}
        </div>
        <div className={classes["corner"]} data-side="right">
          {corner(["rightTop", "rightBottom"]).map((one) => (
            <Part key={one.label} entity={entity} dataKey={one} size={14} />
          ))}
        </div>
      </div>
      {settings["showChart"] !== false && ends !== undefined && (
        <div className={classes["course"]}>
          <div className={classes["ends"]}>
            <span>{shown(ends[1])}</span>
            <span>{shown(ends[0])}</span>
          </div>
          <Course points={points} bounds={bounds} color={courseColor} label={key?.label ?? ""} />
        </div>
      )}
      {settings["showDate"] !== false && latest !== undefined && latest.ts > 0 && <ValueDate ts={latest.ts} settings={settings} value={Number(latest.value)} zone={zone} />}
    </div>
  );
}

function layoutOf(settings: Json): string {
  return settings["layout"] === "right" ? "right" : "left";
}

function ValueAndCourse({ widget, entities, sources, bounds }: WidgetProps): ReactElement {
  const { settings } = widget;
  const key = sources[0]?.source.dataKeys[0];
  const entity = entities[0];
  const points = (key === undefined ? undefined : entity?.points.get(key.name)) ?? [];
  const latest = points.at(-1) ?? (key === undefined || entity === undefined ? undefined : latestOf(entity, key));
  const value = number(latest?.value);
  const color = useColor(settings["valueColor"], value, TEXT);
  const courseColor = useCourseColor(widget, key);
  return (
    <div className={classes["chartCard"]} data-layout={layoutOf(settings)}>
      {settings["showValue"] !== false && (
        <div style={{ flex: "0 1 auto", maxWidth: "60%", height: "100%" }}>
          <FitBox enabled={settings["autoScale"] !== false}>
            <div className={classes["value"]} style={{ ...fontStyle(fontOf(settings, "valueFont", 28, "500", "32px")), color }} data-value>
              {valueText(latest?.value, key ?? { units: undefined, decimals: undefined })}
            </div>
          </FitBox>
        </div>
      )}
      <Course points={points} bounds={bounds} color={courseColor} label={key?.label ?? ""} filled={false} />
    </div>
  );
}

export default function ChartCard(props: WidgetProps): ReactElement {
  return /(^|[._])simple_/.test(props.widget.fqn) ? <ValueAndCourse {...props} /> : <Aggregated {...props} />;
}
