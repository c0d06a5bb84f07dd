// What a field offers to choose from.

import { t } from "@/i18n";
import type { Choice } from "./schema";

/** Choices as a person reads them. What is stored is one of them even if the schema doesn't know it. */
export function offered(choices: readonly Choice[], stored: readonly string[]): Choice[] {
  // Lists may have a value twice, and what is offered twice can't be drawn.
  const others = [...new Set(stored)].filter((one) => one !== "" && !choices.some(({ value }) => value === one)).map((one) => ({ value: one, label: one }));
  // What has no name of its own is a value, and the same in all languages.
  return [...choices, ...others].map(({ value, label }) => ({ value, label: label === value ? value : t(label) }));
}
