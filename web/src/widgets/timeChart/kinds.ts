// Which kinds of charts there are, by the names of their types.

export type ChartKind = "line" | "bar" | "point" | "state" | "range" | "labelled";

/** Returns what kind of chart a widget type is. */
export function kindOf(fqn: string): ChartKind {
  return /range_chart/.test(fqn) ? "range" : /state_chart$/.test(fqn) ? "state" : /bar_chart_with_labels$/.test(fqn) ? "labelled" : /(^|\.)bar_chart$|bars_flot$/.test(fqn) ? "bar" : /point_chart$/.test(fqn) ? "point" : "line";
}

/** Whether a type of this name draws lines between points, which may be left open. */
export function drawsLines(fqn: string): boolean {
  return /^(time_series_chart|line_chart)$|(^|_)range_chart(_with_background)?$/.test(fqn);
}
