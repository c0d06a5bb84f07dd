// What a table of alarms is narrowed by, as people choose it and as the server takes it.

import type { EntityId } from "@/api/types";
import type { Json } from "@/dashboard/json";
import { SEVERITIES, STATES } from "./alarm";
import type { AlarmConditions } from "./feed";

export interface AlarmFilter {
  states: string[];
  severities: string[];
  types: string[];
  assignee: string | undefined;
  originator: EntityId | undefined;
  propagated: boolean;
  /** The last so many milliseconds. */
  window: number | undefined;
  /** Local moments, as inputs of dates have them. */
  from: string | undefined;
  to: string | undefined;
}

export const NO_FILTER: AlarmFilter = { states: [], severities: [], types: [], assignee: undefined, originator: undefined, propagated: false, window: undefined, from: undefined, to: undefined };

function momentOf(local: string | undefined): number | undefined {
  const ts = local === undefined ? NaN : new Date(local).getTime();
  return Number.isNaN(ts) ? undefined : ts;
}

export function conditionsOf(filter: AlarmFilter): AlarmConditions {
  const [from, to] = [momentOf(filter.from), momentOf(filter.to)];
  return {
    statusList: filter.states,
    severityList: filter.severities,
    typeList: filter.types,
    ...(filter.assignee === undefined ? {} : { assigneeId: { entityType: "USER", id: filter.assignee } }),
    ...(filter.window === undefined ? {} : { timeWindow: filter.window }),
    ...(from === undefined ? {} : { startTs: from }),
    ...(to === undefined ? {} : { endTs: to }),
    ...(filter.originator !== undefined && filter.propagated ? { searchPropagatedAlarms: true } : {}),
  };
}

/** Returns the filters of entities whose alarms are meant: that of the chosen originator, or none for all. */
export function entitiesOf(filter: AlarmFilter): Json[] | undefined {
  return filter.originator === undefined ? undefined : [{ type: "singleEntity", singleEntity: filter.originator }];
}

/** How many conditions narrow besides the states. */
export function countOf(filter: AlarmFilter): number {
  return [filter.severities.length > 0, filter.types.length > 0, filter.assignee !== undefined, filter.originator !== undefined, filter.window !== undefined || filter.from !== undefined || filter.to !== undefined].filter(Boolean).length;
}

/** Reads a filter from the address of the page; without any, alarms that are active. */
export function readFilter(search: URLSearchParams): AlarmFilter {
  const many = (name: string): string[] => search.getAll(name);
  const [entityType, id] = search.get("originator")?.split("/") ?? [];
  const window = Number(search.get("last"));
  return {
    states: search.has("status") ? many("status").filter((state) => STATES.some((one) => one === state)) : ["ACTIVE"],
    severities: many("severity").filter((severity) => SEVERITIES.some((one) => one === severity)),
    types: many("type"),
    assignee: search.get("assignee") ?? undefined,
    originator: entityType === undefined || id === undefined ? undefined : { entityType, id },
    propagated: search.get("propagated") === "true",
    window: window > 0 ? window : undefined,
    from: search.get("from") ?? undefined,
    to: search.get("to") ?? undefined,
  };
}

/** Writes a filter as the address of the page has it, so that it can be passed on. */
export function writeFilter(filter: AlarmFilter): [string, string][] {
  return [
    ...(filter.states.length === 0 ? [["status", ""] as [string, string]] : filter.states.length === 1 && filter.states[0] === "ACTIVE" ? [] : filter.states.map((state): [string, string] => ["status", state])),
    ...filter.severities.map((severity): [string, string] => ["severity", severity]),
    ...filter.types.map((type): [string, string] => ["type", type]),
    ...(filter.assignee === undefined ? [] : [["assignee", filter.assignee] as [string, string]]),
    ...(filter.originator === undefined ? [] : [["originator", `${filter.originator.entityType}/${filter.originator.id}`] as [string, string]]),
    ...(filter.propagated ? [["propagated", "true"] as [string, string]] : []),
    ...(filter.window === undefined ? [] : [["last", String(filter.window)] as [string, string]]),
    ...(filter.from === undefined ? [] : [["from", filter.from] as [string, string]]),
    ...(filter.to === undefined ? [] : [["to", filter.to] as [string, string]]),
  ];
}
