// What the forms of alarm rules share, those that are calculated fields and the older ones in device profiles: comparisons and schedules.

import { SEVERITIES } from "@/alarms/alarm";
import { valueAt, type FormField, type FormOption, type FormValues } from "@/ui/form/values";

const DAYS = [
  { value: "1", label: "Monday" }, { value: "2", label: "Tuesday" }, { value: "3", label: "Wednesday" }, { value: "4", label: "Thursday" },
  { value: "5", label: "Friday" }, { value: "6", label: "Saturday" }, { value: "7", label: "Sunday" },
];
const NUMERIC = [
  { value: "GREATER", label: "is greater than" }, { value: "GREATER_OR_EQUAL", label: "is at least" }, { value: "LESS", label: "is less than" },
  { value: "LESS_OR_EQUAL", label: "is at most" }, { value: "EQUAL", label: "equals" }, { value: "NOT_EQUAL", label: "does not equal" },
];
/** How values of each type are compared. */
export const OPERATIONS: Readonly<Record<"NUMERIC" | "STRING" | "BOOLEAN", readonly FormOption[]>> = {
  NUMERIC,
  STRING: [
    { value: "EQUAL", label: "equals" }, { value: "NOT_EQUAL", label: "does not equal" }, { value: "STARTS_WITH", label: "starts with" },
    { value: "ENDS_WITH", label: "ends with" }, { value: "CONTAINS", label: "contains" }, { value: "NOT_CONTAINS", label: "does not contain" },
    { value: "IN", label: "is one of" }, { value: "NOT_IN", label: "is none of" },
  ],
  BOOLEAN: NUMERIC.slice(-2),
};
export const VALUE_TYPES = [{ value: "NUMERIC", label: "Number" }, { value: "STRING", label: "Text" }, { value: "BOOLEAN", label: "True or false" }] as const;
export const JOINED = [{ value: "AND", label: "all are met" }, { value: "OR", label: "one is met" }] as const;
export const SPANS = [{ value: "SIMPLE", label: "at once" }, { value: "DURATION", label: "for a time" }, { value: "REPEATING", label: "several times" }] as const;
export const UNITS = ["SECONDS", "MINUTES", "HOURS", "DAYS"] as const;

export const SEVERITY: FormField = { name: "severity", label: "Severity", type: "select", options: SEVERITIES, required: true, initial: "CRITICAL" };

/** The fields of the rule at `path` that clears an alarm, and whether there is one, which is no value of the alarm itself. */
export function clearFields(path: string, rule: readonly FormField[]): FormField[] {
  return [
    { name: "hasClearRule", label: "A rule clears the alarm", type: "boolean", initial: false },
    ...rule.map((field): FormField => ({
      ...field,
      name: `${path}.${field.name}`,
      when: (values) => values["hasClearRule"] === true && (field.when?.((valueAt(values, path) ?? {}) as FormValues) ?? true),
    })),
  ];
}

/** The fields of a schedule that is stored at `path`. */
export function scheduleFields(path: string): FormField[] {
  const is = (...kinds: string[]) => (values: FormValues): boolean => kinds.includes(String(valueAt(values, `${path}.type`)));
  return [
    {
      name: `${path}.type`, label: "In force", type: "select", required: true, initial: "ANY_TIME", otherwise: "ANY_TIME",
      options: [{ value: "ANY_TIME", label: "always" }, { value: "SPECIFIC_TIME", label: "at given hours" }, { value: "CUSTOM", label: "at hours of each day" }],
    },
    { name: `${path}.timezone`, label: "Time zone", required: true, initial: "UTC", when: is("SPECIFIC_TIME", "CUSTOM") },
    { name: `${path}.daysOfWeek`, label: "Days", type: "several", options: DAYS, when: is("SPECIFIC_TIME") },
    { name: `${path}.startsOn`, label: "From", type: "hours", initial: 0, when: is("SPECIFIC_TIME") },
    { name: `${path}.endsOn`, label: "Until", type: "hours", initial: 0, when: is("SPECIFIC_TIME") },
    {
      name: `${path}.items`, label: "Hours of each day", type: "rows", when: is("CUSTOM"),
      fields: [
        { name: "enabled", label: "In force", type: "boolean", initial: true },
        { name: "dayOfWeek", label: "Day", type: "select", options: DAYS, required: true, initial: "1" },
        { name: "startsOn", label: "From", type: "hours", initial: 0 },
        { name: "endsOn", label: "Until", type: "hours", initial: 0 },
      ],
    },
  ];
}

/** Returns a schedule as it is stored, whose days are numbers; null for always. */
export function storedSchedule(schedule: unknown): FormValues | null {
  const kind = valueAt(schedule, "type");
  if (kind === undefined || kind === null || kind === "ANY_TIME") {
    return null;
  }
  const [days, items] = [valueAt(schedule, "daysOfWeek"), valueAt(schedule, "items")];
  return {
    ...(schedule as FormValues),
    ...(Array.isArray(days) ? { daysOfWeek: days.map(Number) } : {}),
    ...(Array.isArray(items) ? { items: items.map((item: FormValues) => ({ ...item, dayOfWeek: Number(item["dayOfWeek"]) })) } : {}),
  };
}
