// A dashboard made from what entities have, in ThingsBoard's form, so that it can be saved and changed as an ordinary one.

import type { EntityId } from "@/api/types";
import { t } from "@/i18n";
import { alarmsPart, chartPart, countPart, dashboardOf, listPart, mapPart, Sheet, switchPart, tablePart, valuePart } from "./automatic/drawing";
import { chartGroups, coordinatesIn, distinct, isOwn, kindOf, samePlace, type KnownKey } from "./automatic/keys";
import type { Json } from "./model";

/** More keys than these make no page that a person can read. */
const MOST = 40;
/** The most attributes in the list of them. */
const LISTED = 30;
/** Longer texts are lines of a list, and no cards. */
const CARD_TEXT = 40;
/** The most columns of a table, and charts, of a group. */
const COLUMNS = 6;
const CHARTS = 3;

export interface Rights {
  /** Whether attributes may be written. */
  mayWrite: boolean;
}

const byName = (a: KnownKey, b: KnownKey): number => a.name.localeCompare(b.name);
/** What most entities have comes first. */
const byCount = (a: KnownKey, b: KnownKey): number => b.count - a.count || byName(a, b);

/** What can be shown of keys: those of the place are on a map, and not beside it. */
function sorted(keys: readonly KnownKey[]): { place: ReturnType<typeof coordinatesIn>; telemetry: KnownKey[]; attributes: KnownKey[] } {
  const place = coordinatesIn(keys);
  const own = keys.filter((key) => isOwn(key) && [place?.x, place?.y].every((one) => one === undefined || !samePlace(key, one)));
  return { place, telemetry: own.filter(({ scope }) => scope === undefined), attributes: own.filter(({ scope }) => scope !== undefined) };
}

/** Whether there is anything to show of keys. */
export const hasKeys = (keys: readonly KnownKey[]): boolean => keys.some(isOwn);

/** Draws one entity: what can be switched, its values, their course, texts, where it is, its alarms. */
function drawEntity(sheet: Sheet, alias: string, keys: readonly KnownKey[], { mayWrite }: Rights): void {
  const { place, ...own } = sorted(keys);
  const telemetry = [...own.telemetry].sort(byCount).slice(0, MOST).sort(byName);
  const attributes = [...own.attributes].sort(byCount);
  const shared = attributes.filter(({ scope }) => scope === "SHARED_SCOPE").slice(0, MOST).sort(byName);
  const switches = mayWrite ? shared.filter((key) => kindOf(key) === "boolean") : [];
  const settings = shared.filter((key) => kindOf(key) === "number");
  const numbers = telemetry.filter((key) => kindOf(key) === "number");
  const isShort = ({ sample }: KnownKey): boolean => typeof sample !== "object" && String(sample).length <= CARD_TEXT;
  const words = telemetry.filter((key) => kindOf(key) !== "number");
  const long = words.filter((key) => !isShort(key));
  const listed = distinct(attributes.filter((key) => !switches.includes(key) && !settings.some((one) => samePlace(one, key)))).slice(0, LISTED).sort(byName);
  sheet.add(switches.map((key) => switchPart(alias, key)));
  sheet.add([...numbers, ...settings].map((key, n) => valuePart(alias, key, n)));
  sheet.add(chartGroups(numbers).map((group) => chartPart(alias, group.map(({ name }) => name).join(", "), group)));
  sheet.add(words.filter(isShort).map((key, n) => valuePart(alias, key, n)));
  sheet.add([
    ...(place === undefined ? [] : [mapPart(alias, place)]),
    ...(long.length === 0 ? [] : [listPart(alias, t("Texts"), long)]),
    ...(listed.length === 0 ? [] : [listPart(alias, t("Attributes"), listed)]),
  ]);
  sheet.add([alarmsPart(alias)]);
}

/** A group of entities as a sample of it has been found. */
export interface Group {
  /** What it is called, such as the name of a profile. */
  name: string;
  /** The filter of an alias that finds all of it. */
  filter: Json;
  entityType: string;
  keys: readonly KnownKey[];
  /** The first ones by name, whose course is drawn. */
  first: readonly string[];
  total: number;
}

