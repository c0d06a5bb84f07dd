// Edits of what a widget shows: its sources and their keys. Each leaves what it doesn't know as it is.

import { list, object, text, type Json } from "../model";
import { without } from "./document";

/** Where a widget names its data: alarms have a source of their own, and controls a target. */
type SourcePlace = "datasources" | "alarmSource" | "targetDevice";
/** The two lists of keys of a source. */
export type KeyList = "dataKeys" | "latestDataKeys";
type Change = (before: Json) => Json;

const isThere = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

export function sourcePlace(widget: Json): SourcePlace {
  const config = object(widget["config"]);
  if (widget["type"] === "rpc" || (isThere(config["targetDevice"]) && list(config["datasources"]).length === 0)) {
    return "targetDevice";
  }
  return widget["type"] === "alarm" || isThere(config["alarmSource"]) ? "alarmSource" : "datasources";
}

/** Returns the target of a control as a source; older files name a list of aliases or of devices. */
function targetOf(config: Json): Json {
  const target = object(config["targetDevice"]);
  const entityAliasId = text(target["entityAliasId"]) ?? text(list(config["targetDeviceAliasIds"])[0]);
  const deviceId = text(target["deviceId"]) ?? text(list(config["targetDeviceIds"])[0]);
  const type = target["type"] ?? (deviceId !== undefined && entityAliasId === undefined ? "device" : "entity");
  return { ...target, type, ...(entityAliasId === undefined ? {} : { entityAliasId }), ...(deviceId === undefined ? {} : { deviceId }) };
}

/** Returns the sources of a widget as they are stored. */
export function sourcesIn(widget: Json): Json[] {
  const config = object(widget["config"]);
  const place = sourcePlace(widget);
  return place === "targetDevice" ? [targetOf(config)] : place === "alarmSource" ? [object(config["alarmSource"])] : list(config["datasources"]).map(object);
}

export function withSources(widget: Json, sources: Json[]): Json {
  const config = object(widget["config"]);
  const place = sourcePlace(widget);
  if (place === "datasources") {
    return { ...widget, config: { ...config, datasources: sources } };
  }
  const [first = {}] = sources;
  // What older files name instead would come back where the target names nothing.
  const kept = place === "targetDevice" ? without(config, ["targetDeviceAliasIds", "targetDeviceIds"]) : config;
  return { ...widget, config: { ...kept, [place]: first } };
}

/** Changes one source; the one behind the last is a new one. */
export function changeSource(widget: Json, n: number, change: Change): Json {
  const sources = sourcesIn(widget);
  return withSources(widget, n >= sources.length ? [...sources, change({})] : sources.with(n, change(sources[n] ?? {})));
}

/** Adds a source behind those that are shown, of which the first may not be stored yet. */
export function addSource(widget: Json, shown: number, begin: () => Json): Json {
  const sources = sourcesIn(widget);
  return withSources(widget, [...sources, ...Array.from({ length: Math.max(1, shown + 1 - sources.length) }, begin)]);
}

export function removeSource(widget: Json, n: number): Json {
  return withSources(widget, sourcesIn(widget).toSpliced(n, 1));
}

export function moveSource(widget: Json, from: number, to: number): Json {
  return withSources(widget, moved(sourcesIn(widget), from, to));
}

/** Returns a list with one of its members in another place. */
export function moved<T>(all: readonly T[], from: number, to: number): T[] {
  const [one] = all.slice(from, from + 1);
  return one === undefined || to < 0 || to >= all.length ? [...all] : all.toSpliced(from, 1).toSpliced(to, 0, one);
}

export const keysIn = (source: Json, where: KeyList): Json[] => list(source[where]).map(object);

export function addKey(source: Json, where: KeyList, key: Json): Json {
  return { ...source, [where]: [...keysIn(source, where), key] };
}

export function changeKey(source: Json, where: KeyList, n: number, change: Change): Json {
  const keys = keysIn(source, where);
  return n < keys.length ? { ...source, [where]: keys.with(n, change(keys[n] ?? {})) } : source;
}

export function removeKey(source: Json, where: KeyList, n: number): Json {
  return { ...source, [where]: keysIn(source, where).toSpliced(n, 1) };
}

export function moveKey(source: Json, where: KeyList, from: number, to: number): Json {
  return { ...source, [where]: moved(keysIn(source, where), from, to) };
}

/** Gives a key another name. A label that was but the name follows it. */
export function nameKey(key: Json, name: string): Json {
  const label = text(key["label"]);
  return { ...key, name, label: label === undefined || label === text(key["name"]) ? name : label };
}

/** Courses that functions can begin with. */
export const COURSES: Readonly<Record<string, string>> = {
  Sin: "return 50 + 50 * Math.sin(time / 60000);",
  Cos: "return 50 + 50 * Math.cos(time / 60000);",
  Random: "return Math.max(0, Math.min(100, prevValue + Math.random() * 10 - 5));",
};

/** Gives a key of a function another course; a body that somebody has written stays. */
export function nameCourse(key: Json, name: string): Json {
  const body = text(key["funcBody"])?.trim() ?? "";
  const isOwn = typeof key["funcBody"] === "object" ? key["funcBody"] !== null : body !== "" && !Object.values(COURSES).includes(body);
  const named = nameKey(key, name);
  return isOwn || COURSES[name] === undefined ? named : { ...named, funcBody: COURSES[name] };
}

/** What new keys look like besides their names. */
const newKey = (type: string, name: string, more: Json = {}): Json => ({ name, type, label: name, color: "#2196f3", settings: {}, ...more });
const isCount = (type: unknown): boolean => type === "entityCount" || type === "alarmCount";

/** Which kind of keys a source has, so that those of others have no place in it. */
const familyOf = (type: unknown): string => (type === "function" ? "function" : isCount(type) ? "count" : "entity");

/** Changes what a source is. Keys that it can't have give way to what it begins with; whose data it is stays known. */
export function retypeSource(source: Json, type: string): Json {
  const next = { ...source, type };
  const family = familyOf(type);
  if (family === familyOf(source["type"])) {
    return next;
  }
  const fits = (key: Json): boolean => (family === "entity" ? key["type"] !== "function" && key["type"] !== "count" : key["type"] === family);
  const kept = keysIn(source, "dataKeys").filter(fits);
  const first = family === "function" ? [newKey("function", "Sin", { funcBody: COURSES["Sin"] })] : family === "count" ? [newKey("count", "count")] : [];
  return {
    ...next,
    dataKeys: kept.length > 0 ? kept : first,
    ...(source["latestDataKeys"] === undefined ? {} : { latestDataKeys: keysIn(source, "latestDataKeys").filter(fits) }),
    ...(type === "alarmCount" && source["alarmFilterConfig"] === undefined ? { alarmFilterConfig: { statusList: ["ACTIVE"] } } : {}),
  };
}

/** Says whose data a source has. Old files name it otherwise, which would come back where nothing is named. */
export function aliasSource(source: Json, alias: string | undefined): Json {
  return { ...without(source, ["deviceAliasId"]), type: isCount(source["type"]) ? source["type"] : "entity", entityAliasId: alias };
}
