// What a chart shows, as a table: for those who can't see it, and for whoever wants the numbers.

import { useContext, useMemo, useState, type ReactElement } from "react";
import { Button } from "@mantine/core";
import { serverNow } from "@/dashboard/time/clock";
import { TimeContext } from "@/dashboard/time/control";
import { momentText } from "@/dashboard/time/words";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import type { WidgetProps } from "../registry";
import { shownValue } from "../text";
import { seriesOf } from "./series";
import { chartSettings } from "./settings";
import { tableOf } from "./table";
import classes from "./timeChart.module.css";

/** So many rows are added at a time. */
const PAGE = 200;

export default function ChartTable({ widget, sources, bounds }: WidgetProps): ReactElement {
  const [rows, setRows] = useState(PAGE);
  const zone = useContext(TimeContext)?.window.zone;
  const settings = useMemo(() => chartSettings(widget), [widget]);
  const series = useMemo(() => seriesOf(sources, { settings, widget, bounds, now: serverNow() }), [sources, settings, widget, bounds]);
  const [times, ...columns] = useMemo(() => tableOf(series), [series]);
  if (times.length === 0) {
    return <EmptyState>{t("No values in this time.")}</EmptyState>;
  }
  const newest = times.map((_, n) => n).slice(-rows).reverse();
  const shown = (value: number | null | undefined, n: number): string => {
    const state = settings.states.find((one) => one.value === value);
    const key = series[n]?.key;
    return value === null || value === undefined ? "" : (state?.label ?? shownValue(String(value), { units: key?.units, decimals: key?.decimals }));
  };
  return (
    <div className={classes["table"]} tabIndex={0} role="region" aria-label={t("Values of {title}", { title: widget.title })}>
      <table aria-label={t("Values of {title}", { title: widget.title })}>
        <thead>
          <tr>
            <th scope="col">{t("Time")}</th>
            {series.map((one) => (
              <th key={one.id} scope="col">
                {one.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {newest.map((at) => (
            <tr key={times[at]}>
              <th scope="row">{momentText(Math.round((times[at] ?? 0) * 1_000), zone, { dateStyle: "short", timeStyle: "medium" })}</th>
              {columns.map((column, n) => (
                <td key={series[n]?.id}>{shown(column[at], n)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows < times.length && (
        <Button size="compact-sm" variant="default" onClick={() => setRows(rows + PAGE)}>
          {t("Show earlier ones ({n})", { n: times.length - rows })}
        </Button>
      )}
    </div>
  );
}