const alias = (id: string, name: string, filter: Json): Json => ({ [id]: { id, alias: name, filter } });
const ACTIVE = { key: { type: "ATTRIBUTE", key: "active" }, valueType: "BOOLEAN", value: null, predicates: [{ keyFilterPredicate: { type: "BOOLEAN", operation: "EQUAL", value: { defaultValue: true, dynamicValue: null } }, userInfo: { editable: false } }] };

/** Draws a group: how many there are, the keys that most of them have, the course of the first ones, where they are, their alarms. */
function drawGroup(sheet: Sheet, group: Group): void {
  const { place, telemetry, attributes } = sorted(group.keys);
  const isDevices = group.entityType === "DEVICE";
  const columns = [...[...telemetry].sort(byCount), ...distinct(attributes).sort(byCount)].slice(0, COLUMNS);
  const main = telemetry.filter((key) => kindOf(key) === "number").sort(byCount).slice(0, CHARTS);
  const active: KnownKey[] = isDevices ? [{ name: "active", scope: "SERVER_SCOPE", sample: true, count: 0 }] : [];
  sheet.add([
    countPart("all", "entity", t(isDevices ? "Devices" : "Assets"), isDevices ? "devices_other" : "domain"),
    ...(isDevices ? [countPart("all", "entity", t("Online"), "wifi", "online")] : []),
    countPart("all", "alarm", t("Active alarms"), "warning"),
  ]);
  sheet.add([tablePart("all", group.name, [...active, ...columns], "entity"), ...(place === undefined ? [] : [mapPart("all", place, "entity")])]);
  const titleOf = (key: KnownKey): string => (group.total > group.first.length ? t("{key}: the first {n} by name", { key: key.name, n: group.first.length }) : key.name);
  // The names of ten lines need their place.
  sheet.add(main.map((key) => ({ ...chartPart("first", titleOf(key), [key]), sizeY: 8, phone: 5 })));
  sheet.add([alarmsPart("all")]);
}

/** Returns the aliases, filters and the state that each entity of a group opens. */
function groupParts(group: Group, rights: Rights): { aliases: Json; filters: Json; opened: Sheet } {
  const opened = new Sheet("entity");
  drawEntity(opened, "opened", group.keys, rights);
  const first = t("The first {n} by name", { n: group.first.length });
  return {
    opened,
    aliases: {
      ...alias("all", group.name, { ...group.filter, resolveMultiple: true }),
      ...alias("first", first, { type: "entityList", entityType: group.entityType, entityList: [...group.first], resolveMultiple: true }),
      ...alias("opened", t("The opened one"), { type: "stateEntity", stateEntityParamName: null, defaultStateEntity: null, resolveMultiple: false }),
    },
    filters: group.entityType === "DEVICE" ? { online: { id: "online", filter: t("Online"), editable: false, keyFilters: [ACTIVE] } } : {},
  };
}

const OPENED = { id: "entity", name: "${entityName}" };

/** Returns the configuration of the dashboard of one entity, and of what belongs to it. */
export function automaticDashboard(id: EntityId, keys: readonly KnownKey[], rights: Rights, related?: Group): Json {
  const sheet = new Sheet("default");
  const own = alias("entity", t("Entity"), { type: "singleEntity", singleEntity: id, resolveMultiple: false });
  const state = { sheet, id: "default", name: t("Overview") };
  if (hasKeys(keys) || related === undefined) {
    drawEntity(sheet, "entity", keys, rights);
  }
  if (related === undefined) {
    return dashboardOf([state], own);
  }
  drawGroup(sheet, related);
  const { aliases, filters, opened } = groupParts(related, rights);
  return dashboardOf([state, { ...OPENED, sheet: opened }], { ...own, ...aliases }, filters);
}

/** Returns the configuration of the dashboard of a group of entities, such as all of a profile. */
export function groupDashboard(group: Group, rights: Rights): Json {
  const sheet = new Sheet("default");
  drawGroup(sheet, group);
  const { aliases, filters, opened } = groupParts(group, rights);
  return dashboardOf([{ sheet, id: "default", name: t("Overview") }, { ...OPENED, sheet: opened }], aliases, filters);
}
