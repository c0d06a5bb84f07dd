// What a replay of a calculated field or alarm rule begins with: its devices, the series that it reads, the chain of its profile.

import { api } from "@/api/client";
import type { Entity, EntityId, PageData } from "@/api/types";
import { isObject, valueAt, type FormValues } from "@/ui/form/values";
import { hasTarget, NULL_ID } from "../columns";
import { ALARMS } from "../forms/profileAlarms";

/** Whether what a form has can be tried: of a device profile, its alarm rules. */
export function isReplayed(type: string, values: FormValues): boolean {
  const alarms = valueAt(values, ALARMS);
  return hasTarget(type) || (type === "DEVICE_PROFILE" && Array.isArray(alarms) && alarms.length > 0);
}

const isId = (id: unknown): id is string => typeof id === "string" && id !== "" && id !== NULL_ID;

/** Returns whom a form is for, once that is chosen. */
export function targetOf(values: FormValues): EntityId | undefined {
  const [entityType, id] = [valueAt(values, "entityId.entityType"), valueAt(values, "entityId.id")];
  return typeof entityType === "string" && isId(id) ? { entityType, id } : undefined;
}

/** Returns the device profile that a form is of, once it is saved. */
export function profileOf(values: FormValues): EntityId | undefined {
  const id = valueAt(values, "id.id");
  return isId(id) ? { entityType: "DEVICE_PROFILE", id } : undefined;
}

/** Returns the devices that a form of a replay begins with. Only devices are replayed, so for all other targets it is all of them. */
export function devicesOf(target: EntityId | undefined): FormValues {
  switch (target?.entityType) {
    case "DEVICE":
      return { which: "devices", deviceIds: [target.id] };
    case "DEVICE_PROFILE":
      return { which: "profile", deviceProfileId: target };
    default:
      return { which: "all" };
  }
}

/** Returns the series of the entity itself that a field or rule reads. */
export function seriesOf(values: FormValues): string[] {
  const declared = valueAt(values, "configuration.arguments");
  const names = Object.values(isObject(declared) ? declared : {}).flatMap((one): string[] => {
    const [type, key] = [valueAt(one, "refEntityKey.type"), valueAt(one, "refEntityKey.key")];
    const isOwn = (valueAt(one, "refDynamicSourceConfiguration.type") ?? null) === null && (valueAt(one, "refEntityId.id") ?? null) === null;
    return isOwn && (type === "TS_LATEST" || type === "TS_ROLLING") && typeof key === "string" && key !== "" ? [key] : [];
  });
  return [...new Set(names)];
}

/**
 * Returns the series that a replay takes to begin with: all for alarm rules, which store none. What a field has stored before would come
 * in as if a device had sent it, so that its replay takes what it reads.
 */
export function firstKeys(type: string, values: FormValues): string[] {
  return type === "ALARM_RULE" ? [] : seriesOf(values);
}

async function rootChain(): Promise<EntityId | undefined> {
  const page = await api.get<PageData<Entity>>("/api/ruleChains", { type: "CORE", sortProperty: "root", sortOrder: "DESC", pageSize: 1, page: 0 });
  return page.data[0]?.id;
}

/** Returns the chain that a device profile names in its form, or else the root chain. */
export async function chainNamedIn(values: FormValues): Promise<EntityId | undefined> {
  const id = valueAt(values, "defaultRuleChainId.id");
  return isId(id) ? { entityType: "RULE_CHAIN", id } : await rootChain();
}

/** Returns the chain that messages of a target enter: that of its profile, or else the root chain. */
export async function chainOf(target: EntityId | undefined): Promise<EntityId | undefined> {
  const device = target?.entityType === "DEVICE" ? await api.get<Entity>(`/api/device/${target.id}`) : undefined;
  const profile = device === undefined ? (target?.entityType === "DEVICE_PROFILE" ? target.id : undefined) : valueAt(device, "deviceProfileId.id");
  const own = typeof profile === "string" ? valueAt(await api.get<Entity>(`/api/deviceProfile/${profile}`), "defaultRuleChainId.id") : undefined;
  return isId(own) ? { entityType: "RULE_CHAIN", id: own } : await rootChain();
}
