// Bundles of widgets as files, in ThingsBoard's form.

import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { list, object, text, type Json } from "@/dashboard/model";
import { copyOf } from "./editing";

/** Makes the file of a bundle: its types whole if they are the tenant's own, by name if they are the installation's. */
export function bundleFile(bundle: Entity, types: readonly Json[], isOfSystem: (type: Json) => boolean): Json {
  const { id: _id, createdTime: _created, tenantId: _tenant, version: _version, externalId: _external, ...content } = bundle;
  const own = types.filter((type) => !isOfSystem(type) || isOfSystem(bundle));
  const foreign = types.filter((type) => !own.includes(type));
  return {
    widgetsBundle: content,
    widgetTypes: own.map((type) => ({ ...copyOf(type, text(type["name"]) ?? ""), fqn: type["fqn"] })),
    ...(foreign.length === 0 ? {} : { widgetTypeFqns: foreign.map((type) => `system.${text(type["fqn"]) ?? ""}`) }),
  };
}

/** Brings a file of a bundle in: its types, the bundle, and what is in it. Types of the same name are brought up to date. */
export async function importBundle(file: Json): Promise<Entity> {
  const content = object(file["widgetsBundle"]);
  if (text(content["title"]) === undefined) {
    throw new Error("This file is no bundle of widgets.");
  }
  const ids: string[] = [];
  for (const type of list(file["widgetTypes"]).map(object)) {
    const saved = await api.post<Entity>("/api/widgetType", { ...copyOf(type, text(type["name"]) ?? ""), fqn: type["fqn"] }, { updateExistingByFqn: true });
    ids.push(saved.id.id);
  }
  const fqns = list(file["widgetTypeFqns"]).map(String);
  for (const fqn of fqns) {
    const known = await api.get<Entity>("/api/widgetType", { fqn: fqn.includes(".") ? fqn : `system.${fqn}` }).catch(() => undefined);
    ids.push(...(known === undefined ? [] : [known.id.id]));
  }
  const { id: _id, version: _version, tenantId: _tenant, alias: _alias, ...fields } = content;
  const bundle = await api.post<Entity>("/api/widgetsBundle", fields);
  await api.post(`/api/widgetsBundle/${bundle.id.id}/widgetTypes`, ids);
  return bundle;
}
