// The form of the older alarm rules, which a device profile holds itself: for each type of alarm a rule for each severity, and when it clears.

import { t } from "@/i18n";
import { isObject, valueAt, type FormField, type FormOption, type FormValues } from "@/ui/form/values";
import { clearFields, JOINED, OPERATIONS, scheduleFields, SEVERITY, SPANS, storedSchedule, UNITS, VALUE_TYPES } from "./alarmParts";

export const ALARMS = "profileData.alarms";
/** Whether a filter has several comparisons; the stored one tells by its type. */
const SEVERAL = "several";
const COMPLEX = "COMPLEX";

type Compared = keyof typeof OPERATIONS;

const OWNERS: readonly FormOption[] = [
  { value: "CURRENT_DEVICE", label: "An attribute of the device" },
  { value: "CURRENT_CUSTOMER", label: "An attribute of its customer" },
  { value: "CURRENT_TENANT", label: "An attribute of the tenant" },
];

/** A value to compare with: fixed, or that of an attribute if there is such. */
function operandFields(path: string, value: Omit<FormField, "name" | "label">, when: (values: FormValues) => boolean): FormField[] {
  const source = `${path}.dynamicValue.sourceType`;
  const has = (values: FormValues): boolean => (valueAt(values, source) ?? null) !== null;
  return [
    { name: `${path}.defaultValue`, label: "Value", ...value, when },
    { name: source, label: "rather than it", type: "select", options: OWNERS, when },
    { name: `${path}.dynamicValue.sourceAttribute`, label: "Attribute", required: true, when: (values) => when(values) && has(values) },
    { name: `${path}.dynamicValue.inherit`, label: "else that of its owner", type: "boolean", when: (values) => when(values) && has(values) && valueAt(values, source) !== "CURRENT_TENANT" },
  ];
}

/** How values of a type are compared: times are numbers. */
function comparedAs(row: FormValues): Compared {
  const type = row["valueType"];
  return type === "STRING" || type === "BOOLEAN" ? type : "NUMERIC";
}

const isTime = (row: FormValues): boolean => row["valueType"] === "DATE_TIME";
const VALUES: Record<Compared, Omit<FormField, "name" | "label">> = { NUMERIC: { type: "number" }, STRING: {}, BOOLEAN: { type: "boolean" } };

/** A comparison with one value, whose parts have names that begin with `prefix`. */
function comparison(type: Compared, prefix: string, value: Omit<FormField, "name" | "label">, when: (row: FormValues) => boolean): FormField[] {
  return [
    { name: `${prefix}operation`, label: "Comparison", type: "select", options: OPERATIONS[type], required: true, initial: OPERATIONS[type][0]?.value, when },
    ...operandFields(`${prefix}value`, value, when),
    ...(type === "STRING" ? [{ name: `${prefix}ignoreCase`, label: "Ignore upper and lower case", type: "boolean", when } satisfies FormField] : []),
  ];
}

/** The one comparison of a filter, or its several ones. Those that hold further ones are written as JSON. */
function comparisons(type: Compared, label: string): FormField[] {
  const fits = (row: FormValues): boolean => comparedAs(row) === type;
  const isOne = (row: FormValues): boolean => fits(row) && row[SEVERAL] !== true;
  const nested = (row: FormValues): boolean => row["type"] === COMPLEX;
  return [
    ...(type === "NUMERIC" ? comparison(type, "predicate.", { type: "time" }, (row) => isOne(row) && isTime(row)) : []),
    ...comparison(type, "predicate.", VALUES[type], (row) => isOne(row) && !isTime(row)),
    {
      name: "predicate.predicates", label, type: "rows", when: (row) => fits(row) && row[SEVERAL] === true,
      fields: [
        { name: "type", label: "Kind", initial: type, when: () => false },
        ...comparison(type, "", VALUES[type], (row) => !nested(row)),
        { name: "operation", label: "It is met if", type: "select", options: JOINED, when: nested },
        { name: "predicates", label: "Comparisons within it, as JSON", type: "json", when: nested },
      ],
    },
  ];
}

