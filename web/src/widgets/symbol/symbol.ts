// A symbol: a drawing that says itself which values it shows, what can be clicked, and what about it can be set.

import { bodyOf } from "@/dashboard/actions";
import { list, object, text, type Json } from "@/dashboard/json";

export interface SymbolTag {
  tag: string;
  render: string;
  /** Bodies of functions by what triggers them. */
  actions: Record<string, string>;
}

export interface Behavior {
  id: string;
  name: string;
  type: "value" | "action" | "widgetAction";
  valueType: string;
  /** What is stored for it, over what the symbol begins with. */
  settings: Json;
}

/** A property with its type, since the sandbox makes functions of some. */
export interface Property {
  type: string;
  value: unknown;
}

export interface SymbolModel {
  title: string;
  /** The drawing without what it says about itself. */
  drawing: string;
  render: string;
  tags: SymbolTag[];
  behaviors: Behavior[];
  properties: Record<string, Property>;
}

const METADATA = /<tb:metadata[^>]*>\s*(?:<!\[CDATA\[([\s\S]*?)\]\]>|([\s\S]*?))\s*<\/tb:metadata>/;
const BEHAVIORS = ["value", "action", "widgetAction"] as const;
/** Where each kind of behaviour has what it begins with. */
const BEGINNINGS = ["defaultGetValueSettings", "defaultSetValueSettings", "defaultWidgetActionSettings"];
const EMPTY: Record<string, unknown> = { STRING: "", INTEGER: 0, DOUBLE: 0, BOOLEAN: false, JSON: {} };

/** Returns the value that a behaviour has as long as there is none. */
export function emptyValue(valueType: string): unknown {
  return EMPTY[valueType] ?? null;
}

/** Lays what is stored over what a symbol begins with; lists are replaced whole. */
export function merged(base: unknown, over: unknown): unknown {
  if (over === undefined || over === null) {
    return base;
  }
  const [low, high] = [object(base), object(over)];
  return typeof over === "object" && !Array.isArray(over) && typeof base === "object" && base !== null && !Array.isArray(base)
    ? Object.fromEntries([...new Set([...Object.keys(low), ...Object.keys(high)])].map((key) => [key, merged(low[key], high[key])]))
    : over;
}

/** Reads what the file of a symbol says about itself; nothing if it says nothing that can be read. */
export function metadataOf(content: string): Json {
  const [, cdata, plain] = METADATA.exec(content) ?? [];
  try {
    return object(JSON.parse(cdata ?? plain ?? "{}") as unknown);
  } catch {
    return {};
  }
}

/** Returns the file of a symbol without what it says about itself. */
export function withoutMetadata(content: string): string {
  return content.replace(METADATA, "");
}

const DEFAULTS: Record<string, unknown> = {
  text: "", textarea: "", password: "", javascript: "", json: "", html: "", css: "", markdown: "",
  number: 0, switch: false, color: "#000", color_settings: { type: "constant", color: "#000" }, select: "", units: "", icon: null, font: null,
};

function readProperty(value: unknown, stored: unknown, fill: (pattern: string) => string): Property {
  const property = object(value);
  const type = text(property["type"]) ?? "text";
  if (type === "fieldset") {
    return { type, value: readProperties(list(property["properties"]), object(stored), fill) };
  }
  if (type === "array") {
    const item = { ...property, type: property["arrayItemType"] };
    return { type, value: list(stored ?? property["default"]).map((one) => readProperty(item, one, fill)) };
  }
  // A stored null is a field that somebody has emptied, which the default must not fill again.
  const found = (stored === undefined ? property["default"] : stored) ?? DEFAULTS[type] ?? null;
  return { type, value: (type === "text" || type === "textarea") && typeof found === "string" ? fill(found) : found };
}

/** Reads properties. A group begins as its parts do: what it says of its whole counts for nothing, as in ThingsBoard. */
function readProperties(properties: unknown[], stored: Json, fill: (pattern: string) => string): Record<string, Property> {
  return Object.fromEntries(
    properties.map(object).flatMap((property) => {
      const id = text(property["id"]);
      return id === undefined || property["type"] === "htmlSection" ? [] : [[id, readProperty(property, stored[id], fill)]];
    }),
  );
}

/** Reads a symbol with what a widget has stored for it; none if the content is no drawing. */
export function readSymbol(content: string, settings: Json, fill: (pattern: string) => string = (pattern) => pattern): SymbolModel | undefined {
  const drawing = /<svg[\s>][\s\S]*<\/svg>/i.exec(withoutMetadata(content))?.[0];
  if (drawing === undefined) {
    return undefined;
  }
  const metadata = metadataOf(content);
  const stored = object(settings["behavior"]);
  return {
    title: text(metadata["title"]) ?? "",
    drawing,
    render: bodyOf(metadata["stateRenderFunction"]) ?? "",
    tags: list(metadata["tags"]).map(object).flatMap((tag): SymbolTag[] => {
      const name = text(tag["tag"]);
      const actions = Object.entries(object(tag["actions"])).map(([trigger, action]) => [trigger, bodyOf(object(action)["actionFunction"]) ?? ""]);
      return name === undefined ? [] : [{ tag: name, render: bodyOf(tag["stateRenderFunction"]) ?? "", actions: Object.fromEntries(actions) as Record<string, string> }];
    }),
    behaviors: list(metadata["behavior"]).map(object).flatMap((behavior): Behavior[] => {
      const id = text(behavior["id"]);
      const type = BEHAVIORS.find((one) => one === behavior["type"]);
      if (id === undefined || type === undefined) {
        return [];
      }
      const begin = behavior[BEGINNINGS[BEHAVIORS.indexOf(type)] ?? ""];
      return [{ id, type, name: text(behavior["name"]) ?? id, valueType: text(behavior["valueType"]) ?? "", settings: object(merged(begin ?? {}, stored[id])) }];
    }),
    properties: readProperties(list(metadata["properties"]), object(settings["properties"]), fill),
  };
}

/** Whether a widget is a symbol: types that were made of drawings have names of their own, and all keep their drawing among the settings. */
export function isSymbol(fqn: string, settings: Json): boolean {
  return fqn === "system.scada_symbol" || text(settings["scadaSymbolUrl"]) !== undefined || text(settings["scadaSymbolContent"]) !== undefined;
}

/** Under which name the widget's actions have that of a behaviour. */
export function symbolAction(id: string): string {
  return `symbol ${id}`;
}

/** Returns the actions that the behaviours of a symbol have among its settings. */
export function symbolActions(settings: Json): Json {
  const behavior = object(object(settings["scadaSymbolObjectSettings"])["behavior"]);
  return Object.fromEntries(
    Object.entries(behavior).flatMap(([id, value]) => {
      const type = text(object(value)["type"]);
      return type === undefined || type === "doNothing" ? [] : [[symbolAction(id), [{ name: id, ...object(value) }]]];
    }),
  );
}
