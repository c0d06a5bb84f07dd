// The course of a tenant's usage as a dashboard: the series of its usage entity by hours, days or months.

import type { Json } from "@/dashboard/json";

export type Step = "hours" | "days" | "months";

export const STEPS: readonly { value: Step; label: string }[] = [
  { value: "hours", label: "By hour" },
  { value: "days", label: "By day" },
  { value: "months", label: "By month" },
];

interface Counted {
  /** Name of the monthly series; that of hours has `Hourly` behind it. */
  key: string;
  label: string;
  /** Name of its limit among the figures of the month. */
  limit?: string;
}

/** What one chart shows. */
export interface UsageChart {
  title: string;
  counted: readonly Counted[];
  /** Whether it is measured rather than counted, so that the hours of a day are not added. */
  gauge?: boolean;
}

export const CHARTS: readonly UsageChart[] = [
  { title: "Messages of devices", counted: [{ key: "transportMsgCount", label: "Messages", limit: "maxTransportMessages" }] },
  { title: "Values that devices sent", counted: [{ key: "transportDataPointsCount", label: "Values" }] },
  { title: "Stored points", counted: [{ key: "storageDataPointsCount", label: "Points" }] },
  { title: "Executions of rule nodes", counted: [{ key: "ruleEngineExecutionCount", label: "Executions" }] },
  { title: "JavaScript executions", counted: [{ key: "jsExecutionCount", label: "Executions", limit: "maxJsExecutions" }] },
  { title: "TBEL executions", counted: [{ key: "tbelExecutionCount", label: "Executions", limit: "maxTbelExecutions" }] },
  { title: "Created alarms", counted: [{ key: "createdAlarmsCount", label: "Alarms", limit: "maxAlarms" }] },
  { title: "E-mails and text messages", counted: [{ key: "emailCount", label: "E-mails", limit: "maxEmails" }, { key: "smsCount", label: "Text messages", limit: "maxSms" }] },
  { title: "Active devices", gauge: true, counted: [{ key: "activeDevicesCount", label: "Active" }, { key: "inactiveDevicesCount", label: "Inactive" }] },
];

const COLORS = ["#2196f3", "#ff9800"];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const COLUMNS = 24;
const [WIDTH, HEIGHT] = [12, 5];

/**
 * The window of each step: whole days, months and years, of which the last bar is seen, too. Months begin and end in UTC, as limits have them.
 * An hour's point is written anew until the hour is over, so that the largest of an hour is all of it.
 */
function windowOf(step: Step, gauge: boolean): Json {
  switch (step) {
    case "hours":
      return { selectedTab: 0, realtime: { realtimeType: 1, quickInterval: "CURRENT_DAY", interval: HOUR_MS }, aggregation: { type: "MAX", limit: 1_000 } };
    case "days":
      // Not live: what comes for the present hour would be added to what it had before.
      return { selectedTab: 1, history: { historyType: 2, quickInterval: "CURRENT_MONTH", interval: DAY_MS }, aggregation: { type: gauge ? "MAX" : "SUM", limit: 1_000 }, timezone: "UTC" };
    case "months":
      return { selectedTab: 0, realtime: { realtimeType: 1, quickInterval: "CURRENT_YEAR", interval: "MONTH" }, aggregation: { type: "MAX", limit: 1_000 }, timezone: "UTC" };
  }
}

/** Returns the dashboard; months have the limits beside them, of which nothing and zero are none. */
export function usageDashboard(step: Step, words: (text: string) => string, figures: Readonly<Record<string, unknown>>): Json {
  const widgets: Json = {};
  const places: Json = {};
  CHARTS.forEach(({ title, counted, gauge = false }, n) => {
    const limits = counted.flatMap(({ limit }) => (step === "months" && limit !== undefined && Number(figures[limit]) > 0 ? [Number(figures[limit])] : []));
    widgets[title] = {
      typeFullFqn: "system.time_series_chart",
      type: "timeseries",
      sizeX: WIDTH,
      sizeY: HEIGHT,
      config: {
        title: words(title),
        showTitle: true,
        ...(gauge && step === "days" ? { useDashboardTimewindow: false, timewindow: windowOf(step, true) } : {}),
        settings: {
          showLegend: counted.length > 1,
          legendConfig: { showTotal: !gauge },
          stack: counted.length > 1,
          yAxes: { default: { min: 0 } },
          thresholds: limits.map((value) => ({ type: "constant", value, lineType: "dashed", lineColor: "#e03131" })),
        },
        datasources: [
          {
            type: "entity",
            entityAliasId: "usage",
            dataKeys: counted.map(({ key, label }, at) => ({ name: step === "months" ? key : `${key}Hourly`, type: "timeseries", label: words(label), color: COLORS[at], decimals: 0, settings: { type: "bar" } })),
          },
        ],
      },
    };
    places[title] = { col: (n % 2) * WIDTH, row: Math.floor(n / 2) * HEIGHT, sizeX: WIDTH, sizeY: HEIGHT };
  });
  return {
    widgets,
    states: { default: { name: words("API usage"), root: true, layouts: { main: { widgets: places, gridSettings: { columns: COLUMNS, margin: 10 } } } } },
    entityAliases: { usage: { id: "usage", alias: words("API usage"), filter: { type: "apiUsageState", resolveMultiple: false } } },
    timewindow: windowOf(step, false),
  };
}
