// Texts of ThingsBoard that are Angular templates. Their bindings are not run; what they only translate is read as words.

import { plainWords } from "@/dashboard/words";

/** Icons are names in a font that pages here don't have. */
const ICON = /<(mat-icon|tb-icon)\b[^>]*>[\s\S]*?<\/\1>/gi;
const TRANSLATED = /\{\{\s*['"`]([^'"`}]+)['"`]\s*\|\s*translate[\s\S]*?\}\}(?!\})/g;
const BINDING = /\{\{[\s\S]*?\}\}(?!\})/g;

/** Returns a template without bindings, with words in the place of translations. */
export function plainTemplate(template: string): string {
  if (!template.includes("{{") && !/<(mat|tb)-icon/i.test(template)) {
    return plainWords(template);
  }
  const words = template.replace(ICON, "").replace(TRANSLATED, (_, key: string) => `{i18n:${key}}`);
  return plainWords(words.replace(BINDING, ""));
}
