// Texts of ThingsBoard that are Angular templates. Their bindings are not run; what they only translate is read as words.

import { plainWords } from "@/dashboard/words";

const ICON = /<(mat-icon|tb-icon)\b([^>]*)>([\s\S]*?)<\/\1>/gi;
const TRANSLATED = /\{\{\s*['"`]([^'"`}]+)['"`]\s*\|\s*translate[\s\S]*?\}\}(?!\})/g;
const BINDING = /\{\{[\s\S]*?\}\}(?!\})/g;

/** Returns an element of Angular Material for an icon as one of HTML. */
function iconElement(attributes: string, name: string): string {
  const own = /\sclass="([^"]*)"/i.exec(attributes);
  const drawn = /\ssvgIcon="([^"]*)"/i.exec(attributes)?.[1] ?? name;
  return `<i class="material-icons${own === null ? "" : ` ${own[1] ?? ""}`}"${own === null ? attributes : attributes.replace(own[0], "")}>${drawn}</i>`;
}

/** Names of icons that a style writes, which need the font that isn't here. */
const WRITTEN_ICON = /\{[^{}]*Material (?:Icons|Symbols)[^{}]*\}/gi;

/** Returns rules of style for such elements as rules for what stands in their place. */
export function iconRules(css: string): string {
  return css.replace(WRITTEN_ICON, (rule) => rule.replace(/\bcontent\s*:[^;}]*/i, 'content: ""'))
    .replace(/(^|[\s,>+~}])(?:mat|tb)-icon(?![\w-])/gi, "$1.material-icons");
}

/** Returns a template without bindings, with words in the place of translations. */
export function plainTemplate(template: string): string {
  if (!template.includes("{{") && !/<(mat|tb)-icon/i.test(template)) {
    return plainWords(template);
  }
  const words = template.replace(ICON, (_, _tag, attributes: string, name: string) => iconElement(attributes, name)).replace(TRANSLATED, (_, key: string) => `{i18n:${key}}`);
  return plainWords(words.replace(BINDING, ""));
}
