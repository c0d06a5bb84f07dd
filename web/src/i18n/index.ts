// Texts in the language of the person. English texts are the keys, so that English is always complete.

import { useSyncExternalStore } from "react";
import { dateFormat, numberFormat, pluralRules } from "./formats";

/** Languages by their own names. */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;
type Texts = Record<string, string>;

const STORED = "fieldline_language";
let texts: Texts = {};
let language: Language = "en";
const listeners = new Set<() => void>();

function known(tag: string | null | undefined): Language | undefined {
  const short = tag?.slice(0, 2).toLowerCase();
  return short === "de" || short === "en" ? short : undefined;
}

/** Loads the texts of the language that was chosen on this browser, or else of the browser itself. */
export async function startLanguage(): Promise<void> {
  await use(known(localStorage.getItem(STORED)) ?? known(navigator.language) ?? "en");
}

/** Takes the language of a person's profile, unless another one was chosen on this browser. */
export async function takeLanguage(ofProfile: string | null | undefined): Promise<void> {
  const wanted = localStorage.getItem(STORED) === null ? known(ofProfile) : undefined;
  if (wanted !== undefined && wanted !== language) {
    await use(wanted);
  }
}

/** Changes the language, which this browser remembers. */
export async function setLanguage(wanted: Language): Promise<void> {
  localStorage.setItem(STORED, wanted);
  await use(wanted);
}

async function use(wanted: Language): Promise<void> {
  if (wanted === "de") {
    const [nodes, server, own] = await Promise.all([import("./de.nodes.json"), import("./de.server.json"), import("./de.json")]);
    // What the server says, of the nodes of rule chains and of what it refuses, has files of its own.
    texts = { ...nodes.default, ...server.default, ...own.default };
  } else {
    texts = {};
  }
  language = wanted;
  document.documentElement.lang = wanted;
  listeners.forEach((listener) => listener());
}

/** The language of the moment. */
export const currentLanguage = (): Language => language;

export function useLanguage(): Language {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => language,
  );
}

/** Fills the `{placeholders}` of a text. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** Translates an English text. Numbers are written as the language does. */
export function t(text: string, values: Record<string, string | number> = {}): string {
  const written = Object.entries(values).map(([name, value]): [string, string] => [name, typeof value === "number" ? formatNumber(value) : value]);
  return fill(texts[text] ?? text, Object.fromEntries(written));
}

/** Translates a text with a count in the form that the language has for it. */
export function plural(n: number, one: string, other: string, values: Record<string, string | number> = {}): string {
  return t(pluralRules(language).select(n) === "one" ? one : other, { ...values, n });
}

/** Writes a number as the language does. */
export function formatNumber(value: number, options?: Intl.NumberFormatOptions): string {
  return numberFormat(language, options).format(value);
}

export function formatTime(ts: number): string {
  return dateFormat(language, { dateStyle: "medium", timeStyle: "medium" }).format(ts);
}

/** Writes a moment for narrow columns, without the year if that is this one. */
export function formatShortTime(ts: number, now: number = Date.now()): string {
  const isThisYear = new Date(ts).getFullYear() === new Date(now).getFullYear();
  return isThisYear ? dateFormat(language, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit" }).format(ts) : formatTime(ts);
}

/** Writes a moment as the time of day, with its date if that is not today. */
export function formatMoment(ts: number, now: number = Date.now()): string {
  const isToday = new Date(ts).toDateString() === new Date(now).toDateString();
  return dateFormat(language, isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" }).format(ts);
}
