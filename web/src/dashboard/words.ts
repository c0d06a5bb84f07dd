// Texts that files name by keys of ThingsBoard's own translations, such as `{i18n:api-usage.queue-stats}`.

/** Returns a key as words: its last part, which says in English what it means. */
function words(key: string): string {
  const last = (key.split(".").at(-1) ?? key).replace(/[-_]+/g, " ").trim();
  return last.charAt(0).toUpperCase() + last.slice(1);
}

/** Returns a text as people can read it, whatever keys it names. */
export function plainWords(value: string): string {
  return value.includes("{i18n:") ? value.replace(/\{i18n:([^}]*)\}/g, (_, key: string) => words(key)) : value;
}
