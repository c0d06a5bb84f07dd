// The names of what a chart shows, with what comes of its values; a click hides one or brings it back.

import type { ReactElement } from "react";
import { t } from "@/i18n";
import { shownValue } from "../text";
import { figuresOf, type Figures, type Series } from "./series";
import type { ChartSettings } from "./settings";
import type { Band } from "./thresholds";
import classes from "./timeChart.module.css";

interface LegendProps {
  settings: ChartSettings;
  series: readonly Series[];
  hidden: ReadonlySet<string>;
  bounds: [number, number];
  onToggle: (id: string) => void;
  onPoint: (id: string | undefined) => void;
}

const FIGURES: readonly [keyof Figures, string][] = [
  ["min", "least"],
  ["max", "greatest"],
  ["avg", "average"],
  ["total", "total"],
  ["latest", "latest"],
];

function bandText({ from, to }: Band): string {
  return from === undefined ? `< ${to ?? ""}` : to === undefined ? `≥ ${from}` : from === to ? String(from) : `${from} – ${to}`;
}

function Name({ one, hidden, onToggle, onPoint }: Pick<LegendProps, "hidden" | "onToggle" | "onPoint"> & { one: Series }): ReactElement {
  return (
    <button type="button" className={classes["name"]} aria-pressed={!hidden.has(one.id)} onClick={() => onToggle(one.id)} onMouseEnter={() => onPoint(one.id)} onMouseLeave={() => onPoint(undefined)}>
      <i style={{ background: one.color }} />
      {one.label}
    </button>
  );
}

export function Legend({ settings, series, hidden, bounds, onToggle, onPoint }: LegendProps): ReactElement | null {
  const { legend, bands } = settings;
  const shown = series.filter((one) => one.look.inLegend);
  const ordered = legend.sorted ? [...shown].sort((a, b) => a.label.localeCompare(b.label)) : shown;
  const wanted = FIGURES.filter(([name]) => legend.values[name]);
  if (bands !== undefined && settings.kind === "range") {
    return (
      <div className={classes["legend"]}>
        <ul className={classes["bands"]}>
          {bands.map((band) => (
            <li key={`${band.from} ${band.to}`}>
              <i style={{ background: band.color }} />
              {bandText(band)}
            </li>
          ))}
        </ul>
      </div>
    );
  }
  if (ordered.length === 0) {
    return null;
  }
  if (wanted.length === 0) {
    return (
      <div className={classes["legend"]}>
        <ul className={classes["list"]} data-columns={legend.columns || undefined}>
          {ordered.map((one) => (
            <li key={one.id}>
              <Name one={one} hidden={hidden} onToggle={onToggle} onPoint={onPoint} />
            </li>
          ))}
        </ul>
      </div>
    );
  }
  return (
    <div className={classes["legend"]}>
      <table aria-label={t("Legend")}>
        <thead>
          <tr>
            <td />
            {wanted.map(([name, label]) => (
              <th key={name} scope="col">
                {t(label)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {ordered.map((one) => {
            const figures = figuresOf(one, bounds);
            return (
              <tr key={one.id}>
                <th scope="row">
                  <Name one={one} hidden={hidden} onToggle={onToggle} onPoint={onPoint} />
                </th>
                {wanted.map(([name]) => (
                  <td key={name} data-figure={name}>
                    {figures === undefined ? "–" : shownValue(String(figures[name]), { units: one.key.units, decimals: one.key.decimals ?? 2 })}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
