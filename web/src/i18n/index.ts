// Texts in the language of the person. English texts are the keys, so that English is always complete.

import { useSyncExternalStore } from "react";

export type Language = "en" | "de";
type Texts = Record<string, string>;

const STORED = "fieldline_language";
let texts: Texts = {};
let language: Language = "en";
const listeners = new Set<() => void>();

function preferred(): Language {
  const stored = localStorage.getItem(STORED) ?? navigator.language.slice(0, 2);
  return stored === "de" ? "de" : "en";
}

/** Loads the texts of the language that this browser prefers. */
export async function startLanguage(): Promise<void> {
  await setLanguage(preferred());
}

export async function setLanguage(wanted: Language): Promise<void> {
  texts = wanted === "de" ? (await import("./de.json")).default : {};
  language = wanted;
  localStorage.setItem(STORED, wanted);
  document.documentElement.lang = wanted;
  listeners.forEach((listener) => listener());
}

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

/** Translates an English text. */
export function t(text: string, values: Record<string, string | number> = {}): string {
  return fill(texts[text] ?? text, values);
}

export function formatTime(ts: number): string {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" }).format(ts);
}
