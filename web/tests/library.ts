// Widgets of all types as they begin, with a source of real values, and what each of them must show.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { list, number, object, text, type Json } from "../src/dashboard/json";
import { readFile } from "../src/screens/symbols/symbolFile";
import { newWidget, WIDGET_KINDS } from "../src/widgets/catalog";
import { widgetOfSymbol, widgetOfType } from "../src/widgets/fromType";
import { FURTHER_KINDS } from "../src/widgets/furtherKinds";
import { expect, type Program } from "./program";

/** What the device has sent, each in a row of its own: so many that no widget shows one twice. */
export const STORED = { k0: 12.3456, k1: 23.4567, k2: 34.5678, k3: 45.6789, k4: 56.7891, latitude: 48.1234, longitude: 11.5678, xPos: 0.25, yPos: 0.75 } as const;
/** What a device answers to a question for a number. */
export const ANSWERED = 42;

export interface TypedWidget {
  fqn: string;
  kind: string;
  config: Json;
  widget: Json;
}

const PLACES = new Set(["latitude", "longitude", "xPos", "yPos"]);

/** A key as its type declares it, with a stored value in the place of an invented one. */
function realKey(key: unknown, n: number, type: string): Json {
  const { funcBody: _invented, ...stored } = object(key);
  const label = text(stored["label"]) ?? "";
  return { ...stored, type, name: PLACES.has(label) ? label : `k${n % 5}` };
}

/** A layer of a map whose place and further keys were invented. */
function realLayer(layer: unknown): Json {
  const { xKey, yKey, additionalDataKeys, ...stored } = object(layer);
  const key = (name: string): Json => ({ name, label: name, type: "timeseries", settings: {} });
  return {
    ...stored,
    dsType: "entity",
    dsEntityAliasId: "a",
    ...(xKey === undefined ? {} : { xKey: key("latitude"), yKey: key("longitude") }),
    additionalDataKeys: list(additionalDataKeys).map((one) => ({ ...key("k0"), label: object(one)["label"] })),
  };
}

function realSettings(stored: unknown): Json {
  const settings = object(stored);
  const layers = ["markers", "trips"].flatMap((name) => (Array.isArray(settings[name]) ? [[name, list(settings[name]).slice(0, 1).map(realLayer)]] : []));
  return { ...settings, ...Object.fromEntries(layers) };
}

/** Which device a control steers: one that answers with numbers, or one that says yes. */
const targetOf = (fqn: string): string => (/slider|stepper|knob/.test(fqn) ? "numbers" : "a");

function withTargets(fqn: string, kind: string, config: Json): Json {
  const counted = /(alarm|entity)_count$/.exec(fqn)?.[1];
  if (counted !== undefined) {
    const { alarmFilterConfig } = object(list(config["datasources"])[0]);
    return { ...config, datasources: [{ type: `${counted}Count`, entityAliasId: "a", alarmFilterConfig, dataKeys: [{ name: "count", type: "count", label: "count" }] }] };
  }
  switch (kind) {
    case "rpc":
      return { ...config, targetDevice: { type: "entity", entityAliasId: targetOf(fqn) } };
    case "alarm":
      return { ...config, alarmSource: { ...object(config["alarmSource"]), type: "entity", entityAliasId: "a" } };
    case "latest":
      return list(config["datasources"]).length > 0 || /map/.test(fqn) ? config : { ...config, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [] }] };
    default:
      return config;
  }
}

/** Makes a widget of a type as the editor would, and gives it the device that a person would choose. */
function ofType(file: Json): TypedWidget {
  const fqn = text(file["fqn"]) ?? "";
  const descriptor = object(file["descriptor"]);
  const defaults = object(JSON.parse(text(descriptor["defaultConfig"]) ?? "{}"));
  const type = /shared|server|update_json/.test(fqn) ? "attribute" : "timeseries";
  const real = {
    ...defaults,
    settings: realSettings(defaults["settings"]),
    datasources: list(defaults["datasources"]).map((stored) => {
      const source = object(stored);
      const keys = (name: string): Json[] => list(source[name]).map((key, n) => realKey(key, n, type));
      return source["type"] === "function" ? { ...source, type: "entity", entityAliasId: "a", dataKeys: keys("dataKeys"), latestDataKeys: keys("latestDataKeys") } : source;
    }),
  };
  const { widget } = widgetOfType({ fqn, name: text(file["name"]) ?? fqn, isSystem: true, descriptor: { ...descriptor, defaultConfig: real } });
  const kind = text(descriptor["type"]) ?? "latest";
  const config = withTargets(fqn, kind, object(widget["config"]));
  return { fqn, kind, config, widget: { ...widget, config } };
}

