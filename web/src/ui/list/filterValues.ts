// Values of a form of filters as the address has them: all of them texts.

import { isObject, type FormField, type FormValues } from "@/ui/form/values";

/** Writes a value as a text; nothing where it filters nothing. */
function filterText(field: FormField, value: unknown): string {
  if (value === undefined || value === null || value === "" || value === false) {
    return "";
  }
  if (field.type === "entity" && isObject(value)) {
    return `${String(value["entityType"])}/${String(value["id"])}`;
  }
  return Array.isArray(value) ? value.join(",") : String(value);
}

/** Reads a text of the address. */
function filterValue(field: FormField, text: string): unknown {
  switch (field.type) {
    case "boolean":
      return text === "true";
    case "number":
    case "time":
      return text === "" || !Number.isFinite(Number(text)) ? null : Number(text);
    case "several":
      return text === "" ? [] : text.split(",");
    case "entity": {
      const [entityType, id] = text.split("/");
      return entityType === undefined || id === undefined || id === "" ? null : { entityType, id };
    }
    default:
      return text;
  }
}

export function filterForm(fields: readonly FormField[], texts: Readonly<Record<string, string>>): FormValues {
  return Object.fromEntries(fields.map((field) => [field.name, filterValue(field, texts[field.name] ?? "")]));
}

const hides = (field: FormField, form: FormValues): boolean => field.when !== undefined && !field.when(form);

/** Returns the texts of a form. What a choice has hidden filters nothing any more. */
export function filterTexts(fields: readonly FormField[], form: FormValues): Record<string, string> {
  const texts: Record<string, string> = Object.fromEntries(fields.map(({ name }) => [name, ""]));
  for (const field of fields.filter((one) => !hides(one, form))) {
    texts[field.name] = filterText(field, form[field.name]);
  }
  return texts;
}

/** Returns how many fields narrow a list. */
export function filtersSet(fields: readonly FormField[], texts: Readonly<Record<string, string>>): number {
  return new Set(fields.filter(({ name }) => (texts[name] ?? "") !== "").map(({ name }) => name)).size;
}

/** What a list shows of time: up to now, or between two moments. */
export const TIME_FILTERS: readonly FormField[] = [
  { name: "from", label: "From", type: "time" },
  { name: "to", label: "Until", type: "time" },
];
export const TIME_NAMES = ["last", "from", "to"] as const;

/** Returns the times that a list is asked for; a moment goes before the last so many milliseconds. */
export function timesOf(texts: Readonly<Record<string, string>>, usual: number | undefined, now: number): { startTime?: number; endTime?: number } {
  const read = (name: string): number | undefined => (Number(texts[name]) > 0 ? Number(texts[name]) : undefined);
  const [from, to, last] = [read("from"), read("to"), read("last") ?? usual];
  if (from !== undefined || to !== undefined) {
    // The input has minutes; the last one belongs to the time.
    return { ...(from === undefined ? {} : { startTime: from }), ...(to === undefined ? {} : { endTime: to + 59_999 }) };
  }
  return last === undefined ? {} : { startTime: now - last };
}
