// What the types of widgets permit of their data: how many sources and keys, of which kinds, and which may be missing.

export const SOURCE_KINDS = ["entity", "device", "function", "entityCount", "alarmCount"] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

export interface TypeRules {
  /** The most sources that are drawn; zero where the type names its data otherwise, or has none. */
  maxSources: number;
  /** The most keys of a source. */
  maxKeys: number;
  /** Whether it draws something without a source. */
  sourcesOptional: boolean;
  /** Whether it shows but the first entity of those that a source finds. */
  singleEntity: boolean;
  /** Whether keys may be named whose latest values stand beside a course. */
  latestKeys: boolean;
  kinds: readonly SourceKind[];
}

const NO_LIMIT = Infinity;
const ENTITIES: readonly SourceKind[] = ["entity", "device"];
const MADE_UP: readonly SourceKind[] = [...ENTITIES, "function"];

/** What each kind of data begins with. */
const USUAL: Readonly<Record<string, TypeRules>> = {
  timeseries: { maxSources: NO_LIMIT, maxKeys: NO_LIMIT, sourcesOptional: false, singleEntity: false, latestKeys: false, kinds: MADE_UP },
  latest: { maxSources: NO_LIMIT, maxKeys: NO_LIMIT, sourcesOptional: false, singleEntity: false, latestKeys: false, kinds: SOURCE_KINDS },
  alarm: { maxSources: 1, maxKeys: NO_LIMIT, sourcesOptional: false, singleEntity: false, latestKeys: false, kinds: ENTITIES },
  rpc: { maxSources: 1, maxKeys: 0, sourcesOptional: false, singleEntity: true, latestKeys: false, kinds: ENTITIES },
  static: { maxSources: 0, maxKeys: 0, sourcesOptional: true, singleEntity: false, latestKeys: false, kinds: [] },
};

const ONE: Partial<TypeRules> = { maxSources: 1, maxKeys: 1, singleEntity: true };
const TARGET: Partial<TypeRules> = { maxSources: 1, maxKeys: 0, sourcesOptional: true, singleEntity: true, kinds: ENTITIES };
const TEXT: TypeRules = { maxSources: NO_LIMIT, maxKeys: NO_LIMIT, sourcesOptional: true, singleEntity: false, latestKeys: false, kinds: SOURCE_KINDS };
const TABLE: Partial<TypeRules> = { maxSources: 1, kinds: ENTITIES };

/** Types by name, as ThingsBoard's own say it of themselves; the first that fits counts. */
const BY_NAME: readonly [RegExp, Partial<TypeRules>][] = [
  // Maps and tables of API usage name their data in their settings.
  [/^((image_|trip_|route_)?map|api_usage)$/, { maxSources: 0, sourcesOptional: true }],
  [/(^|\.)markdown_card$|^cards\.qr_code$/, TEXT],
  [/^cards\.html_value_card$|^gateway_widgets\.(attributes_card|config_form_latest)$/, { maxSources: 1, sourcesOptional: true, singleEntity: true }],
  [/^(action_button|two_segment_button)$/, TARGET],
  [/(^|\.)entity_count$/, { ...ONE, kinds: ["entityCount"] }],
  [/(^|\.)alarm_count$/, { ...ONE, kinds: ["alarmCount"] }],
  [/^cards\.entities_table$|^entity_admin_widgets\.|^edge_widgets\./, TABLE],
  [/^cards\.entities_hierarchy$/, { maxSources: 1, kinds: ENTITIES }],
  [/^cards\.label_widget$/, { maxSources: 1, singleEntity: true }],
  [/location_(attribute|timeseries)$|^wind_speed_and_direction(_with_background)?$/, { maxSources: 1, maxKeys: 2, singleEntity: true }],
  [/^input_widgets\.(update_multiple_attributes|markers_placement_)/, { kinds: ENTITIES }],
  [/^cards\.attributes_card$|^((horizontal_)?(pie|doughnut)|bars|polar_area|radar)$|^charts\.(bars|pie|\w+_chart_js)$|^gpio_widgets\.|^gateway_widgets\.|^maps_v2\./, {}],
  [/(^|_)range_chart(_with_background)?$/, { ...ONE, latestKeys: false }],
  [/(^|\.)aggregated_value_card|chart_card(_with_background)?$/, { ...ONE, latestKeys: true }],
];

/** Types of points that show latest values beside them, too. */
const WITH_LATEST = /_chart$|^charts\.|^cards\.timeseries_table$|^maps_v2\./;

/** Returns what a controller script says of its type; nothing of what it doesn't. */
export function readTypeParameters(script: string): Partial<TypeRules> {
  const [, , said = ""] = /(typeParameters)([\s\S]*)/.exec(script) ?? [];
  const own = said.split("actionSources")[0] ?? "";
  const count = (name: string): number | undefined => {
    const read = Number(new RegExp(`\\b${name}\\s*:\\s*(-?\\d+)`).exec(own)?.[1]);
    return Number.isNaN(read) ? undefined : read < 0 ? NO_LIMIT : read;
  };
  const flag = (name: string): boolean | undefined => {
    const read = new RegExp(`\\b${name}\\s*:\\s*(true|false)`).exec(own)?.[1];
    return read === undefined ? undefined : read === "true";
  };
  const maxSources = flag("hideDataTab") === true ? 0 : count("maxDatasources");
  const all = { maxSources, maxKeys: count("maxDataKeys"), sourcesOptional: flag("datasourcesOptional"), singleEntity: flag("singleEntity"), latestKeys: flag("hasAdditionalLatestDataKeys") };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** Returns what a type permits. `script` is that of a type of a tenant, whose name says nothing. */
export function rulesOf(fqn: string, type: string, script = ""): TypeRules {
  const usual = USUAL[type] ?? TEXT;
  const [, scope, name = ""] = /^(system|tenant)\.(.+)$/.exec(fqn) ?? [];
  if (scope !== "system") {
    const own = readTypeParameters(script);
    return type === "timeseries" || type === "latest" ? { ...usual, ...own } : { ...usual, ...(own.sourcesOptional === undefined ? {} : { sourcesOptional: own.sourcesOptional }) };
  }
  // Texts are kept as static here, and have values all the same.
  if (type === "static") {
    return /(^|\.)markdown_card$/.test(name) ? TEXT : usual;
  }
  if (type !== "timeseries" && type !== "latest") {
    return usual;
  }
  const named = BY_NAME.find(([pattern]) => pattern.test(name))?.[1] ?? (type === "latest" ? ONE : {});
  return { ...usual, latestKeys: type === "timeseries" && WITH_LATEST.test(name), ...named };
}
