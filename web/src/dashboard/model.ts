// A dashboard as ThingsBoard stores it, read without trust: what is missing or of another type becomes its default.

import { isMap, readMap } from "@/widgets/map/model";
import { isSymbol, symbolActions } from "@/widgets/symbol/symbol";
import { readAliases, type Alias } from "./aliases";
import { readFilters, queryFilters, type KeyFilters, type StoredFilter } from "./filters";
import { readStates, type DashboardState, type OwnSize } from "./grid";
import { list, number, object, text, type Json } from "./json";
import { readSettings, type DashboardSettings } from "./settings";
import { sourcesOf, withSettingsActions } from "./target";
import { plainWords } from "./words";

export { list, number, object, text, type Json } from "./json";
export type { Alias } from "./aliases";
export type { DashboardState, Grid, Layout, WidgetPlace } from "./grid";

export interface DataKey {
  name: string;
  type: "timeseries" | "attribute" | "serverAttribute" | "sharedAttribute" | "clientAttribute" | "entityField" | "other";
  label: string;
  color: string;
  units: string | undefined;
  decimals: number | undefined;
  settings: Json;
  hidden: boolean;
  /** The key as it is stored, for what only few widgets read. */
  raw: Json;
}

export interface Datasource {
  type: "entity" | "device" | "entityCount" | "alarmCount" | "function";
  name: string;
  aliasId: string | undefined;
  deviceId: string | undefined;
  filterId: string | undefined;
  dataKeys: DataKey[];
  /** Keys of which a widget of points wants the latest value beside them. */
  latestKeys: DataKey[];
  /** Which alarms a source that counts them means. */
  alarmFilter: Json;
  /** The most entities that are asked for, where it isn't the usual number. */
  pageSize?: number | undefined;
}

export interface Widget {
  id: string;
  /** Name of the widget type, such as `system.cards.value_card`. */
  fqn: string;
  title: string;
  showTitle: boolean;
  /** The widget's own time window, if it doesn't use that of the dashboard. */
  timeWindow: unknown;
  datasources: Datasource[];
  alarmSource: Datasource | undefined;
  config: Json;
  settings: Json;
  size: OwnSize;
}

export interface Dashboard {
  widgets: Map<string, Widget>;
  states: DashboardState[];
  aliases: Map<string, Alias>;
  filters: Map<string, StoredFilter>;
  /** The filters as queries take them. */
  keyFilters: Map<string, KeyFilters>;
  timeWindow: unknown;
  settings: DashboardSettings;
}

const KEY_TYPES = ["timeseries", "attribute", "entityField"] as const;
const SOURCE_TYPES = ["entity", "device", "entityCount", "alarmCount", "function"] as const;

/** Reads a data key; units and decimals that it lacks are those of its widget. */
export function readKey(value: unknown, config: Json = {}): DataKey {
  const key = object(value);
  const name = text(key["name"]) ?? "";
  const units = key["units"] === undefined || key["units"] === null || key["units"] === "" ? config["units"] : key["units"];
  return {
    name,
    // What a function makes up is drawn as telemetry is.
    type: key["type"] === "function" ? "timeseries" : (KEY_TYPES.find((type) => type === key["type"]) ?? "other"),
    label: plainWords(text(key["label"]) ?? name),
    color: text(key["color"]) ?? "#2196f3",
    units: text(units) ?? text(object(units)["from"]),
    decimals: number(key["decimals"]) ?? number(config["decimals"]),
    settings: object(key["settings"]),
    hidden: key["hidden"] === true,
    raw: key,
  };
}

/** Values are told apart by the names of their keys, which those of functions may share. */
function withOwnNames(keys: DataKey[], taken: Set<string>): DataKey[] {
  return keys.map((key) => {
    let name = key.name;
    for (let n = 2; taken.has(name); n++) {
      name = `${key.name} ${n}`;
    }
    taken.add(name);
    return name === key.name ? key : { ...key, name };
  });
}

