// The file of a symbol: its drawing, and within that what it says about itself, as ThingsBoard reads and writes it.

import { list, number, object, text, type Json } from "@/dashboard/json";
import { emptyValue, metadataOf, withoutMetadata } from "@/widgets/symbol/symbol";

export interface SymbolFile {
  /** The drawing without its metadata. */
  drawing: string;
  metadata: Json;
}

const ROOT = /<svg\b(?:[^>"']|"[^"]*"|'[^']*')*>/i;
const NAMESPACE = ' xmlns:tb="https://thingsboard.io/svg"';
/** So many units of a drawing are a column or row of the grid. */
const UNITS = 100;

/** Columns and rows of a drawing that doesn't say how many it wants. */
function sizeOf(root: string): { widgetSizeX: number; widgetSizeY: number } {
  const box = /\bviewBox\s*=\s*["']\s*[-\d.e]+[\s,]+[-\d.e]+[\s,]+([\d.e]+)[\s,]+([\d.e]+)/i.exec(root);
  const [width, height] = [Number(box?.[1] ?? /\bwidth\s*=\s*["']([\d.]+)/.exec(root)?.[1]), Number(box?.[2] ?? /\bheight\s*=\s*["']([\d.]+)/.exec(root)?.[1])];
  const cells = (length: number): number => (length > 0 ? Math.max(1, Math.round(length / UNITS)) : 3);
  return { widgetSizeX: cells(width), widgetSizeY: cells(height) };
}

/** Reads the file of a symbol; throws if it is no drawing. */
export function readFile(content: string): SymbolFile {
  const drawing = withoutMetadata(content).trim();
  const root = ROOT.exec(drawing)?.[0];
  if (root === undefined) {
    throw new Error("This is no drawing that can be shown as a symbol.");
  }
  const stored = metadataOf(content);
  return { drawing, metadata: Object.keys(stored).length > 0 ? stored : { title: "", ...sizeOf(root), tags: [], behavior: [], properties: [] } };
}

/** Returns the names of all tags of a drawing, in their order. */
export function tagsIn(drawing: string): string[] {
  return [...new Set([...drawing.matchAll(/\btb:tag\s*=\s*(?:"([^"]+)"|'([^']+)')/g)].map(([, double, single]) => double ?? single ?? ""))];
}

const RPC = (method: string): Json => ({ method, requestTimeout: 5_000, requestPersistent: false, persistentPollingInterval: 1_000 });

function getDefaults(valueType: string): Json {
  return {
    action: "DO_NOTHING",
    defaultValue: emptyValue(valueType),
    executeRpc: RPC("getState"),
    getAttribute: { key: "state", scope: null },
    getTimeSeries: { key: "state" },
    getAlarmStatus: { severityList: null, typeList: null },
    dataToValue: { type: "NONE", compareToValue: true, dataToValueFunction: "return data;" },
  };
}

function setDefaults(valueType: string): Json {
  return {
    action: "EXECUTE_RPC",
    executeRpc: RPC("setState"),
    setAttribute: { key: "state", scope: "SERVER_SCOPE" },
    putTimeSeries: { key: "state" },
    valueToData: { type: valueType === "BOOLEAN" ? "CONSTANT" : "VALUE", constantValue: false, valueToDataFunction: "return value;" },
  };
}

/** What each kind of behaviour begins with, and where it has that. */
const BEGINNINGS = {
  value: { name: "defaultGetValueSettings", make: getDefaults },
  action: { name: "defaultSetValueSettings", make: setDefaults },
  widgetAction: { name: "defaultWidgetActionSettings", make: (): Json => ({ type: "doNothing", targetDashboardStateId: null, openRightLayout: false, setEntityId: false, stateEntityParamName: null }) },
};
type BehaviorType = keyof typeof BEGINNINGS;

function completed(base: Json, over: Json): Json {
  return Object.fromEntries([...new Set([...Object.keys(base), ...Object.keys(over)])].map((key) => {
    const [low, high] = [base[key], over[key]];
    const both = typeof low === "object" && low !== null && typeof high === "object" && high !== null && !Array.isArray(high);
    return [key, both ? completed(object(low), object(high)) : key in over && high !== undefined ? high : low];
  }));
}

/** Fills in what a behaviour needs in ThingsBoard, and drops what belongs to another kind of it. */
export function completeBehavior(behavior: Json): Json {
  const type = (Object.keys(BEGINNINGS) as BehaviorType[]).find((one) => one === behavior["type"]) ?? "value";
  const valueType = text(behavior["valueType"]) ?? "BOOLEAN";
  const { name, make } = BEGINNINGS[type];
  const others = new Set(Object.values(BEGINNINGS).flatMap((one) => (one.name === name ? [] : [one.name])));
  const kept = Object.fromEntries(Object.entries(behavior).filter(([key, value]) => !others.has(key) && value !== undefined && value !== null && value !== ""));
  return { ...kept, type, ...(type === "widgetAction" ? {} : { valueType }), [name]: completed(make(valueType), object(behavior[name])) };
}

/** Returns what is wrong with metadata; nothing if all of it can be saved. */
export function problemOf(metadata: Json): string | undefined {
  if (text(metadata["title"]) === undefined) {
    return "A symbol needs a title.";
  }
  for (const part of ["behavior", "properties"]) {
    const ids = list(metadata[part]).map((one) => text(object(one)["id"]) ?? "");
    if (ids.includes("")) {
      return "Each behavior and property needs an id.";
    }
    if (new Set(ids).size < ids.length) {
      return "Two behaviors or properties have the same id.";
    }
  }
  return undefined;
}

/** Puts metadata into a drawing: as the first thing within it, in a section that no text of it can end. */
export function writeFile({ drawing, metadata }: SymbolFile): string {
  const root = ROOT.exec(drawing)?.[0];
  if (root === undefined) {
    throw new Error("This is no drawing that can be shown as a symbol.");
  }
  const named = /\sxmlns:tb\s*=/.test(root) ? root : root.replace(/^<svg/i, `$&${NAMESPACE}`);
  const whole = { ...metadata, widgetSizeX: number(metadata["widgetSizeX"]) ?? 3, widgetSizeY: number(metadata["widgetSizeY"]) ?? 3, tags: list(metadata["tags"]), behavior: list(metadata["behavior"]).map((one) => completeBehavior(object(one))), properties: list(metadata["properties"]) };
  const json = JSON.stringify(whole, null, 2).replaceAll("]]>", "]]\\u003e");
  const at = drawing.indexOf(root);
  return `${drawing.slice(0, at)}${named}<tb:metadata xmlns=""><![CDATA[${json}]]></tb:metadata>${drawing.slice(at + root.length)}`;
}

/** What a tag has: how its elements are drawn, and what a click on them does. */
export interface TagCode {
  render: string;
  click: string;
}

export function tagCode(metadata: Json, tag: string): TagCode {
  const stored = object(list(metadata["tags"]).map(object).find((one) => one["tag"] === tag));
  return { render: text(stored["stateRenderFunction"]) ?? "", click: text(object(object(stored["actions"])["click"])["actionFunction"]) ?? "" };
}

/** Returns metadata with other code for a tag; what else the tag holds stays. */
export function withTagCode(metadata: Json, tag: string, { render, click }: Partial<TagCode>): Json {
  const tags = list(metadata["tags"]).map(object);
  const { stateRenderFunction: oldRender, actions, ...rest } = tags.find((one) => one["tag"] === tag) ?? { tag };
  const { click: oldClick, ...otherActions } = object(actions);
  const drawn = render === undefined ? oldRender : render === "" ? undefined : render;
  const clicked = click === undefined ? oldClick : click === "" ? undefined : { ...object(oldClick), actionFunction: click };
  const all = { ...otherActions, ...(clicked === undefined ? {} : { click: clicked }) };
  const made = { ...rest, ...(drawn === undefined ? {} : { stateRenderFunction: drawn }), ...(Object.keys(all).length === 0 ? {} : { actions: all }) };
  return { ...metadata, tags: tags.some((one) => one["tag"] === tag) ? tags.map((one) => (one["tag"] === tag ? made : one)) : [...tags, made] };
}
