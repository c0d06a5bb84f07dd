// Asks which entities a filter finds.

import type { EntityId } from "@/api/types";
import { list, number, object, text, type Json } from "./json";

export interface FoundEntity {
  id: EntityId;
  /** Its label if it has one, else its name. */
  label: string;
  type: string;
}

export interface FoundPage {
  entities: FoundEntity[];
  total: number;
}

const FIELDS = ["name", "label", "type", "createdTime"];

/** Makes a query of the first entities of a filter, the newest first: in the order in which one is taken where one is shown. */
export function findQuery(entityFilter: Json, pageSize: number, textSearch = "", keyFilters: Json[] = []): Json {
  return {
    entityFilter,
    keyFilters,
    entityFields: FIELDS.map((key) => ({ type: "ENTITY_FIELD", key })),
    latestValues: [],
    pageLink: { pageSize, page: 0, textSearch: textSearch === "" ? null : textSearch, sortOrder: { key: { type: "ENTITY_FIELD", key: "createdTime" }, direction: "DESC" } },
  };
}

export function readFound(answer: unknown): FoundPage {
  const page = object(answer);
  const entities = list(page["data"]).map((row): FoundEntity => {
    const { entityId, latest } = object(row);
    const fields = object(object(latest)["ENTITY_FIELD"]);
    const field = (name: string): string | undefined => text(object(fields[name])["value"]);
    const id = object(entityId);
    return { id: { entityType: text(id["entityType"]) ?? "", id: text(id["id"]) ?? "" }, label: field("label") ?? field("name") ?? "", type: field("type") ?? "" };
  });
  return { entities, total: number(page["totalElements"]) ?? entities.length };
}