export function readSource(value: unknown, config: Json = {}): Datasource {
  const source = object(value);
  const type = SOURCE_TYPES.find((one) => one === source["type"]) ?? "entity";
  const names = new Set<string>();
  const keysIn = (name: string): DataKey[] => {
    const keys = list(source[name]).map((key) => readKey(key, config));
    return type === "function" ? withOwnNames(keys, names) : keys;
  };
  return {
    type,
    name: text(source["name"]) ?? "",
    aliasId: text(source["entityAliasId"]) ?? text(source["deviceAliasId"]),
    deviceId: text(source["deviceId"]),
    filterId: text(source["filterId"]),
    dataKeys: keysIn("dataKeys"),
    latestKeys: keysIn("latestDataKeys"),
    alarmFilter: object(source["alarmFilterConfig"]),
    pageSize: number(source["pageSize"]),
  };
}

/** Reads the source of alarms, whose keys are their fields also where an invented alarm was to show them. */
function readAlarmSource(value: unknown): Datasource {
  const source = readSource(value);
  return { ...source, dataKeys: source.dataKeys.map((key) => (key.raw["type"] === "function" ? { ...key, type: "other" } : key)) };
}

/** Returns the full name of a widget's type; old files name its bundle and its alias. */
export function fqnOf(widget: Json): string {
  const full = text(widget["typeFullFqn"]);
  if (full !== undefined) {
    return full;
  }
  const scope = widget["isSystemType"] === true ? "system" : "tenant";
  const name = `${scope}.${text(widget["bundleAlias"]) ?? ""}.${text(widget["typeAlias"]) ?? ""}`;
  return name === "system.charts.timeseries" ? "system.charts.basic_timeseries" : name;
}

/** Where widgets that name themselves in their settings do so. */
const OWN_TITLES: readonly [fqn: RegExp, setting: string][] = [
  [/\.alarms_table$/, "alarmsTitle"],
  [/\.entities_table$/, "entitiesTitle"],
  [/\.(update_multiple_attributes|update_json_attribute|web_camera_input)$/, "widgetTitle"],
];

/** Returns the title of a widget: that of its settings comes before that of its card. */
function titleOf(fqn: string, config: Json, settings: Json): string {
  const own = OWN_TITLES.find(([names]) => names.test(fqn))?.[1];
  return plainWords((own === undefined ? undefined : text(settings[own])?.trim() || undefined) ?? text(config["title"]) ?? "");
}

function readWidget(id: string, value: unknown): Widget {
  const widget = object(value);
  const stored = object(widget["config"]);
  const settings = object(stored["settings"]);
  // Types that were made of drawings are all drawn as the one that has any drawing.
  const fqn = isSymbol(fqnOf(widget), settings) ? "system.scada_symbol" : fqnOf(widget);
  // Maps name their data in their layers.
  const map = isMap(fqn) ? readMap(fqn, stored) : undefined;
  const config = withSettingsActions({ ...stored, actions: { ...object(stored["actions"]), ...map?.actions, ...symbolActions(settings) } });
  return {
    id,
    fqn,
    title: titleOf(fqn, config, settings),
    showTitle: config["showTitle"] !== false,
    timeWindow: config["useDashboardTimewindow"] === false ? config["timewindow"] : undefined,
    datasources: map?.sources ?? sourcesOf(widget, fqn, config).map((source) => readSource(source, config)),
    alarmSource: config["alarmSource"] === undefined || config["alarmSource"] === null ? undefined : readAlarmSource(config["alarmSource"]),
    config,
    settings: object(config["settings"]),
    size: { sizeX: number(widget["sizeX"]) ?? 8, sizeY: number(widget["sizeY"]) ?? 6, row: number(widget["row"]), col: number(widget["col"]) },
  };
}

/** Reads the `configuration` of a dashboard. */
export function readDashboard(value: unknown): Dashboard {
  const configuration = object(value);
  const stored = configuration["widgets"];
  const entries = Array.isArray(stored) ? stored.map((widget, n): [string, unknown] => [text(object(widget)["id"]) ?? `widget ${n}`, widget]) : Object.entries(object(stored));
  const widgets = new Map(entries.map(([id, widget]) => [id, readWidget(id, widget)]));
  const filters = readFilters(configuration["filters"]);
  return {
    widgets,
    states: readStates(configuration, widgets),
    aliases: readAliases(configuration),
    filters,
    keyFilters: new Map([...filters].map(([id, filter]) => [id, queryFilters(filter)])),
    timeWindow: configuration["timewindow"],
    settings: readSettings(configuration),
  };
}
