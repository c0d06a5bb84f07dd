// Settings of the charts of old dashboards, turned into those of today.

import { list, number, object, text, type Json } from "@/dashboard/json";
import type { DataKey, Widget } from "@/dashboard/model";

export function isFlot(fqn: string): boolean {
  return /^system\.charts\.(basic_timeseries|timeseries_bars_flot|state_chart)$/.test(fqn);
}

const SHAPES: Record<string, string> = { circle: "circle", square: "rect", diamond: "diamond", triangle: "triangle", cross: "diamond" };

function axisOf(settings: Json, order: number): Json {
  return {
    order,
    show: settings["showLabels"] !== false,
    label: settings["title"],
    min: settings["min"],
    max: settings["max"],
    decimals: settings["tickDecimals"],
    interval: settings["tickSize"],
    ticksFormatter: settings["ticksFormatter"],
    position: settings["position"],
  };
}

function separateAxis(key: DataKey, order: number): Json {
  const own = key.settings;
  return axisOf({ title: own["axisTitle"], min: own["axisMin"], max: own["axisMax"], tickDecimals: own["axisTickDecimals"], tickSize: own["axisTickSize"], ticksFormatter: own["axisTicksFormatter"], position: own["axisPosition"] }, order);
}

function thresholdsOf(key: DataKey, settings: Json, axis: string): Json[] {
  return list(key.settings["thresholds"]).map((stored): Json => {
    const threshold = object(stored);
    const entity = threshold["thresholdValueSource"] === "entityAttribute";
    return {
      ...(entity ? { type: "entity", entityAlias: threshold["thresholdEntityAlias"], entityKey: threshold["thresholdAttribute"], entityKeyType: "attribute" } : { type: "constant", value: threshold["thresholdValue"] }),
      yAxisId: axis,
      lineColor: threshold["color"],
      lineWidth: threshold["lineWidth"] ?? settings["thresholdsLineWidth"],
      endSymbol: "none",
    };
  });
}

/** Returns the identity of the axis that a key of an old chart has for itself. */
const ownAxis = (key: DataKey): string => `axis of ${key.name}`;

function keysOf(widget: Widget): DataKey[] {
  return widget.datasources.flatMap((source) => source.dataKeys);
}

/** Returns the settings of today's charts that say what those of an old one do. */
export function fromFlot(widget: Widget): Json {
  const { settings } = widget;
  const axis = object(settings["yaxis"]);
  const keys = keysOf(widget);
  const separate = keys.filter((key) => key.settings["showSeparateAxis"] === true);
  const decimals = number(axis["tickDecimals"]) ?? number(widget.config["decimals"]);
  const legend = widget.config["showLegend"] ?? settings["showLegend"];
  const grid = object(settings["grid"]);
  return {
    ...settings,
    yAxes: {
      default: { ...axisOf(axis, 0), decimals, units: widget.config["units"], showSplitLines: grid["horizontalLines"] !== false },
      ...Object.fromEntries(separate.map((key, n) => [ownAxis(key), { units: key.units, ...separateAxis(key, n + 1) }])),
    },
    xAxis: { label: object(settings["xaxis"])["title"], showTickLabels: object(settings["xaxis"])["showLabels"] !== false, showSplitLines: grid["verticalLines"] !== false },
    thresholds: keys.flatMap((key) => thresholdsOf(key, settings, key.settings["showSeparateAxis"] === true ? ownAxis(key) : "default")),
    dataZoom: settings["enableSelection"] !== false,
    tooltipTrigger: settings["tooltipIndividual"] === true ? "point" : "axis",
    tooltipStackedShowTotal: settings["tooltipCumulative"] === true,
    tooltipHideZeroValues: settings["hideZeros"] === true,
    showLegend: legend !== false,
    legendConfig: object(widget.config["legendConfig"] ?? settings["legendConfig"]),
  };
}

/** Returns the settings of a key of an old chart as those of today. */
export function keyFromFlot(key: DataKey, widget: Widget): DataKey {
  const own = key.settings;
  const isState = widget.fqn.endsWith("state_chart");
  return {
    ...key,
    settings: {
      ...own,
      yAxisId: own["showSeparateAxis"] === true ? ownAxis(key) : "default",
      showInLegend: own["removeFromLegend"] !== true,
      dataHiddenByDefault: own["hideDataByDefault"] === true,
      lineSettings: {
        showLine: own["showLines"] !== false,
        step: isState,
        stepType: "end",
        smooth: widget.settings["smoothLines"] === true,
        lineWidth: own["lineWidth"] ?? 2,
        showPoints: own["showPoints"] === true,
        pointShape: SHAPES[text(own["showPointShape"]) ?? ""] ?? "circle",
        pointSize: (number(own["showPointsRadius"]) ?? 3) * 2,
        fillAreaSettings: { type: own["fillLines"] === true ? "opacity" : "none", opacity: number(own["fillLinesOpacity"]) ?? 0.4 },
      },
    },
  };
}
