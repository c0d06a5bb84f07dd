// The kinds of use that a table of API usage shows, each with the keys of its count, its limit and its state.

import { list, object, type Json } from "@/dashboard/json";

const key = (name: string): Json => ({ name, label: name, type: "timeseries", settings: {} });
const row = (label: string, state: string, limit: string, count: string): Json => ({ label: `{i18n:api-usage.${label}}`, state: "", status: key(state), maxLimit: key(limit), current: key(count) });

/** What is shown where settings name nothing. */
export const USAGE_ROWS: readonly Json[] = [
  row("transport-messages", "transportApiState", "transportMsgLimit", "transportMsgCount"),
  row("transport-data-points", "transportApiState", "transportDataPointsLimit", "transportDataPointsCount"),
  row("rule-engine-executions", "ruleEngineApiState", "ruleEngineExecutionLimit", "ruleEngineExecutionCount"),
  row("javascript-function-executions", "jsExecutionApiState", "jsExecutionLimit", "jsExecutionCount"),
  row("tbel-function-executions", "tbelExecutionApiState", "tbelExecutionLimit", "tbelExecutionCount"),
  row("data-points-storage-days", "dbApiState", "storageDataPointsLimit", "storageDataPointsCount"),
  row("alarms-created", "alarmApiState", "createdAlarmsLimit", "createdAlarmsCount"),
  row("emails", "emailApiState", "emailLimit", "emailCount"),
  row("sms", "smsApiState", "smsLimit", "smsCount"),
];

/** Returns the kinds of use that settings name, or the usual ones. */
export function usageRows(settings: Json): readonly Json[] {
  const stored = list(settings["apiUsageDataKeys"]).map(object);
  return stored.length === 0 ? USAGE_ROWS : stored;
}

/** Makes whole keys of those that were named in a form. */
export function wholeRow(stored: Json): Json {
  const keys = ["current", "maxLimit", "status"].map((name) => [name, object(stored[name])] as const);
  return { ...stored, ...Object.fromEntries(keys.map(([name, one]) => [name, { ...key(String(one["name"] ?? "")), ...one, label: one["name"] ?? "" }])) };
}
