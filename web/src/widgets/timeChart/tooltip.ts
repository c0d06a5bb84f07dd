// What the cursor stands over, in a small box beside it.

import type uPlot from "uplot";
import { nearestPoint } from "./table";
import type { Series } from "./series";
import classes from "./timeChart.module.css";

export interface TooltipRow {
  series: Series;
  /** Where the point is. */
  index: number;
  value: number;
  ts: number;
}

export interface TooltipTexts {
  title: (ts: number) => string;
  label: (row: TooltipRow) => string;
  value: (row: TooltipRow) => string;
  /** The sum under stacked values; none where it isn't wanted. */
  total: ((rows: TooltipRow[]) => string) | undefined;
  hideZeros: boolean;
  byPoint: boolean;
}

/** Points that lie as near to each other belong together, pixels. */
const TOGETHER = 8;
/** A point under the cursor may be so far away, pixels. */
const REACH = 40;

/** Returns the points that a place of the cursor means: the nearest of each visible series, as far as they lie together. */
export function rowsAt(plot: uPlot, series: readonly Series[], raw: readonly (readonly (number | null)[])[], left: number, top: number, byPoint: boolean): TooltipRow[] {
  const times = plot.data[0] as number[];
  const x = plot.posToVal(left, "x");
  const at = plot.valToIdx(x);
  const found = series.flatMap((one, n): (TooltipRow & { dx: number; dy: number })[] => {
    if (plot.series[n + 1]?.show !== true) {
      return [];
    }
    const column = (raw[n] ?? []) as (number | null)[];
    let index = nearestPoint(column, times, at, x);
    const holds = one.look.line.step === "end" && !one.look.bars;
    while (holds && index !== null && index > 0 && ((times[index] ?? 0) > x || (column[index] ?? null) === null)) {
      index--;
    }
    const value = index === null ? null : (column[index] ?? null);
    if (index === null || value === null) {
      return [];
    }
    const drawn = plot.data[n + 1]?.[index] ?? value;
    const dx = holds ? 0 : Math.abs(plot.valToPos(times[index] ?? 0, "x") - left);
    const dy = Math.abs(plot.valToPos(drawn, plot.series[n + 1]?.scale ?? "y") - top);
    return [{ series: one, index, value, ts: Math.round((times[index] ?? 0) * 1_000), dx, dy }];
  });
  if (byPoint) {
    const nearest = found.reduce<(typeof found)[number] | undefined>((best, one) => (best === undefined || Math.hypot(one.dx, one.dy) < Math.hypot(best.dx, best.dy) ? one : best), undefined);
    return nearest === undefined || Math.hypot(nearest.dx, nearest.dy) > REACH ? [] : [nearest];
  }
  const least = Math.min(...found.map(({ dx }) => dx));
  return found.filter(({ dx }) => dx <= least + TOGETHER);
}

function element(name: string, className: string | undefined, content: string): HTMLElement {
  const made = document.createElement(name);
  made.className = className ?? "";
  made.textContent = content;
  return made;
}

export class Tooltip {
  private readonly box = document.createElement("div");

  constructor(private readonly plot: uPlot) {
    this.box.className = classes["tooltip"] ?? "";
    this.box.hidden = true;
    plot.over.append(this.box);
  }

  hide(): void {
    this.box.hidden = true;
  }

  show(rows: TooltipRow[], texts: TooltipTexts, left: number, top: number): void {
    const shown = rows.filter(({ value }) => !texts.hideZeros || value !== 0);
    const [first] = shown;
    if (first === undefined) {
      this.hide();
      return;
    }
    const lines = shown.map((row) => {
      const line = element("div", classes["row"], "");
      const dot = element("i", undefined, "");
      dot.style.background = row.series.color;
      line.append(dot, element("span", undefined, texts.label(row)), element("b", undefined, texts.value(row)));
      return line;
    });
    const total = texts.total === undefined || shown.length < 2 ? [] : [element("div", classes["total"], texts.total(shown))];
    const title = texts.title(first.ts);
    this.box.replaceChildren(...(title === "" ? [] : [element("div", classes["date"], title)]), ...lines, ...total);
    this.box.hidden = false;
    const { clientWidth: width, clientHeight: height } = this.plot.over;
    const [ownWidth, ownHeight] = [this.box.offsetWidth, this.box.offsetHeight];
    const x = left + ownWidth + 16 > width ? Math.max(0, left - ownWidth - 12) : left + 12;
    this.box.style.left = `${x}px`;
    this.box.style.top = `${Math.min(Math.max(0, top - ownHeight / 2), Math.max(0, height - ownHeight))}px`;
  }
}