/** Brings the comparison of a filter in line with the type of its value, and with whether there are several. */
function settleFilter(row: FormValues, before: FormValues): FormValues {
  const type = comparedAs(row);
  const fresh = { type, operation: OPERATIONS[type][0]?.value, value: {} };
  const predicate = isObject(row["predicate"]) ? row["predicate"] : {};
  const isOther = before["valueType"] !== undefined && row["valueType"] !== before["valueType"];
  if (isOther || predicate["type"] === undefined) {
    return { ...row, [SEVERAL]: false, predicate: isOther ? fresh : { ...fresh, ...predicate, type } };
  }
  if (row[SEVERAL] === true && predicate["type"] !== COMPLEX) {
    return { ...row, predicate: { type: COMPLEX, operation: "AND", predicates: [predicate] } };
  }
  if (row[SEVERAL] !== true && predicate["type"] === COMPLEX) {
    const [first] = Array.isArray(predicate["predicates"]) ? (predicate["predicates"] as unknown[]) : [];
    return { ...row, predicate: isObject(first) && first["type"] === type ? first : fresh };
  }
  return row;
}

const spanIs = (...kinds: string[]) => (rule: FormValues): boolean => kinds.includes(String(valueAt(rule, "condition.spec.type")));

const RULE: FormField[] = [
  {
    name: "condition.condition", label: "Conditions, all of which must be met", type: "rows", settle: settleFilter,
    fields: [
      {
        name: "key.type", label: "Kind of value", type: "select", required: true, initial: "TIME_SERIES",
        options: [{ value: "TIME_SERIES", label: "Latest value" }, { value: "ATTRIBUTE", label: "Attribute" }, { value: "ENTITY_FIELD", label: "Field of the device" }, { value: "CONSTANT", label: "Constant" }],
      },
      { name: "key.key", label: "Key", required: true },
      { name: "valueType", label: "Type of value", type: "select", required: true, initial: "NUMERIC", options: [...VALUE_TYPES, { value: "DATE_TIME", label: "Time" }] },
      { name: "value", label: "Value of the constant", when: (row) => valueAt(row, "key.type") === "CONSTANT" },
      { name: SEVERAL, label: "Several comparisons", type: "boolean" },
      { name: "predicate.operation", label: "It is met if", type: "select", options: JOINED, required: true, when: (row) => row[SEVERAL] === true },
      ...comparisons("NUMERIC", "Comparisons with numbers"),
      ...comparisons("STRING", "Comparisons with texts"),
      ...comparisons("BOOLEAN", "Comparisons with yes or no"),
    ],
  },
  { name: "condition.spec.type", label: "Since when", type: "select", required: true, initial: "SIMPLE", otherwise: "SIMPLE", options: SPANS },
  ...operandFields("condition.spec.predicate", { type: "number", required: true }, spanIs("DURATION", "REPEATING")),
  { name: "condition.spec.unit", label: "Unit", type: "select", options: UNITS, required: true, initial: "MINUTES", when: spanIs("DURATION") },
  ...scheduleFields("schedule"),
  { name: "alarmDetails", label: "Details of the alarm", help: "${key} stands for its value" },
  { name: "dashboardId", label: "Dashboard", type: "entity", list: "/api/tenant/dashboards" },
];

function titleOf(row: FormValues): { title: string; note: string } {
  const rules = row["createRules"];
  return { title: String(row["alarmType"] ?? ""), note: (isObject(rules) ? Object.keys(rules) : []).map((severity) => t(severity)).join(", ") };
}

/** The field with all alarm rules of a device profile. */
export const PROFILE_ALARMS: FormField = {
  name: ALARMS, label: "Alarm rules of the profile itself", type: "rows", rowTitle: titleOf,
  help: "The older form, which the node “device profile” of a rule chain evaluates. New rules are better made under “Alarm rules”, where they need no node.",
  fields: [
    { name: "alarmType", label: "Alarm type", required: true },
    { name: "createRules", label: "Rules that raise the alarm", type: "rows", keyed: "severity", fields: [SEVERITY, ...RULE] },
    ...clearFields("clearRule", RULE),
    { name: "propagate", label: "To related entities", type: "boolean" },
    { name: "propagateRelationTypes", label: "Only by these types of relations", type: "texts", when: (row) => row["propagate"] === true },
    { name: "propagateToOwner", label: "To the owner", type: "boolean" },
    { name: "propagateToTenant", label: "To the tenant", type: "boolean" },
  ],
};

