// The latest value of a key, with which a function of it can be tried.

import { api } from "@/api/client";
import { list, object, readKey, readSource, type Json } from "@/dashboard/model";
import { commandOf, latestOf, requestOf } from "@/dashboard/source";
import { SourceData } from "@/dashboard/sourceData";
import { wasSent } from "@/dashboard/emptiness";
import { numeric } from "@/widgets/postProcessing";
import type { DashboardEditor } from "../editor";
import type { Trial } from "./KeyFunction";

const COUNTS: Readonly<Record<string, string>> = { entityCount: "/api/entitiesQuery/count", alarmCount: "/api/alarmsQuery/count" };

/** Returns the arguments of a function that processes values, for a value without one before it. */
const trialOf = (ts: number, value: string): Trial => ({ args: [ts, numeric(value), 0, 0, 0], given: value });

/** Returns what asks for the latest value of a key of a source; nothing comes back where there is none. */
export function trialIn(source: Json, { model, params }: Pick<DashboardEditor, "model" | "params">): (key: Json) => Promise<Trial | undefined> {
  return async (stored) => {
    // A function sees single values also where they are then aggregated.
    const plain = { ...stored, aggregationType: "NONE" };
    const request = requestOf(readSource({ ...source, dataKeys: [plain], latestDataKeys: [] }), model, params, undefined);
    if (request === undefined) {
      return undefined;
    }
    const now = Date.now();
    const query = object(commandOf(request, now)["query"]);
    const count = COUNTS[request.source.type];
    if (count !== undefined) {
      return trialOf(now, String(await api.post<number>(count, query)));
    }
    const page = object(await api.post("/api/entitiesQuery/find", { ...query, pageLink: { ...object(query["pageLink"]), pageSize: 1 } }));
    const [entity] = SourceData.read(list(page["data"]));
    const point = entity === undefined ? undefined : latestOf(entity, readKey(plain));
    return point === undefined || !wasSent(point) ? undefined : trialOf(point.ts, point.value);
  };
}
