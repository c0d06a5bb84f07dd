// What automatic dashboards are made of: the keys of an entity, or of a bounded sample of a group.

import { api } from "@/api/client";
import { ask } from "@/api/typed";
import type { Entity, EntityId, PageData, Scope } from "@/api/types";
import { hasKeys, type Group } from "@/dashboard/automatic";
import { coordinatesIn, distinct, isOwn, placeOf, samePlace, type KnownKey } from "@/dashboard/automatic/keys";
import { wasSent } from "@/dashboard/emptiness";
import type { Json } from "@/dashboard/model";
import { SourceData } from "@/dashboard/sourceData";
import { nameOf } from "@/entities/kinds";

/** So many entities of a group are looked at: the first ones by name. */
const SAMPLED = 100;
/** Of so many the course is drawn. */
const FIRST = 10;
/** The most keys that are counted; in more than these nobody finds anything. */
const COUNTED = 100;

function queryOf(entityFilter: Json, keys: readonly KnownKey[]): Json {
  const name = { type: "ENTITY_FIELD", key: "name" };
  return { entityFilter, keyFilters: [], entityFields: [name], latestValues: distinct(keys).map(placeOf), pageLink: { pageSize: SAMPLED, page: 0, sortOrder: { key: name, direction: "ASC" } } };
}

/** Returns the keys of the first entities that a filter finds, each with its newest value. */
async function keysOf(filter: Json): Promise<KnownKey[]> {
  const found = await ask("POST /api/v2/entitiesQuery/find/keys", { query: { includeSamples: true }, body: queryOf(filter, []) });
  const telemetry = (found.timeseries ?? []).map(({ key, sample }): KnownKey => ({ name: key, sample: sample?.value, count: 1 }));
  const attributes = Object.entries(found.attributes ?? {}).flatMap(([scope, infos]) => infos.map(({ key, sample }): KnownKey => ({ name: key, scope: scope as Scope, sample: sample?.value, count: 1 })));
  return [...telemetry, ...attributes].filter(isOwn);
}

const sampleEntity = (id: EntityId): Promise<KnownKey[]> => keysOf({ type: "singleEntity", singleEntity: id });

/** Looks at the first entities of a group; none if it has no entities. */
async function sampleGroup(name: string, entityType: string, filter: Json): Promise<Group | undefined> {
  const all = await keysOf(filter);
  const place = coordinatesIn(all);
  const asked = distinct([...(place === undefined ? [] : [place.x, place.y]), ...all]).slice(0, COUNTED);
  // Each scope of an attribute is known, since only one of them can be switched.
  const keys = all.filter((key) => asked.some((one) => samePlace(one, key)));
  const page = await api.post<PageData<Json>>("/api/entitiesQuery/find", queryOf(filter, asked));
  const entities = SourceData.read(page.data);
  const counted = keys.map((key) => ({ ...key, count: entities.filter(({ latest }) => wasSent(latest.get(`${placeOf(key).type}/${key.name}`))).length }));
  return entities.length === 0 ? undefined : { name, entityType, filter, keys: counted, first: entities.slice(0, FIRST).map(({ id }) => id.id), total: page.totalElements };
}

/** What the dashboard of an entity is made of. */
export interface Sample {
  keys: KnownKey[];
  group: Group | undefined;
}

/** The kinds whose dashboard is that of a group of other entities. */
const GROUPS: Record<string, (entity: Entity) => Promise<Group | undefined>> = {
  DEVICE_PROFILE: (entity) => sampleGroup(nameOf(entity), "DEVICE", { type: "deviceType", deviceTypes: [nameOf(entity)], deviceNameFilter: "" }),
  ASSET_PROFILE: (entity) => sampleGroup(nameOf(entity), "ASSET", { type: "assetType", assetTypes: [nameOf(entity)], assetNameFilter: "" }),
  // Queries of an administrator know no customer, so its devices are a list.
  CUSTOMER: async (entity) => {
    const page = await api.get<PageData<Entity>>(`/api/customer/${entity.id.id}/deviceInfos`, { pageSize: SAMPLED, page: 0, sortProperty: "name", sortOrder: "ASC" });
    return page.data.length === 0 ? undefined : await sampleGroup(nameOf(entity), "DEVICE", { type: "entityList", entityType: "DEVICE", entityList: page.data.map(({ id }) => id.id) });
  },
  // Buildings have rooms, and rooms have devices.
  ASSET: (entity) => sampleGroup(nameOf(entity), "DEVICE", { type: "relationsQuery", rootEntity: entity.id, direction: "FROM", maxLevel: 3, fetchLastLevelOnly: false, filters: [{ relationType: "Contains", entityTypes: ["DEVICE"] }] }),
};

/** Whether an entity has no values of its own to show. */
export const isOnlyGroup = ({ id }: Entity): boolean => id.entityType === "DEVICE_PROFILE" || id.entityType === "ASSET_PROFILE";

export async function sampleOf(entity: Entity): Promise<Sample> {
  const [keys, group] = await Promise.all([isOnlyGroup(entity) ? [] : sampleEntity({ entityType: entity.id.entityType, id: entity.id.id }), GROUPS[entity.id.entityType]?.(entity)]);
  return { keys, group };
}

/** Whether no value of anything is known yet: a group may have entities that have sent nothing. */
export const hasNoValues = ({ keys, group }: Sample): boolean => !hasKeys(keys) && !hasKeys(group?.keys ?? []);

export const isEmpty = ({ keys, group }: Sample): boolean => !hasKeys(keys) && group === undefined;