const changeEach = (rows: unknown, change: (row: FormValues) => FormValues): FormValues[] => (Array.isArray(rows) ? (rows as unknown[]) : []).filter(isObject).map(change);

/** Changes each rule of an alarm: those that raise it, and the one that clears it. */
function changeRules(alarm: FormValues, change: (rule: FormValues) => FormValues): FormValues {
  const [rules, clears] = [alarm["createRules"], alarm["clearRule"]];
  return {
    ...alarm,
    createRules: Object.fromEntries(Object.entries(isObject(rules) ? rules : {}).map(([severity, rule]) => [severity, change(isObject(rule) ? rule : {})])),
    clearRule: isObject(clears) ? change(clears) : null,
  };
}

const changeFilters = (rule: FormValues, change: (filter: FormValues) => FormValues): FormValues => {
  const condition = isObject(rule["condition"]) ? rule["condition"] : {};
  return { ...rule, condition: { ...condition, condition: changeEach(condition["condition"], change) } };
};

/** Returns stored alarm rules as their form shows them. */
export function shownAlarms(alarms: unknown): unknown {
  return !Array.isArray(alarms) ? alarms : changeEach(alarms, (alarm) => ({
    ...changeRules(alarm, (rule) => changeFilters(rule, (filter) => ({ ...filter, [SEVERAL]: valueAt(filter, "predicate.type") === COMPLEX }))),
    hasClearRule: isObject(alarm["clearRule"]),
  }));
}

/** An attribute that is not named is none. */
function storedOperand(value: unknown): unknown {
  if (!isObject(value)) {
    return value;
  }
  return { ...value, dynamicValue: valueAt(value, "dynamicValue.sourceType") && valueAt(value, "dynamicValue.sourceAttribute") ? value["dynamicValue"] : null };
}

function storedPredicate(predicate: unknown): unknown {
  if (!isObject(predicate)) {
    return predicate;
  }
  return predicate["type"] === COMPLEX ? { ...predicate, predicates: changeEach(predicate["predicates"], (one) => storedPredicate(one) as FormValues) } : { ...predicate, value: storedOperand(predicate["value"]) };
}

/** Since when conditions must be met, without what other kinds of spans have; kinds that are not known keep all. */
function storedSpan(spec: unknown): unknown {
  const { type, unit, predicate, ...rest } = isObject(spec) ? spec : {};
  switch (type ?? "SIMPLE") {
    case "SIMPLE":
      return { ...rest, type: "SIMPLE" };
    case "DURATION":
      return { ...rest, type, unit, predicate: storedOperand(predicate) };
    case "REPEATING":
      return { ...rest, type, predicate: storedOperand(predicate) };
    default:
      return spec;
  }
}

function storedRule(rule: FormValues): FormValues {
  const kept = changeFilters(rule, ({ [SEVERAL]: _several, ...filter }) => ({ ...filter, predicate: storedPredicate(filter["predicate"]) }));
  return { ...kept, condition: { ...(kept["condition"] as FormValues), spec: storedSpan(valueAt(rule, "condition.spec")) }, schedule: storedSchedule(rule["schedule"]) };
}

/** Returns alarm rules of the form as they are stored. A new one is known by its type from then on. */
export function storedAlarms(alarms: unknown): unknown {
  return !Array.isArray(alarms) ? alarms : changeEach(alarms, ({ hasClearRule, ...alarm }) => ({
    id: alarm["alarmType"],
    ...changeRules(hasClearRule === false ? { ...alarm, clearRule: null } : hasClearRule === true ? { ...alarm, clearRule: alarm["clearRule"] ?? {} } : alarm, storedRule),
  }));
}

/** Returns the series that the rules of a profile read. */
export function seriesOfAlarms(alarms: unknown): string[] {
  const names = new Set<string>();
  changeEach(alarms, (alarm) => changeRules(alarm, (rule) => changeFilters(rule, (filter) => {
    const key = valueAt(filter, "key.key");
    if (valueAt(filter, "key.type") === "TIME_SERIES" && typeof key === "string" && key !== "") {
      names.add(key);
    }
    return filter;
  })));
  return [...names];
}
