// Columns of a table of entities: who they are, then the keys of the source.

import { Anchor } from "@mantine/core";
import type { ReactNode } from "react";
import { newestOf } from "@/dashboard/age";
import { text, type DataKey, type Json } from "@/dashboard/model";
import type { PageOrder } from "@/dashboard/entityPages";
import { LATEST_TYPES, latestOf, type EntityValues } from "@/dashboard/source";
import { pathOf } from "@/entities/kinds";
import { currentLanguage, t } from "@/i18n";
import type { Ask } from "@/sandbox/functions";
import { Ago, TextLink } from "@/ui/feedback";
import type { GridColumn } from "@/ui/grid/columns";
import { numeric } from "../postProcessing";
import { shownValue } from "../text";
import { madeStyle, madeValue, MadeContent } from "./cells";
import { columnWidth, keySettings } from "./settings";

export interface EntityColumn extends GridColumn<EntityValues> {
  /** What the server sorts and filters by. */
  query: { type: string; key: string } | undefined;
  /** Names by which a stored order means the column. */
  names: string[];
}

const NAMES = ["value", "entity"];

export function labelOf(entity: EntityValues): string {
  return entity.latest.get("ENTITY_FIELD/label")?.value ?? "";
}

/** Returns an entity as functions of tables see it: its names, and values by the labels of their keys. */
export function entityRow(entity: EntityValues, keys: readonly DataKey[]): Json {
  const values = keys.map((key) => [key.label, numeric(latestOf(entity, key)?.value ?? "")]);
  return { ...Object.fromEntries(values), id: entity.id, entityId: entity.id, entityName: entity.name, entityLabel: labelOf(entity), entityType: entity.id.entityType };
}

function fieldColumn(field: "name" | "label" | "type", title: string, width: unknown, show?: (entity: EntityValues) => ReactNode): EntityColumn {
  const names = { name: "entityName", "label": "entityLabel", type: "entityType" };
  return {
    key: names[field],
    label: title,
    width: columnWidth(width),
    sortable: field !== "type",
    query: field === "type" ? undefined : { type: "ENTITY_FIELD", key: field },
    names: [names[field], field],
    text: (entity) => (field === "name" ? entity.name : field === "label" ? labelOf(entity) : t(entity.id.entityType)),
    show,
  };
}

function keyColumn(key: DataKey, keys: readonly DataKey[], ask: Ask): EntityColumn {
  const own = keySettings(key);
  const type = LATEST_TYPES[key.type];
  const value = (entity: EntityValues): unknown => {
    const point = latestOf(entity, key);
    return madeValue(ask, own.post, point?.ts ?? 0, numeric(point?.value ?? ""));
  };
  const shown = (entity: EntityValues): string => {
    const made = value(entity);
    const isTime = key.type === "entityField" && key.name === "createdTime" && typeof made === "number";
    return isTime ? new Date(made).toLocaleString(currentLanguage()) : shownValue(made === null || made === undefined ? "" : typeof made === "object" ? JSON.stringify(made) : String(made), key);
  };
  const { content, style } = own;
  return {
    key: `${key.type} ${key.name} ${key.label}`,
    label: own.title,
    width: own.width,
    hidden: own.hidden,
    hideable: own.hideable,
    sortable: own.sortable && type !== undefined,
    query: type === undefined ? undefined : { type, key: key.name },
    names: [key.label, key.name],
    text: shown,
    show: content === undefined ? undefined : (entity) => <MadeContent ask={ask} body={content} names={NAMES} args={[value(entity), entityRow(entity, keys)]} otherwise={shown(entity)} />,
    style: style === undefined ? undefined : (entity) => madeStyle(ask, style, NAMES, [value(entity), entityRow(entity, keys)]),
  };
}

/** How old the newest value of a row is, while the connection is lost. */
export function ageColumn(): EntityColumn {
  const show = (entity: EntityValues): ReactNode => {
    const ts = newestOf([entity]);
    return ts === undefined ? "" : <Ago ts={ts} />;
  };
  return { key: "age", label: t("Updated"), width: "7rem", sortable: false, query: undefined, names: [], text: () => "", show };
}

/** Makes the columns of a table of entities. `open` is what a click on a name does, instead of leading to the entity's page. */
export function entityColumns(settings: Json, all: readonly DataKey[], ask: Ask, open: ((entity: EntityValues) => void) | undefined, leads: boolean): EntityColumn[] {
  const keys = all.filter((key) => !key.hidden && key.type !== "other");
  const isNameKey = keys.some((key) => key.type === "entityField" && key.name === "name");
  const link = (entity: EntityValues): ReactNode => {
    const path = leads ? pathOf(entity.id) : undefined;
    if (open !== undefined) {
      return (
        <Anchor component="button" type="button" size="sm" onClick={(event) => (event.stopPropagation(), open(entity))}>
          {entity.name}
        </Anchor>
      );
    }
    return path === undefined ? entity.name : <TextLink to={path}>{entity.name}</TextLink>;
  };
  const title = (name: string, otherwise: string): string => text(settings[name]) ?? t(otherwise);
  return [
    ...(settings["displayEntityName"] !== false && !isNameKey ? [fieldColumn("name", title("entityNameColumnTitle", "Name"), settings["entityNameColumnWidth"], link)] : []),
    ...(settings["displayEntityLabel"] === true ? [fieldColumn("label", title("entityLabelColumnTitle", "Label"), settings["entityLabelColumnWidth"])] : []),
    ...(settings["displayEntityType"] === true ? [fieldColumn("type", t("Type"), settings["entityTypeColumnWidth"])] : []),
    ...keys.map((key) => keyColumn(key, keys, ask)),
  ];
}

/** Returns the order of the server for a column and a direction; by name if the column can't be sorted by. */
export function pageOrder(columns: readonly EntityColumn[], key: string, direction: "ASC" | "DESC"): PageOrder {
  const query = columns.find((column) => column.key === key)?.query;
  return { key: query ?? { type: "ENTITY_FIELD", key: "name" }, direction };
}
