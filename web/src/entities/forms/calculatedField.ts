// The form of calculated fields: the target, arguments, what is computed, and the output, for each type.

import { FIELD_TARGETS, FIELD_TYPES } from "@/entities/columns";
import { valueAt, type FormField, type FormValues } from "@/ui/form/values";
import { argumentFields, changeSources, DIRECTIONS, namesOfArguments, SCOPES, settleSource, settleArgument, sourceFields, storedArgument, storedSource } from "./argument";

const typeIs = (...types: string[]) => (values: FormValues): boolean => types.includes(String(values["type"] ?? ""));

/** The entity that a field or rule belongs to; it can't be changed later. */
export function targetFields(types: { value: string; label: string; list: string }[]): FormField[] {
  return [
    { name: "entityId.entityType", label: "Kind of target", type: "select", options: types.map(({ value, label }) => ({ value, label })), required: true, initial: types[0]?.value, clears: "entityId.id", once: true },
    ...types.map(({ value, label, list }): FormField => ({
      name: "entityId", label, type: "entity", list, required: true, once: true,
      when: (values) => valueAt(values, "entityId.entityType") === value,
    })),
  ];
}

/** Whether a field takes values of its own entity alone. */
const isOwnOnly = (values: FormValues): boolean =>
  typeIs("RELATED_ENTITIES_AGGREGATION", "ENTITY_AGGREGATION")(values) || (values["type"] === "PROPAGATION" && valueAt(values, "configuration.applyExpressionToResolvedArguments") !== true);

const isMetricField = typeIs("RELATED_ENTITIES_AGGREGATION", "ENTITY_AGGREGATION");
const C = "configuration";

