// What a form is made of, and reading and writing values by their dotted path.

import { titleOf } from "@/ui/words";
import type { FormAround } from "./around";

export type FormValues = Record<string, unknown>;

export interface FormOption {
  value: string;
  label: string;
}

/** A choice whose value is more than a text. */
export interface FormChoice {
  value: unknown;
  label: string;
}

export interface FormField {
  /** Path of the value: names joined by dots. A heading needs none. */
  name: string;
  label: string;
  type?:
    | "text" | "number" | "boolean" | "long" | "password" | "select" | "several" | "entity" | "texts" | "json" | "code" | "rows" | "rates" | "heading"
    | "time" | "hours" | "suggest" | "color" | "value" | "choice" | "choices" | "unit" | "image" | "words" | "entities" | "own";
  required?: boolean;
  help?: string;
  /** Choices of `select` and `several`; those of `suggest` and `texts` may be left for another text. */
  options?: readonly (string | FormOption)[];
  /** Of `entity`: where entities are listed; a dotted path in braces is taken from the values. Of `entities`, whose value is plain ids: their type. */
  list?: string;
  /** Of `entity`: the property that is the value, instead of the id with its type; `id` is the plain id. */
  pick?: string;
  /** Of `entity` with a plain id: what stands before the id in the path of one. */
  one?: string;
  /** Whether the field is shown, by the values around it. */
  when?: (values: FormValues) => boolean;
  /** The least and the greatest `number`. */
  least?: number;
  most?: number;
  /** Of `own`: under which name what is around the form draws it; where nothing does, it is JSON. */
  drawnBy?: string;
  /** Of `own`: whether it is no wider than a text. */
  slim?: boolean;
  /** Fields of each of the `rows`. */
  fields?: readonly FormField[];
  /** Choices of `choice` and `choices`, whose values may be of any type, by the values around them. */
  choicesOf?: (values: FormValues) => readonly FormChoice[];
  /** What is wrong with a text. */
  problem?: (text: string) => string | undefined;
  /** Further choices of `select`, `suggest` and `words`, by what is around the form. */
  optionsFrom?: (around: FormAround) => readonly FormOption[];
  /** Of `rows`: what names one of them, with a note. Rows that have a name are shut until somebody opens them. */
  rowTitle?: (row: FormValues, around: FormAround) => { title: string; note: string };
  /** Of `rows`: brings the rest of one in line with what was changed in it; it begins with nothing before. */
  settle?: (row: FormValues, before: FormValues) => FormValues;
  /** `rows` are a map with this field of theirs as its key. */
  keyed?: string;
  /** Of a map: new rows are called so, with a number behind it. Their key is no field of the form, but stays in each of them. */
  keyPrefix?: string;
  /** The rows where none are stored. */
  begin?: readonly FormValues[];
  /** What holds, and is shown, where there is no value. */
  otherwise?: boolean | string | number;
  /** Value of a new entity or row. */
  initial?: unknown;
  /** Path of a value that goes when this one is another: it was chosen for the one before. */
  clears?: string;
  /** Whether its value opens something, so that this browser must not keep it. Passwords are secret anyway. */
  secret?: boolean;
  /** Whether it can be set only when the entity is created. */
  once?: boolean;
}

export const isObject = (value: unknown): value is FormValues => typeof value === "object" && value !== null && !Array.isArray(value);

export function valueAt(values: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), values);
}

/** Returns the values with another one at a path; whatever else they hold stays. */
export function withValue(values: FormValues, path: string, value: unknown): FormValues {
  const [name = "", ...rest] = path.split(".");
  const inner = values[name];
  return { ...values, [name]: rest.length === 0 ? value : withValue(isObject(inner) ? inner : {}, rest.join("."), value) };
}

/** Returns the values with another one for a field. */
export function withField(values: FormValues, field: FormField, value: unknown): FormValues {
  const next = withValue(values, field.name, value);
  return field.clears === undefined || valueAt(values, field.name) === value ? next : withValue(next, field.clears, null);
}

