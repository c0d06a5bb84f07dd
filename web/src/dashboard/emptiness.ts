// Why a widget shows nothing, in words that say what to do.

import { t } from "@/i18n";
import type { Datasource } from "./model";
import { latestOf, type Point, type SourceRequest, type SourceValues } from "./source";

/** Whether a value was ever sent: what was not comes as an empty text of the beginning of time. */
export const wasSent = (point: Point | undefined): boolean => point !== undefined && (point.ts > 0 || point.value !== "");

/** Returns what is wrong with a source, in words. */
export function problemText({ source, problem }: Pick<SourceValues, "source" | "problem">): string | undefined {
  return problem === undefined ? undefined : source.type === "function" ? t("A function of this failed: {problem}", { problem }) : t("The server refused this: {problem}", { problem });
}

/** Whether a widget has nothing to show yet: a source waits, and none that it asked for has an answer. What went wrong is shown at once. */
export function isWaitingFor(asked: readonly Pick<SourceValues, "role" | "waiting" | "problem">[], requests: readonly (SourceRequest | undefined)[]): boolean {
  const shown = asked.filter(({ role }, n) => role === "shown" && requests[n] !== undefined);
  return shown.length > 0 && shown.every(({ waiting }) => waiting === true) && asked.every(({ problem }) => problem === undefined);
}

/** Whether the values of some source come over the connection; functions make up theirs without it. */
export const isConnected = (sources: readonly Pick<Datasource, "type">[]): boolean => sources.length === 0 || sources.some(({ type }) => type !== "function");

/** Returns why a source has nothing to show; nothing if it has. `answered` says whether the server has answered yet. */
export function whyEmpty(values: SourceValues, request: SourceRequest | undefined, answered: boolean): string | undefined {
  const { source, entities, problem } = values;
  if (request === undefined) {
    return source.aliasId === undefined ? t("No entity is chosen: the source names no alias.") : t("The alias is not resolved: this state was opened without the entity that it stands for.");
  }
  if (problem !== undefined) {
    return problemText(values) ?? problem;
  }
  if (!answered) {
    return t("The server has not answered yet.");
  }
  if (entities.length === 0) {
    return request.keyFilters.length > 0 ? t("No entity fits the alias and the filter together.") : t("The alias finds no entity that you may see.");
  }
  const keys = source.dataKeys.filter((key) => !entities.some((entity) => wasSent(latestOf(entity, key)) || (entity.points.get(key.name)?.length ?? 0) > 0));
  if (keys.length === 0) {
    return undefined;
  }
  const names = keys.map((key) => key.name).join(", ");
  return request.window === undefined ? t("No entity has a value of: {keys}", { keys: names }) : t("No points in this time of: {keys}", { keys: names });
}
