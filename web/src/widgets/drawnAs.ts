// Drawing the data of a widget in another way.

import { keysIn, retypeSource, sourcesIn, withSources } from "@/dashboard/edit/sources";
import { object, type Json } from "@/dashboard/json";
import type { WidgetKind } from "./catalog";
import { rulesOf } from "./typeRules";

const isSeries = (key: Json): boolean => key["type"] === undefined || key["type"] === "timeseries" || key["type"] === "function";

/** Returns the kinds that can draw what a widget has. Telemetry has a course and a latest value, so that both kinds of it fit. */
export function fittingKinds(kinds: readonly WidgetKind[], widget: Json): WidgetKind[] {
  const { type } = widget;
  const other = type === "latest" ? "timeseries" : type === "timeseries" ? "latest" : undefined;
  const both = sourcesIn(widget).every((source) => source["type"] !== "entityCount" && source["type"] !== "alarmCount" && keysIn(source, "dataKeys").every(isSeries));
  return [...kinds.filter((kind) => kind.type === type), ...(other !== undefined && both ? kinds.filter((kind) => kind.type === other) : [])];
}

/** Returns a widget that is drawn as another kind. What the kind needs is filled in, and sources that it can't draw become what it can. */
export function drawnAs(widget: Json, kind: WidgetKind): Json {
  const config = object(widget["config"]);
  // A map of another kind has another background.
  const background = kind.settings?.["mapType"] === undefined ? {} : { mapType: kind.settings["mapType"] };
  const next: Json = { ...widget, typeFullFqn: kind.fqn, type: kind.type, config: { ...config, settings: { ...kind.settings, ...object(config["settings"]), ...background } } };
  const { kinds, maxSources } = rulesOf(kind.fqn, kind.type);
  const [first] = kinds;
  if (first === undefined || maxSources === 0) {
    return next;
  }
  const fits = (source: Json): boolean => kinds.some((one) => one === (source["type"] ?? "entity"));
  const sources = sourcesIn(next);
  return sources.every(fits) ? next : withSources(next, sources.map((source) => (fits(source) ? source : retypeSource(source, first))));
}