/** Fills in what fields begin with, where there is no value. */
export function initialValues(fields: readonly FormField[], values: FormValues): FormValues {
  return fields.reduce(
    (filled, { name, initial }) => (initial === undefined || (valueAt(filled, name) ?? null) !== null ? filled : withValue(filled, name, initial)),
    values,
  );
}

/** Returns a key that no row has yet. */
export function freeKey(rows: readonly FormValues[], keyed: string, prefix: string): string {
  const taken = new Set(rows.map((row) => row[keyed]));
  let n = 1;
  while (taken.has(`${prefix}${n}`)) {
    n++;
  }
  return `${prefix}${n}`;
}

/** Makes rows of a stored list, or of a map whose keys go to a field of the rows. */
export function toRows(value: unknown, keyed?: string): FormValues[] {
  if (Array.isArray(value)) {
    return value.filter(isObject);
  }
  return keyed !== undefined && isObject(value) ? Object.entries(value).map(([key, row]) => ({ ...(isObject(row) ? row : {}), [keyed]: key })) : [];
}

/** Makes what is stored of rows; `keepsKey` leaves the key of a map in its rows, too. */
export function fromRows(rows: readonly FormValues[], keyed?: string, keepsKey = false): unknown {
  if (keyed === undefined) {
    return rows;
  }
  return Object.fromEntries(
    rows.flatMap(({ [keyed]: key, ...row }) => (typeof key === "string" && key !== "" ? [[key, keepsKey ? { ...row, [keyed]: key } : row] as const] : [])),
  );
}

/** Constants whose own words are short for others. */
const NAMES: Readonly<Record<string, string>> = { ALARM_ACK: "Alarm acknowledged", ALARM_CLEAR: "Alarm cleared", ALARM_DELETE: "Alarm deleted" };

/** Reads `NEXT_PLAIN_NAME` as words. */
export function wordsOf(name: string): string {
  return NAMES[name] ?? (/^[A-Z][A-Z0-9_]*$/.test(name) ? titleOf(name.split("_")) : name);
}

export interface RateLimit {
  count: number;
  seconds: number;
}

/** Reads limits such as `100:1,2000:60`. */
export function ratesOf(text: string): RateLimit[] {
  return text.split(",").flatMap((part) => {
    const [count, seconds] = part.split(":").map(Number);
    return count !== undefined && seconds !== undefined && count > 0 && seconds > 0 ? [{ count, seconds }] : [];
  });
}

export function ratesText(limits: readonly RateLimit[]): string | null {
  const text = limits.filter(({ count, seconds }) => count > 0 && seconds > 0).map(({ count, seconds }) => `${count}:${seconds}`).join(",");
  return text === "" ? null : text;
}

/** Kinds of values that somebody can give where any is allowed. */
export const VALUE_KINDS = [
  { value: "BOOLEAN", label: "Yes or no", empty: false },
  { value: "DOUBLE", label: "Number", empty: 0 },
  { value: "STRING", label: "Text", empty: "" },
  { value: "JSON", label: "JSON", empty: {} },
] as const;
export type ValueKind = (typeof VALUE_KINDS)[number]["value"];

export function kindOfValue(value: unknown): ValueKind {
  return typeof value === "boolean" ? "BOOLEAN" : typeof value === "number" ? "DOUBLE" : typeof value === "object" && value !== null ? "JSON" : "STRING";
}

/** Returns the text of a stored function, which stands alone or beside the modules that it needs. */
export function codeText(stored: unknown): string {
  const body = isObject(stored) ? stored["body"] : stored;
  return typeof body === "string" ? body : "";
}

/** Returns a stored function with another text; its modules stay. */
export function withCode(stored: unknown, body: string): unknown {
  return isObject(stored) && "body" in stored ? { ...stored, body } : body;
}

/** Returns a unit for all systems as one for each, and the other way round. */
export function unitForSystems(unit: unknown, each: boolean): unknown {
  const from = isObject(unit) ? unit["from"] : unit;
  const one = typeof from === "string" ? from : "";
  return each ? { METRIC: one, IMPERIAL: one, HYBRID: one, ...(isObject(unit) ? unit : {}), from: one } : one;
}