export const CALCULATED_FIELD_FORM: FormField[] = [
  { name: "name", label: "Name", required: true },
  {
    name: "type", label: "Type", type: "select", required: true, initial: "SIMPLE", once: true,
    options: Object.entries(FIELD_TYPES).map(([value, label]) => ({ value, label })),
  },
  ...targetFields(FIELD_TARGETS),
  { name: `${C}.relation.direction`, label: "Direction", type: "select", options: DIRECTIONS, initial: "FROM", when: typeIs("PROPAGATION", "RELATED_ENTITIES_AGGREGATION") },
  { name: `${C}.relation.relationType`, label: "Relation type", initial: "Contains", when: typeIs("PROPAGATION", "RELATED_ENTITIES_AGGREGATION") },
  ...[
    { fields: argumentFields({ others: true }), when: typeIs("SIMPLE") },
    { fields: argumentFields({ others: true, windows: true }), when: (values: FormValues) => typeIs("SCRIPT", "PROPAGATION")(values) && !isOwnOnly(values) },
    { fields: argumentFields({}), when: (values: FormValues) => isOwnOnly(values) && !typeIs("ENTITY_AGGREGATION")(values) },
    { fields: argumentFields({ attributes: false }), when: typeIs("ENTITY_AGGREGATION") },
  ].map(({ fields, when }): FormField => ({ name: `${C}.arguments`, label: "Arguments", type: "rows", keyed: "name", settle: settleArgument, fields, when })),
  { name: `${C}.applyExpressionToResolvedArguments`, label: "A script makes the result", type: "boolean", when: typeIs("PROPAGATION") },
  { name: `${C}.expression`, label: "Expression", required: true, help: "For example celsius * 1.8 + 32", when: typeIs("SIMPLE") },
  {
    name: `${C}.expression`, label: "Script (TBEL)", type: "code", help: "Arguments are variables; return an object of values.",
    when: (values) => values["type"] === "SCRIPT" || (values["type"] === "PROPAGATION" && valueAt(values, `${C}.applyExpressionToResolvedArguments`) === true),
  },
  { name: `${C}.entityCoordinates.latitudeKeyName`, label: "Key of the latitude", initial: "latitude", when: typeIs("GEOFENCING") },
  { name: `${C}.entityCoordinates.longitudeKeyName`, label: "Key of the longitude", initial: "longitude", when: typeIs("GEOFENCING") },
  {
    name: `${C}.zoneGroups`, label: "Groups of zones", type: "rows", keyed: "name", settle: settleSource, when: typeIs("GEOFENCING"),
    fields: [
      { name: "name", label: "Group name", required: true },
      ...sourceFields("Zone", true),
      { name: "perimeterKeyName", label: "Attribute of the perimeter", required: true, initial: "zone" },
      {
        name: "reportStrategy", label: "Reports", type: "select", required: true, initial: "REPORT_TRANSITION_EVENTS_AND_PRESENCE_STATUS",
        options: [
          { value: "REPORT_TRANSITION_EVENTS_AND_PRESENCE_STATUS", label: "Entering, leaving and presence" },
          { value: "REPORT_TRANSITION_EVENTS_ONLY", label: "Entering and leaving" },
          { value: "REPORT_PRESENCE_STATUS_ONLY", label: "Presence" },
        ],
      },
      { name: "createRelationsWithMatchedZones", label: "Relate the entity to the zones it is in", type: "boolean", initial: false },
      { name: "relationType", label: "Relation type", when: (values) => values["createRelationsWithMatchedZones"] === true },
      { name: "direction", label: "Direction", type: "select", options: DIRECTIONS, when: (values) => values["createRelationsWithMatchedZones"] === true },
    ],
  },
  { name: `${C}.scheduledUpdateEnabled`, label: "Look again for related zones", type: "boolean", when: typeIs("GEOFENCING") },
  {
    name: `${C}.scheduledUpdateInterval`, label: "How often, s", type: "number", required: true, initial: 60,
    when: (values) => typeIs("GEOFENCING")(values) && valueAt(values, `${C}.scheduledUpdateEnabled`) === true,
  },
  { name: `${C}.deduplicationIntervalInSec`, label: "At most every, s", type: "number", initial: 60, when: typeIs("RELATED_ENTITIES_AGGREGATION") },
  {
    name: `${C}.interval.type`, label: "Interval", type: "select", initial: "HOUR", when: typeIs("ENTITY_AGGREGATION"),
    options: ["HOUR", "DAY", "WEEK", "WEEK_SUN_SAT", "MONTH", "QUARTER", "YEAR", "CUSTOM"],
  },
  { name: `${C}.interval.tz`, label: "Time zone", initial: "UTC", when: typeIs("ENTITY_AGGREGATION") },
  { name: `${C}.interval.durationSec`, label: "Length, s", type: "number", when: (values) => valueAt(values, `${C}.interval.type`) === "CUSTOM" && values["type"] === "ENTITY_AGGREGATION" },
  { name: `${C}.produceIntermediateResult`, label: "Results before the interval ends, too", type: "boolean", when: typeIs("ENTITY_AGGREGATION") },
  {
    name: `${C}.metrics`, label: "Metrics", type: "rows", keyed: "name", when: isMetricField,
    fields: [
      { name: "name", label: "Metric name", required: true },
      { name: "function", label: "Function", type: "select", options: ["MIN", "MAX", "SUM", "AVG", "COUNT", "COUNT_UNIQUE"], required: true, initial: "AVG" },
      { name: "input.type", label: "Input", type: "select", options: [{ value: "key", label: "Argument" }, { value: "function", label: "Script" }], required: true, initial: "key" },
      { name: "input.key", label: "Argument name", type: "suggest", optionsFrom: namesOfArguments, required: true, when: (values) => valueAt(values, "input.type") !== "function" },
      { name: "input.function", label: "Script (TBEL)", type: "code", when: (values) => valueAt(values, "input.type") === "function" },
      { name: "filter", label: "Counts if (TBEL)", type: "code" },
      { name: "defaultValue", label: "Value when there is none", type: "number" },
    ],
  },
  { name: "", label: "Output", type: "heading" },
  { name: `${C}.output.type`, label: "Stored as", type: "select", options: [{ value: "TIME_SERIES", label: "Time series" }, { value: "ATTRIBUTES", label: "Attributes" }], required: true, initial: "TIME_SERIES" },
  { name: `${C}.output.name`, label: "Key", required: true, when: typeIs("SIMPLE") },
  { name: `${C}.output.scope`, label: "Scope", type: "select", options: SCOPES, initial: "SERVER_SCOPE", when: (values) => valueAt(values, `${C}.output.type`) === "ATTRIBUTES" },
  { name: `${C}.output.decimalsByDefault`, label: "Decimals", type: "number" },
  { name: `${C}.output.strategy.type`, label: "What becomes of results", type: "select", initial: "RULE_CHAIN", options: [{ value: "RULE_CHAIN", label: "They go through the rule chain" }, { value: "IMMEDIATE", label: "They are stored at once" }] },
  ...(["saveTimeSeries", "saveLatest", "sendWsUpdate", "processCfs"] as const).map((name): FormField => ({
    name: `${C}.output.strategy.${name}`,
    label: { saveTimeSeries: "Store the series", saveLatest: "Store the latest value", sendWsUpdate: "Tell those who look", processCfs: "Evaluate other calculated fields" }[name],
    type: "boolean",
    initial: true,
    when: (values) => valueAt(values, `${C}.output.strategy.type`) === "IMMEDIATE" && valueAt(values, `${C}.output.type`) !== "ATTRIBUTES",
  })),
  { name: `${C}.useLatestTs`, label: "Results have the time of the newest argument", type: "boolean", when: typeIs("SIMPLE", "RELATED_ENTITIES_AGGREGATION") },
  { name: "", label: "Debugging", type: "heading" },
  { name: "debugSettings.failuresEnabled", label: "Keep failures as events", type: "boolean" },
  { name: "debugSettings.allEnabled", label: "Keep all evaluations as events for a while", type: "boolean" },
];

/** Completes the values of a calculated field as the server wants them, without settings of other types. */
export function completeField(values: FormValues, tenantId?: string): FormValues {
  const configuration = { ...((values["configuration"] ?? {}) as FormValues), type: values["type"] };
  const shown = (path: string): boolean => CALCULATED_FIELD_FORM.some((field) => field.name.startsWith(`${C}.${path}`) && (field.when?.(values) ?? true));
  const kept = Object.fromEntries(
    Object.entries(configuration).filter(([name]) => name === "type" || shown(name) || !CALCULATED_FIELD_FORM.some((field) => field.name.startsWith(`${C}.${name}`))),
  );
  const output = (kept["output"] ?? {}) as FormValues;
  const strategy = (output["strategy"] ?? {}) as FormValues;
  const isRuleChain = strategy["type"] !== "IMMEDIATE";
  return {
    ...values,
    configuration: {
      ...changeSources(kept, (row) => storedArgument(row, tenantId, isOwnOnly(values)), (row) => storedSource(row, tenantId)),
      output: { ...output, strategy: isRuleChain ? { type: "RULE_CHAIN" } : strategy },
    },
  };
}
