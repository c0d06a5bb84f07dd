// Keys of an entity in forms: names that it has are offered, and any other can be typed.

import { Autocomplete, TagsInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useContext, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { findQuery } from "@/dashboard/find";
import { t } from "@/i18n";
import { AroundContext, type FormAround, type OwnField } from "@/ui/form/around";
import { valueAt, type FormValues } from "@/ui/form/values";
import { OWN, SOURCE } from "../forms/argument";

interface Found {
  timeseries: string[];
  attribute: string[];
}

/** From so many entities of a profile names are gathered. */
const ASKED = 100;
/** So many names are offered at a time; typing narrows them. */
const OFFERED = 100;

/** What finds the entities of a profile, whose filters know it by name. */
const PROFILES: Record<string, { one: string; filter: (name: string) => FormValues }> = {
  DEVICE_PROFILE: { one: "/api/deviceProfileInfo", filter: (name) => ({ type: "deviceType", deviceTypes: [name], deviceNameFilter: "" }) },
  ASSET_PROFILE: { one: "/api/assetProfileInfo", filter: (name) => ({ type: "assetType", assetTypes: [name], assetNameFilter: "" }) },
};

async function keysOf(entityType: string, id: string): Promise<Found> {
  const profile = PROFILES[entityType];
  const filter = profile === undefined ? { type: "singleEntity", singleEntity: { entityType, id } } : profile.filter((await api.get<Entity>(`${profile.one}/${id}`)).name ?? "");
  return await api.post<Found>("/api/entitiesQuery/find/keys", findQuery(filter, ASKED), { timeseries: true, attributes: true });
}

/** Returns the names of keys that an entity, or those of a profile, have. */
function useKeys(holder: unknown): Found | undefined {
  const [entityType, id] = [valueAt(holder, "entityType"), valueAt(holder, "id")];
  return useQuery({
    queryKey: ["keys of", entityType, id],
    enabled: typeof id === "string" && id !== "",
    // A form without suggestions is still a form.
    retry: false,
    queryFn: () => keysOf(String(entityType), String(id)),
  }).data;
}

/** The key of an argument. */
function KeyField({ field, value, values: argument, change }: OwnField): ReactElement {
  const { values } = useContext(AroundContext);
  const found = useKeys((argument[SOURCE] ?? OWN) === OWN ? values["entityId"] : argument["refEntityId"]);
  const known = valueAt(argument, "refEntityKey.type") === "ATTRIBUTE" ? found?.attribute : found?.timeseries;
  return <Autocomplete label={t(field.label)} required={field.required ?? false} data={[...new Set(known)]} limit={OFFERED} value={typeof value === "string" ? value : ""} onChange={change} />;
}

/** The keys that a view shows of its entity. */
function KeysField({ field, value, values, change }: OwnField): ReactElement {
  const found = useKeys(values["entityId"]);
  const known = field.name.startsWith("keys.attributes") ? found?.attribute : found?.timeseries;
  return <TagsInput label={t(field.label)} data={[...new Set(known)]} limit={OFFERED} value={Array.isArray(value) ? value.map(String) : []} onChange={change} />;
}

/** What is around the forms of entities. */
export const AROUND_FORMS: FormAround = { values: {}, names: {}, own: { key: (field) => <KeyField {...field} />, keys: (field) => <KeysField {...field} /> } };
