// Aliases of a dashboard: names for entities, each with the filter that finds them.

import type { EntityId } from "@/api/types";
import { list, object, text, type Json } from "./json";
import { plainWords } from "./words";

export interface Alias {
  id: string;
  alias: string;
  filter: Json;
}

/** Old files list devices, later entities of a type, instead of filters. They show one entity at a time, which the toolbar chooses. */
function oldFilter(alias: Json): Json {
  const filter = { ...object(alias["deviceFilter"]), ...object(alias["entityFilter"]) };
  const single = text(alias["deviceId"]);
  const entityType = text(alias["entityType"]) ?? "DEVICE";
  if (single !== undefined) {
    return { type: "singleEntity", singleEntity: { entityType: "DEVICE", id: single }, resolveMultiple: false };
  }
  return filter["useFilter"] === true
    ? { type: "entityName", entityType, entityNameFilter: text(filter["deviceNameFilter"]) ?? text(filter["entityNameFilter"]) ?? "", resolveMultiple: false }
    : { type: "entityList", entityType, entityList: list(filter["deviceList"] ?? filter["entityList"]), resolveMultiple: false };
}

/** Files of some years ago name one type where today's name several. */
const ONE_TYPE = ["deviceType", "assetType", "entityViewType", "edgeType"];

function severalTypes(filter: Json): Json {
  const type = ONE_TYPE.find((one) => one === filter["type"]);
  const single = type === undefined ? undefined : text(filter[type]);
  if (type === undefined || single === undefined) {
    return filter;
  }
  const { [type]: _single, ...rest } = filter;
  return { ...rest, [`${type}s`]: [...list(filter[`${type}s`]), single] };
}

/** Returns the aliases of a dashboard in the present form. */
export function readAliases(configuration: Json): Map<string, Alias> {
  const stored = { ...object(configuration["deviceAliases"]), ...object(configuration["entityAliases"]) };
  return new Map(
    Object.entries(stored).map(([id, value]) => {
      const alias = object(value);
      const filter = alias["filter"] === undefined ? oldFilter(alias) : severalTypes(object(alias["filter"]));
      // What doesn't say that it stands for many stands for one.
      return [id, { id, alias: plainWords(text(alias["alias"]) ?? id), filter: { ...filter, resolveMultiple: filter["resolveMultiple"] === true } }];
    }),
  );
}

/** Whether an alias stands for one entity at a time, which the viewer may choose among those that its filter finds. */
export function isChoice({ filter }: Alias): boolean {
  return filter["resolveMultiple"] === false && !["singleEntity", "stateEntity", "apiUsageState"].includes(text(filter["type"]) ?? "");
}

/** The entities that a viewer has chosen for aliases of one entity at a time. */
export type Choices = ReadonlyMap<string, EntityId>;

/** Returns aliases as the viewer has chosen. */
export function chosen(aliases: Map<string, Alias>, choices: Choices): Map<string, Alias> {
  if (choices.size === 0) {
    return aliases;
  }
  return new Map(
    [...aliases].map(([id, alias]) => {
      const entity = isChoice(alias) ? choices.get(id) : undefined;
      return [id, entity === undefined ? alias : { ...alias, filter: { type: "singleEntity", singleEntity: entity, resolveMultiple: false } }];
    }),
  );
}
