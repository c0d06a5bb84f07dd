// A new widget as its type says it begins.

import { list, number, object, text, type Json } from "@/dashboard/json";
import { drawsLines } from "./timeChart/kinds";

/** A widget that can be put on a dashboard, and how large it is there. */
export interface NewWidget {
  widget: Json;
  size: { sizeX: number; sizeY: number };
}

/** A type as the server returns it with its descriptor. */
export interface StoredType {
  fqn: string;
  name: string;
  isSystem: boolean;
  descriptor: Json;
}

const USUAL_SIZE = { sizeX: 8, sizeY: 6 };

const cells = (value: unknown, usual: number): number => Math.max(1, Math.floor(number(value) ?? usual));

/** Returns the configuration that a type begins with; nothing of what can't be read. */
function defaultsOf(descriptor: Json): Json {
  const stored = descriptor["defaultConfig"];
  if (typeof stored !== "string") {
    return object(stored);
  }
  try {
    return object(JSON.parse(stored) as unknown);
  } catch {
    return {};
  }
}

/** Invented values are for the preview of a type alone: on a dashboard, its source is one that is still to be chosen. */
function chosenLater(source: Json, isAlarm: boolean): Json {
  if (source["type"] !== "function") {
    return { ...source, dataKeys: list(source["dataKeys"]) };
  }
  const fields = isAlarm ? list(source["dataKeys"]).map((key) => ({ ...object(key), type: "alarm", funcBody: null })) : [];
  return { ...source, type: "entity", name: "", dataKeys: fields };
}

/** Returns which alarms are shown, as old types say it, too. */
function alarmFilterOf(config: Json): Json {
  const status = text(config["alarmSearchStatus"]);
  const statuses = list(config["alarmStatusList"]);
  return {
    statusList: statuses.length > 0 || status === undefined || status === "ANY" ? statuses : [status],
    severityList: list(config["alarmSeverityList"]),
    typeList: list(config["alarmTypeList"]),
    searchPropagatedAlarms: config["searchPropagatedAlarms"] ?? true,
  };
}

/** What each kind of data needs of a configuration. */
function ofKind(type: string, config: Json): Json {
  if (type === "rpc") {
    const target = object(config["targetDevice"]);
    const alias = text(target["entityAliasId"]) ?? text(list(config["targetDeviceAliasIds"])[0]);
    return { targetDevice: { type: "entity", ...(alias === undefined ? {} : { entityAliasId: alias }) } };
  }
  if (type === "alarm") {
    const source = object(config["alarmSource"]);
    return { alarmSource: Object.keys(source).length === 0 ? { type: "entity", dataKeys: [] } : chosenLater(source, true), alarmFilterConfig: config["alarmFilterConfig"] ?? alarmFilterOf(config) };
  }
  return {};
}

/** Makes a widget of a type, with all that the type has set, but for whose data it shows. */
export function widgetOfType({ fqn, name, isSystem, descriptor }: StoredType): NewWidget {
  const type = text(descriptor["type"]) ?? "latest";
  const size = { sizeX: cells(descriptor["sizeX"], USUAL_SIZE.sizeX), sizeY: cells(descriptor["sizeY"], USUAL_SIZE.sizeY) };
  const defaults = defaultsOf(descriptor);
  const config: Json = {
    ...defaults,
    title: text(defaults["title"]) || name,
    // A new chart shows where values are missing; one that was made elsewhere connects its points as it did there.
    settings: { ...(drawsLines(fqn) ? { lineGaps: "usual" } : {}), ...object(defaults["settings"]) },
    datasources: list(defaults["datasources"]).slice(0, 1).map((source) => chosenLater(object(source), type === "alarm")),
    actions: object(defaults["actions"]),
    ...ofKind(type, defaults),
  };
  return { widget: { typeFullFqn: `${isSystem ? "system" : "tenant"}.${fqn}`, type, ...size, config }, size };
}

/** Makes a widget of a symbol of the gallery. `metadata` is what its drawing says about itself. */
export function widgetOfSymbol({ title, link }: { title: string; link: string }, metadata: Json): NewWidget {
  const size = { sizeX: cells(metadata["widgetSizeX"], 3), sizeY: cells(metadata["widgetSizeY"], 3) };
  const config: Json = {
    title: text(metadata["title"]) || title,
    showTitle: false,
    dropShadow: false,
    backgroundColor: "rgba(0,0,0,0)",
    padding: "0",
    preserveAspectRatio: true,
    settings: { scadaSymbolUrl: `tb-image;${link}`, scadaSymbolObjectSettings: { behavior: {}, properties: {} } },
    datasources: [],
    targetDevice: { type: "entity" },
    actions: {},
  };
  return { widget: { typeFullFqn: "system.scada_symbol", type: "rpc", ...size, config }, size };
}

/** On a drawing of a plant, widgets stand without frames, and symbols keep their shape. */
export function onPlant({ widget, size }: NewWidget, isSymbol: boolean): NewWidget {
  const config = object(widget["config"]);
  const settings = { ...object(config["settings"]), padding: "0", background: { type: "color", color: "rgba(0,0,0,0)", overlay: { enabled: false } } };
  const bare = { showTitle: false, dropShadow: false, resizable: true, preserveAspectRatio: isSymbol, padding: "0", margin: "0", backgroundColor: "rgba(0,0,0,0)" };
  return { widget: { ...widget, config: { ...config, ...bare, settings } }, size };
}
