// Lines, bars or points over time. Drawn on a canvas; a change of the data changes the chart, it is not made anew.

import { useMantineColorScheme } from "@mantine/core";
import { useEffect, useMemo, useRef, type ReactElement } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { object, type DataKey } from "@/dashboard/model";
import type { EntityValues } from "@/dashboard/source";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { PALETTE } from "./color";
import type { WidgetProps } from "./registry";
import classes from "./widgets.module.css";

export interface Series {
  label: string;
  color: string;
  bars: boolean;
  points: Map<number, number>;
}

/** Returns one series for each key of each entity. */
export function seriesOf(entities: readonly EntityValues[], keys: DataKey[], isBar: boolean): Series[] {
  return entities.flatMap((entity, n) =>
    keys
      .filter((key) => key.type === "timeseries")
      .map((key) => ({
        label: entities.length > 1 ? `${entity.name}: ${key.label}` : key.label,
        color: n === 0 ? key.color : (PALETTE[n % PALETTE.length] ?? key.color),
        bars: isBar || object(key.settings)["type"] === "bar",
        points: new Map((entity.points.get(key.name) ?? []).map(({ ts, value }) => [ts, Number(value)])),
      })),
  );
}

/** Lays series side by side on all of their moments, in seconds. */
export function tableOf(series: Series[]): uPlot.AlignedData {
  const times = [...new Set(series.flatMap((one) => [...one.points.keys()]))].sort((a, b) => a - b);
  const columns = series.map((one) => times.map((ts) => one.points.get(ts) ?? null));
  return [times.map((ts) => ts / 1000), ...columns];
}

export default function TimeChart({ widget, entities, bounds }: WidgetProps): ReactElement {
  const pane = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const { colorScheme } = useMantineColorScheme();
  const keys = useMemo(() => widget.datasources.flatMap((source) => source.dataKeys), [widget]);
  const isBar = /bar/.test(widget.fqn);
  const series = useMemo(() => seriesOf(entities, keys, isBar), [entities, keys, isBar]);
  const data = useMemo(() => tableOf(series), [series]);
  const [from, to] = bounds;
  const range = useRef(bounds);
  range.current = bounds;
  const shape = JSON.stringify(series.map(({ label, color, bars }) => [label, color, bars]));
  const newest = useRef(data);
  newest.current = data;

  useEffect(() => {
    const place = pane.current;
    if (place === null) {
      return undefined;
    }
    const style = getComputedStyle(place);
    const stroke = style.color;
    const grid = { stroke: style.getPropertyValue("--mantine-color-default-border"), width: 1 };
    const lines = (JSON.parse(shape) as [string, string, boolean][]).map(([label, color, bars]): uPlot.Series => {
      const paths = bars ? uPlot.paths.bars?.({ size: [0.8, 40] }) : undefined;
      return { label, stroke: color, width: 2, spanGaps: true, ...(bars ? { fill: color } : {}), ...(paths === undefined ? {} : { paths }) };
    });
    const plot = new uPlot(
      {
        width: place.clientWidth,
        height: Math.max(80, place.clientHeight - 40),
        scales: { x: { range: () => [range.current[0] / 1000, range.current[1] / 1000] } },
        axes: [{ stroke, grid }, { stroke, grid }],
        series: [{}, ...lines],
      },
      newest.current,
      place,
    );
    chart.current = plot;
    const size = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: Math.max(80, place.clientHeight - 40) }));
    size.observe(place);
    return () => {
      size.disconnect();
      plot.destroy();
    };
  }, [shape, colorScheme]);

  useEffect(() => chart.current?.setData(data), [data, from, to]);
  const points = data[0].length;
  return (
    <div className={classes["chart"]} ref={pane} role="img" aria-label={t("{title}: {n} moments of {series}", { title: widget.title, n: points, series: series.map((one) => one.label).join(", ") })} data-points={points}>
      {points === 0 && <EmptyState>{t("No values in this time.")}</EmptyState>}
    </div>
  );
}
