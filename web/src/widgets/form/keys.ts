// Fields of a key of a source that all types of widgets have: what it is called and how its values are written and made.

import type { FormField, FormValues } from "@/ui/form/values";
import { KNOWN_UNITS } from "../units";
import { PERIODS } from "./charts";

/** What becomes of the values of a key: points of a course, one latest value, or a column of alarms. */
export type KeyUse = "points" | "latest" | "alarm";

const AGGREGATIONS = [
  { value: "NONE", label: "The latest value" },
  { value: "AVG", label: "Average of the window" },
  { value: "MIN", label: "Least value of the window" },
  { value: "MAX", label: "Greatest value of the window" },
  { value: "SUM", label: "Sum of the window" },
  { value: "COUNT", label: "Number of values in the window" },
];
const RESULTS = [
  { value: "PREVIOUS_VALUE", label: "The earlier value" },
  { value: "DELTA_ABSOLUTE", label: "The difference" },
  { value: "DELTA_PERCENT", label: "The difference in percent" },
];

const isSeries = ({ type }: FormValues): boolean => type === undefined || type === "timeseries";
const isField = ({ type }: FormValues): boolean => type === "alarm";
const isAggregated = (values: FormValues): boolean => isSeries(values) && typeof values["aggregationType"] === "string" && values["aggregationType"] !== "NONE";
const isCompared = (values: FormValues): boolean => isAggregated(values) && values["comparisonEnabled"] === true;
const notField = (values: FormValues): boolean => !isField(values);

const WRITTEN: readonly FormField[] = [
  { name: "label", label: "Label" },
  { name: "units", label: "Unit", type: "unit", options: KNOWN_UNITS, when: notField },
  { name: "decimals", label: "Decimals", type: "number", least: 0, most: 15, when: notField },
  { name: "color", label: "Color", type: "color" },
];
const AGGREGATED: readonly FormField[] = [
  { name: "aggregationType", label: "Shows", type: "select", options: AGGREGATIONS, otherwise: "NONE", when: isSeries },
  { name: "comparisonEnabled", label: "Compare with an earlier time", type: "boolean", help: "Windows of the past and of the calendar have one.", when: isAggregated },
  { name: "timeForComparison", label: "Earlier time", type: "select", options: PERIODS, otherwise: "previousInterval", when: isCompared },
  { name: "comparisonCustomIntervalValue", label: "So long before (milliseconds)", type: "number", least: 1_000, when: (values) => isCompared(values) && values["timeForComparison"] === "customInterval" },
  { name: "comparisonResultType", label: "What is shown of it", type: "select", options: RESULTS, otherwise: "PREVIOUS_VALUE", when: isCompared },
];

/** Returns the fields that each key has. */
export function keyFields(use: KeyUse): readonly FormField[] {
  return use === "latest" ? [...WRITTEN, ...AGGREGATED] : WRITTEN;
}
