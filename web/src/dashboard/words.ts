// Texts that files name by keys of ThingsBoard's own translations, such as `{i18n:api-usage.queue-stats}`.

/** Returns a key as words: its last part that says in English what it means. */
export function keyWords(key: string): string {
  const parts = key.split(".");
  const isVague = parts.length > 1 && /^(title|name|label|header|text)$/.test(parts.at(-1) ?? "");
  const last = (parts.at(isVague ? -2 : -1) ?? key).replace(/[-_]+/g, " ").trim();
  return last.charAt(0).toUpperCase() + last.slice(1);
}

/** Returns a text as people can read it, whatever keys it names. */
export function plainWords(value: string): string {
  return value.includes("{i18n:") ? value.replace(/\{i18n:([^}]*)\}/g, (_, key: string) => keyWords(key)) : value;
}
