// The form of alarm rules: arguments, a rule for each severity with its condition and schedule, and when the alarm clears.

import { valueAt, type FormField, type FormValues } from "@/ui/form/values";
import { argumentFields, changeSources, settleSource, storedArgument } from "./argument";
import { TARGETS, targetFields } from "./calculatedField";

const SEVERITIES = ["CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE"];
const DAYS = [
  { value: "1", label: "Monday" }, { value: "2", label: "Tuesday" }, { value: "3", label: "Wednesday" }, { value: "4", label: "Thursday" },
  { value: "5", label: "Friday" }, { value: "6", label: "Saturday" }, { value: "7", label: "Sunday" },
];
const NUMERIC = [
  { value: "GREATER", label: "is greater than" }, { value: "GREATER_OR_EQUAL", label: "is at least" }, { value: "LESS", label: "is less than" },
  { value: "LESS_OR_EQUAL", label: "is at most" }, { value: "EQUAL", label: "equals" }, { value: "NOT_EQUAL", label: "does not equal" },
];
const TEXT = [
  { value: "EQUAL", label: "equals" }, { value: "NOT_EQUAL", label: "does not equal" }, { value: "STARTS_WITH", label: "starts with" },
  { value: "ENDS_WITH", label: "ends with" }, { value: "CONTAINS", label: "contains" }, { value: "NOT_CONTAINS", label: "does not contain" },
];
const FLAG = NUMERIC.slice(-2);

const is = (path: string, wanted: string) => (values: FormValues): boolean => valueAt(values, path) === wanted;
const isSimple = (values: FormValues): boolean => valueAt(values, "condition.expression.type") !== "TBEL";
const isScheduled = (kind: string) => (values: FormValues): boolean => valueAt(values, "condition.schedule.staticValue.type") === kind;
const SCHEDULE = "condition.schedule.staticValue";

const predicate = (type: string, options: typeof NUMERIC, valueField: Omit<FormField, "name" | "label">): FormField => ({
  name: "predicates", label: "Comparisons", type: "rows", when: is("valueType", type),
  fields: [
    { name: "type", label: "Kind", initial: type, when: () => false },
    { name: "operation", label: "Comparison", type: "select", options, required: true, initial: options[0]?.value },
    { name: "value.staticValue", label: "Value", ...valueField, when: (row) => !valueAt(row, "value.dynamicValueArgument") },
    { name: "value.dynamicValueArgument", label: "or the value of this argument" },
    ...(type === "STRING" ? [{ name: "ignoreCase", label: "Ignore upper and lower case", type: "boolean" as const }] : []),
  ],
});

const RULE: FormField[] = [
  { name: "condition.expression.type", label: "Condition", type: "select", options: [{ value: "SIMPLE", label: "Comparisons" }, { value: "TBEL", label: "Script (TBEL)" }], required: true, initial: "SIMPLE" },
  { name: "condition.expression.operation", label: "It is met if", type: "select", options: [{ value: "AND", label: "all are met" }, { value: "OR", label: "one is met" }], required: true, initial: "AND", when: isSimple },
  {
    name: "condition.expression.filters", label: "Filters", type: "rows", when: isSimple,
    fields: [
      { name: "argument", label: "Argument name", required: true },
      { name: "valueType", label: "Type of value", type: "select", options: [{ value: "NUMERIC", label: "Number" }, { value: "STRING", label: "Text" }, { value: "BOOLEAN", label: "True or false" }], required: true, initial: "NUMERIC" },
      { name: "operation", label: "It is met if", type: "select", options: [{ value: "AND", label: "all are met" }, { value: "OR", label: "one is met" }], required: true, initial: "AND" },
      predicate("NUMERIC", NUMERIC, { type: "number" }),
      predicate("STRING", TEXT, {}),
      predicate("BOOLEAN", FLAG, { type: "boolean", initial: true }),
    ],
  },
  { name: "condition.expression.expression", label: "Script (TBEL)", type: "code", help: "Returns true when the condition is met.", when: is("condition.expression.type", "TBEL") },
  {
    name: "condition.type", label: "Since when", type: "select", required: true, initial: "SIMPLE",
    options: [{ value: "SIMPLE", label: "at once" }, { value: "DURATION", label: "for a time" }, { value: "REPEATING", label: "several times" }],
  },
  { name: "condition.value.staticValue", label: "Duration", type: "number", required: true, when: is("condition.type", "DURATION") },
  { name: "condition.unit", label: "Unit", type: "select", options: ["SECONDS", "MINUTES", "HOURS", "DAYS"], required: true, initial: "MINUTES", when: is("condition.type", "DURATION") },
  { name: "condition.count.staticValue", label: "Times", type: "number", required: true, when: is("condition.type", "REPEATING") },
  {
    name: `${SCHEDULE}.type`, label: "In force", type: "select", required: true, initial: "ANY_TIME",
    options: [{ value: "ANY_TIME", label: "always" }, { value: "SPECIFIC_TIME", label: "at given hours" }, { value: "CUSTOM", label: "at hours of each day" }],
  },
  { name: `${SCHEDULE}.timezone`, label: "Time zone", required: true, initial: "UTC", when: (values) => !isScheduled("ANY_TIME")(values) },
  { name: `${SCHEDULE}.daysOfWeek`, label: "Days", type: "several", options: DAYS, when: isScheduled("SPECIFIC_TIME") },
  { name: `${SCHEDULE}.startsOn`, label: "From", type: "hours", initial: 0, when: isScheduled("SPECIFIC_TIME") },
  { name: `${SCHEDULE}.endsOn`, label: "Until", type: "hours", initial: 0, when: isScheduled("SPECIFIC_TIME") },
  {
    name: `${SCHEDULE}.items`, label: "Hours of each day", type: "rows", when: isScheduled("CUSTOM"),
    fields: [
      { name: "enabled", label: "In force", type: "boolean", initial: true },
      { name: "dayOfWeek", label: "Day", type: "select", options: DAYS, required: true, initial: "1" },
      { name: "startsOn", label: "From", type: "hours", initial: 0 },
      { name: "endsOn", label: "Until", type: "hours", initial: 0 },
    ],
  },
  { name: "alarmDetails", label: "Details of the alarm", help: "${argument} stands for its value" },
  { name: "dashboardId", label: "Dashboard", type: "entity", list: "/api/tenant/dashboards" },
];