/** Loads all types of a folder of files into the program, as its administrator does, and makes a widget of each. */
export async function typesOf(program: Program, folder: string): Promise<TypedWidget[]> {
  const headers = { "X-Authorization": `Bearer ${await program.token("SYS_ADMIN")}`, "Content-Type": "application/json" };
  const made: TypedWidget[] = [];
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".json")).sort()) {
    const answer = await fetch(`${program.url}/api/widgetType?updateExistingByFqn=true`, { method: "POST", headers, body: readFileSync(join(folder, name)) });
    expect(answer.status, name).toBe(200);
    made.push(ofType((await answer.json()) as Json));
  }
  return made;
}

/** Puts all symbols of a folder into the gallery of the program, and makes a widget of each. */
export async function symbolsOf(program: Program, folder: string): Promise<TypedWidget[]> {
  const headers = { "X-Authorization": `Bearer ${await program.token("SYS_ADMIN")}` };
  const made: TypedWidget[] = [];
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".svg")).sort()) {
    const content = readFileSync(join(folder, name), "utf8");
    const form = new FormData();
    form.append("title", name);
    form.append("imageSubType", "SCADA_SYMBOL");
    form.append("file", new File([content], name, { type: "image/svg+xml" }));
    const answer = await fetch(`${program.url}/api/image`, { method: "POST", headers, body: form });
    expect(answer.status, name).toBe(200);
    const { link } = (await answer.json()) as { link: string };
    const { widget } = widgetOfSymbol({ title: name, link }, readFile(content).metadata);
    const config = { ...object(widget["config"]), title: name, targetDevice: { type: "entity", entityAliasId: "a" } };
    made.push({ fqn: name, kind: "rpc", config, widget: { ...widget, config } });
  }
  return made;
}

const KEY: Json = { name: "k0", type: "timeseries", label: "Level", color: "#2196f3", units: "%", decimals: 1, settings: {} };

/** All kinds that are drawn where a server has no types. */
export function ownKinds(): TypedWidget[] {
  return [...WIDGET_KINDS, ...FURTHER_KINDS].map((kind) => {
    const widget = newWidget(kind, kind.title);
    const stored = object(widget["config"]);
    const fqn = kind.fqn.replace(/^system\./, "");
    // A status is on by what its key says.
    const keys = kind.keyless === true ? [] : fqn === "status_widget" ? [{ ...KEY, name: "on", label: "On" }] : [KEY, { ...KEY, name: "k1", label: "Other" }, { ...KEY, name: "k2", label: "Third" }];
    const places = /map/.test(fqn) ? (fqn === "image_map" ? ["xPos", "yPos"] : ["latitude", "longitude"]).map((name) => ({ ...KEY, name, label: name })) : [];
    // A card of HTML begins without any.
    const settings = object(stored["settings"])["cardHtml"] === "" ? { ...object(stored["settings"]), cardHtml: "<b>Written</b>" } : stored["settings"];
    const config = withTargets(fqn, kind.type, { ...stored, settings, datasources: list(stored["datasources"]).map((source) => ({ ...object(source), entityAliasId: "a", dataKeys: [...keys, ...places] })) });
    return { fqn, kind: kind.type, config, widget: { ...widget, config } };
  });
}

/** A value as its key, or else its widget, says that it is shown. */
export interface Shown {
  label: string;
  value: string;
  text: string;
}

export function shownBy({ fqn, config }: TypedWidget): Shown[] {
  const settings = object(config["settings"]);
  const source = object(list(config["datasources"])[0]);
  const central = list(source["latestDataKeys"]).filter((key) => object(object(key)["settings"])["position"] === "center");
  return [...central, ...list(source["dataKeys"])].flatMap((stored) => {
    const key = object(stored);
    const value = STORED[text(key["name"]) as keyof typeof STORED] as number | undefined;
    // Gauges have numbers of their own among their settings.
    const own = /gauge/.test(fqn) ? settings : {};
    const decimals = number(own["valueDec"]) ?? number(key["decimals"]) ?? number(own["decimals"]) ?? number(config["decimals"]);
    const units = text(own["units"]) || text(key["units"]) || text(config["units"]);
    const rounded = value === undefined ? "" : decimals === undefined ? String(value) : String(Number(value.toFixed(decimals)));
    return value === undefined ? [] : [{ label: text(key["label"]) ?? "", value: rounded, text: units ? `${rounded} ${units}` : rounded }];
  });
}
