// The form of alarm rules: arguments, a rule for each severity with its condition and schedule, and when the alarm clears.

import { RULE_TARGETS } from "@/entities/columns";
import { initialValues, valueAt, type FormField, type FormValues } from "@/ui/form/values";
import { clearFields, JOINED, OPERATIONS, scheduleFields, SEVERITY, SPANS, storedSchedule, UNITS, VALUE_TYPES } from "./alarmParts";
import { argumentFields, changeSources, namesOfArguments, settleArgument, storedArgument } from "./argument";
import { targetFields } from "./calculatedField";

const SCHEDULE = "condition.schedule.staticValue";
const is = (path: string, wanted: string) => (values: FormValues): boolean => valueAt(values, path) === wanted;
const isSimple = (values: FormValues): boolean => valueAt(values, "condition.expression.type") !== "TBEL";

function predicate(type: keyof typeof OPERATIONS, valueField: Omit<FormField, "name" | "label">): FormField {
  const fields: FormField[] = [
    { name: "type", label: "Kind", initial: type, when: () => false },
    { name: "operation", label: "Comparison", type: "select", options: OPERATIONS[type], required: true, initial: OPERATIONS[type][0]?.value },
    { name: "value.staticValue", label: "Value", ...valueField, when: (row) => !valueAt(row, "value.dynamicValueArgument") },
    { name: "value.dynamicValueArgument", label: "or the value of this argument", type: "suggest", optionsFrom: namesOfArguments },
    ...(type === "STRING" ? [{ name: "ignoreCase", label: "Ignore upper and lower case", type: "boolean" as const }] : []),
  ];
  return { name: "predicates", label: "Comparisons", type: "rows", when: is("valueType", type), fields, initial: [initialValues(fields, {})] };
}

const PREDICATES = [predicate("NUMERIC", { type: "number" }), predicate("STRING", {}), predicate("BOOLEAN", { type: "boolean", initial: true })];

/** Values of another type are compared in other ways. */
function settleFilter(row: FormValues, before: FormValues): FormValues {
  const isOther = before["valueType"] !== undefined && row["valueType"] !== before["valueType"];
  return isOther ? { ...row, predicates: PREDICATES.find((one) => one.when?.(row))?.initial } : row;
}

const FILTER: FormField[] = [
  { name: "argument", label: "Argument name", type: "suggest", optionsFrom: namesOfArguments, required: true },
  { name: "valueType", label: "Type of value", type: "select", options: VALUE_TYPES, required: true, initial: "NUMERIC" },
  { name: "operation", label: "It is met if", type: "select", options: JOINED, required: true, initial: "AND" },
  ...PREDICATES,
];

const RULE: FormField[] = [
  { name: "condition.expression.type", label: "Condition", type: "select", options: [{ value: "SIMPLE", label: "Comparisons" }, { value: "TBEL", label: "Script (TBEL)" }], required: true, initial: "SIMPLE" },
  { name: "condition.expression.operation", label: "It is met if", type: "select", options: JOINED, required: true, initial: "AND", when: isSimple },
  {
    name: "condition.expression.filters", label: "Filters", type: "rows", when: isSimple, settle: settleFilter, fields: FILTER,
    begin: [initialValues(FILTER, {})],
  },
  { name: "condition.expression.expression", label: "Script (TBEL)", type: "code", help: "Returns true when the condition is met.", when: is("condition.expression.type", "TBEL") },
  { name: "condition.type", label: "Since when", type: "select", required: true, initial: "SIMPLE", options: SPANS },
  { name: "condition.value.staticValue", label: "Duration", type: "number", required: true, when: is("condition.type", "DURATION") },
  { name: "condition.unit", label: "Unit", type: "select", options: UNITS, required: true, initial: "MINUTES", when: is("condition.type", "DURATION") },
  { name: "condition.count.staticValue", label: "Times", type: "number", required: true, when: is("condition.type", "REPEATING") },
  ...scheduleFields(SCHEDULE),
  { name: "alarmDetails", label: "Details of the alarm", help: "${argument} stands for its value" },
  { name: "dashboardId", label: "Dashboard", type: "entity", list: "/api/tenant/dashboards" },
];

const ARGUMENT = argumentFields({ others: true });
const RAISE = [SEVERITY, ...RULE];

/** A new rule begins with one value and one comparison of it, which is what most rules are. */
export const ALARM_RULE_FORM: FormField[] = [
  { name: "name", label: "Alarm type", required: true },
  ...targetFields(RULE_TARGETS),
  { name: "configuration.arguments", label: "Arguments", type: "rows", keyed: "name", settle: settleArgument, fields: ARGUMENT, begin: [initialValues(ARGUMENT, {})] },
  {
    name: "configuration.createRules", label: "Rules that raise the alarm", type: "rows", keyed: "severity",
    fields: RAISE, begin: [initialValues(RAISE, {})],
  },
  ...clearFields("configuration.clearRule", RULE),
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
  const schedule = storedSchedule(valueAt(condition, "schedule.staticValue"));
  // One that an argument holds is not in the form, and stays.
  const isOfArgument = Boolean(valueAt(condition, "schedule.dynamicValueArgument"));
  return { ...rule, condition: { ...condition, schedule: isOfArgument ? condition["schedule"] : schedule === null ? null : { staticValue: schedule } } };
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
