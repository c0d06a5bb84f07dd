// The parts of a dashboard, for telling what differs between two of its versions.

import { fqnOf, list, object, text, type Json } from "../model";
import { editable } from "./document";
import { diffOf, partsOf, restOf, type Section, type SectionChange } from "@/editing/diff";

const widgetName = (widget: Json, id: string): string => text(object(widget["config"])["title"]) ?? fqnOf(widget).replace(/^(system|tenant)\./, "") ?? id;

/** Where widgets lie, by state and layout, so that moving one is told as such. */
function layoutsOf(document: Json): Map<string, { name: string; value: unknown }> {
  const found = new Map<string, { name: string; value: unknown }>();
  for (const [id, stored] of Object.entries(object(document["states"]))) {
    const state = object(stored);
    const add = (name: string, value: unknown): void => {
      const layout = object(value);
      found.set(`${id} ${name}`, { name: `${text(state["name"]) ?? id} · ${name}`, value: { places: object(layout["widgets"]), grid: object(layout["gridSettings"]) } });
      Object.entries(object(layout["breakpoints"])).forEach(([breakpoint, inner]) => add(`${name} ${breakpoint}`, inner));
    };
    Object.entries(object(state["layouts"])).forEach(([name, layout]) => add(name, layout));
  }
  return found;
}

const SECTIONS: readonly Section[] = [
  { title: "Widgets", parts: (document) => partsOf(document["widgets"], widgetName) },
  { title: "States", parts: (document) => new Map([...partsOf(document["states"], (state, id) => text(state["name"]) ?? id)].map(([id, { name, value }]) => [id, { name, value: { name: object(value)["name"], root: object(value)["root"] } }])) },
  { title: "Layouts", parts: layoutsOf },
  { title: "Aliases", parts: (document) => partsOf(document["entityAliases"], (alias, id) => text(alias["alias"]) ?? id) },
  { title: "Filters", parts: (document) => partsOf(document["filters"], (filter, id) => text(filter["filter"]) ?? id) },
  restOf("Settings", ["widgets", "states", "entityAliases", "filters"]),
];

/** Names of widgets instead of their ids in what tells of places. */
function withNames(changes: SectionChange[], names: ReadonlyMap<string, string>): SectionChange[] {
  const named = (path: string): string => path.split(" › ").map((part) => names.get(part) ?? part).join(" › ");
  return changes.map((section) => ({ ...section, parts: section.parts.map((part) => ({ ...part, fields: part.fields.map((field) => ({ ...field, path: named(field.path) })) })) }));
}

/** Tells what differs between two configurations of a dashboard. */
export function dashboardDiff(before: unknown, after: unknown): SectionChange[] {
  const [old, now] = [editable(before), editable(after)];
  const names = new Map([old, now].flatMap((document) => Object.entries(object(document["widgets"])).map(([id, widget]): [string, string] => [id, widgetName(object(widget), id)])));
  return withNames(diffOf(old, now, SECTIONS), names);
}

/** How many parts differ. */
export function countOf(changes: SectionChange[]): number {
  return changes.reduce((sum, { parts }) => sum + list(parts).length, 0);
}