export const ALARM_RULE_FORM: FormField[] = [
  { name: "name", label: "Alarm type", required: true },
  ...targetFields([...TARGETS, { value: "CUSTOMER", label: "Customer", list: "/api/customers" }]),
  { name: "configuration.arguments", label: "Arguments", type: "rows", keyed: "name", settle: settleSource, fields: argumentFields({ others: true }) },
  {
    name: "configuration.createRules", label: "Rules that raise the alarm", type: "rows", keyed: "severity",
    fields: [{ name: "severity", label: "Severity", type: "select", options: SEVERITIES, required: true, initial: "CRITICAL" }, ...RULE],
  },
  { name: "hasClearRule", label: "A rule clears the alarm", type: "boolean" },
  ...RULE.map((field): FormField => ({
    ...field,
    name: `configuration.clearRule.${field.name}`,
    when: (values) => {
      const rule = valueAt(values, "configuration.clearRule");
      return values["hasClearRule"] === true && (field.when?.((rule ?? {}) as FormValues) ?? true);
    },
  })),
  { name: "", label: "Propagation", type: "heading" },
  { name: "configuration.propagate", label: "To related entities", type: "boolean" },
  { name: "configuration.propagateRelationTypes", label: "Only by these types of relations", type: "texts", when: (values) => valueAt(values, "configuration.propagate") === true },
  { name: "configuration.propagateToOwner", label: "To the owner", type: "boolean" },
  { name: "configuration.propagateToTenant", label: "To the tenant", type: "boolean" },
  { name: "debugSettings.failuresEnabled", label: "Keep failures as events", type: "boolean" },
  { name: "debugSettings.allEnabled", label: "Keep all evaluations as events for a while", type: "boolean" },
];

function completeRule(rule: FormValues): FormValues {
  const condition = (rule["condition"] ?? {}) as FormValues;
  const kind = valueAt(condition, "schedule.staticValue.type");
  const days = valueAt(condition, "schedule.staticValue.daysOfWeek");
  const items = valueAt(condition, "schedule.staticValue.items");
  const schedule = {
    ...(valueAt(condition, "schedule.staticValue") as FormValues | undefined),
    ...(Array.isArray(days) ? { daysOfWeek: days.map(Number) } : {}),
    ...(Array.isArray(items) ? { items: items.map((item: FormValues) => ({ ...item, dayOfWeek: Number(item["dayOfWeek"]) })) } : {}),
  };
  return { ...rule, condition: { ...condition, schedule: kind === undefined || kind === "ANY_TIME" ? null : { staticValue: schedule } } };
}

/** Completes the values of an alarm rule as the server wants them. */
export function completeAlarmRule(values: FormValues, tenantId?: string): FormValues {
  const { hasClearRule, ...rest } = values;
  const configuration = (rest["configuration"] ?? {}) as FormValues;
  const rules = Object.entries((configuration["createRules"] ?? {}) as Record<string, FormValues>);
  return {
    ...rest,
    type: "ALARM",
    configuration: {
      ...changeSources({ arguments: {}, ...configuration }, (row) => storedArgument(row, tenantId), (row) => row),
      type: "ALARM",
      createRules: Object.fromEntries(rules.map(([severity, rule]) => [severity, completeRule(rule)])),
      clearRule: hasClearRule === true ? completeRule((configuration["clearRule"] ?? {}) as FormValues) : null,
    },
  };
}
