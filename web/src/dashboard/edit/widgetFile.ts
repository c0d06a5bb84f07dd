// One widget as a file, in the form in which ThingsBoard exports and imports them: with the aliases and filters of its sources.

import { alike } from "@/editing/diff";
import { fqnOf, list, number, object, text, type Json } from "../model";
import { addWidget, newId, placesOf, set, sizeOn, without, type Where } from "./document";

/** Shorter ids, as old files have, might be any text of the settings. */
const SHORTEST_ID = 8;

const withoutId = (value: unknown): Json => without(object(value), ["id"]);

/** The sources of a widget that name aliases and filters, by their numbers. */
function sourcesOf(widget: Json): Json[] {
  const config = object(widget["config"]);
  return (widget["type"] === "alarm" ? [config["alarmSource"]] : list(config["datasources"])).map(object);
}

function withSources(widget: Json, sources: Json[]): Json {
  const config = object(widget["config"]);
  if (sources.length === 0) {
    return widget;
  }
  return { ...widget, config: { ...config, ...(widget["type"] === "alarm" ? { alarmSource: sources[0] } : { datasources: sources }) } };
}

/** Returns what sources refer to by a field, by the numbers of the sources, without its id. */
function referred(sources: Json[], field: string, known: Json): Json {
  return Object.fromEntries(
    sources.flatMap((source, n) => {
      const found = known[text(source[field]) ?? ""];
      return found === undefined ? [] : [[String(n), withoutId(found)]];
    }),
  );
}

export function exportWidget(document: Json, where: Where, id: string): Json {
  const widget = object(object(document["widgets"])[id]);
  const { places, columns } = placesOf(document, where);
  const { sizeX, sizeY } = places.get(id) ?? { sizeX: number(widget["sizeX"]) ?? 8, sizeY: number(widget["sizeY"]) ?? 5 };
  const aliases = object(document["entityAliases"]);
  const filters = object(document["filters"]);
  const used = JSON.stringify(widget);
  const named = (all: Json): Json => Object.fromEntries(Object.entries(all).filter(([key]) => key.length >= SHORTEST_ID && used.includes(JSON.stringify(key))));
  const sources = sourcesOf(widget);
  const target = aliases[text(object(object(widget["config"])["targetDevice"])["entityAliasId"]) ?? ""];
  return {
    widget,
    aliasesInfo: { datasourceAliases: referred(sources, "entityAliasId", aliases), targetDeviceAlias: target === undefined ? null : withoutId(target) },
    filtersInfo: { datasourceFilters: referred(sources, "filterId", filters) },
    originalSize: { sizeX, sizeY },
    originalColumns: columns,
    // Settings name some, too, such as layers of maps. ThingsBoard passes over these.
    fieldlineParts: { entityAliases: named(aliases), filters: named(filters) },
  };
}

/** Brings aliases and filters into a document: what is there already is shared, and another one of the same name gets a number. */
class Parts {
  private readonly taken: { map: string; part: Json; id: string }[] = [];

  constructor(public document: Json) {}

  /** Returns the id that a part has in the document; `wanted` is taken where it is free. */
  take(map: "entityAliases" | "filters", given: unknown, wanted?: string): string {
    const part = withoutId(given);
    const all = object(this.document[map]);
    const known = this.taken.find((one) => one.map === map && alike(one.part, part))?.id;
    const id = known ?? Object.entries(all).find(([, value]) => alike(withoutId(value), part))?.[0] ?? (wanted === undefined || wanted in all ? newId() : wanted);
    if (!(id in all)) {
      const name = map === "filters" ? "filter" : "alias";
      const names = new Set(Object.values(all).map((value) => text(object(value)[name])));
      const called = text(part[name]) ?? "";
      let unique = called;
      for (let n = 2; names.has(unique); n++) {
        unique = `${called} ${n}`;
      }
      this.document = set(this.document, [map, id], { ...part, id, [name]: unique });
    }
    this.taken.push({ map, part, id });
    return id;
  }
}

/** Adds the widget of a file at the first free place. Aliases and filters that are here already are shared. */
export function importWidget(document: Json, where: Where, file: unknown): { document: Json; id: string } {
  const item = object(file);
  let widget = object(item["widget"]);
  if (Object.keys(object(widget["config"])).length === 0 || /^\w+\.\.?$/.test(fqnOf(widget)) || text(widget["type"]) === undefined) {
    throw new Error("This file has no widget.");
  }
  const parts = new Parts(document);
  for (const map of ["entityAliases", "filters"] as const) {
    for (const [key, part] of Object.entries(object(object(item["fieldlineParts"])[map]))) {
      widget = object(JSON.parse(JSON.stringify(widget).replaceAll(JSON.stringify(key), JSON.stringify(parts.take(map, part, key)))));
    }
  }
  const aliases = object(item["aliasesInfo"]);
  const ofSources = object(aliases["datasourceAliases"]);
  const filters = object(object(item["filtersInfo"])["datasourceFilters"]);
  const sources = sourcesOf(widget).map((source, n) => ({
    ...source,
    ...(ofSources[n] === undefined ? {} : { entityAliasId: parts.take("entityAliases", ofSources[n]) }),
    ...(filters[n] === undefined ? {} : { filterId: parts.take("filters", filters[n]) }),
  }));
  widget = withSources(widget, sources);
  const target = aliases["targetDeviceAlias"];
  if (target !== undefined && target !== null) {
    widget = set(widget, ["config", "targetDevice"], { type: "entity", ...object(object(widget["config"])["targetDevice"]), entityAliasId: parts.take("entityAliases", target) });
  }
  const size = object(item["originalSize"]);
  const id = newId();
  const from = number(item["originalColumns"]) ?? 24;
  return { document: addWidget(parts.document, where, widget, sizeOn(parts.document, where, { sizeX: number(size["sizeX"]) ?? 8, sizeY: number(size["sizeY"]) ?? 5 }, from), id), id };
}
