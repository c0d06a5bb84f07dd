// Names of keys that a source can have, for completion.

import { useQuery } from "@tanstack/react-query";
import { ALARM_FIELDS } from "@/alarms/alarm";
import { api } from "@/api/client";
import { ENTITY_FIELDS } from "@/dashboard/edit/filterForms";
import { COURSES } from "@/dashboard/edit/sources";
import { findQuery } from "@/dashboard/find";
import { readSource, type Json } from "@/dashboard/model";
import { requestOf } from "@/dashboard/source";
import type { DashboardEditor } from "../editor";

interface Found {
  timeseries: string[];
  attribute: string[];
}

/** From so many entities names are gathered. */
const ASKED = 100;

/** Returns the names that keys of a kind can have, as far as they are known. */
export function useKnownKeys(source: Json, { model, params }: Pick<DashboardEditor, "model" | "params">): (kind: string) => readonly string[] {
  const read = readSource(source);
  const filter = read.type === "entity" || read.type === "device" ? requestOf(read, model, params, undefined)?.filter : undefined;
  const found = useQuery({
    queryKey: ["keys of", filter],
    enabled: filter !== undefined,
    retry: false,
    queryFn: () => api.post<Found>("/api/entitiesQuery/find/keys", findQuery(filter ?? {}, ASKED), { timeseries: true, attributes: true }),
  });
  const known: Readonly<Record<string, readonly string[]>> = {
    timeseries: found.data?.timeseries ?? [],
    attribute: found.data?.attribute ?? [],
    entityField: ENTITY_FIELDS,
    alarm: ALARM_FIELDS,
    function: Object.keys(COURSES),
    count: ["count"],
  };
  return (kind) => known[kind] ?? [];
}
