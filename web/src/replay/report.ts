// What a replay answers, put in order for people: alarms next to what really was, and points by key.

import type { EntityId } from "@/api/types";
import type { AlarmSeverity, KeyDifference, ReplayAlarm, ReplayReport } from "@/api/schema.gen";

/** How something of the replay compares with what is stored. */
export type Verdict = "same" | "different" | "onlyReplayed" | "onlyStored";
/** Those first that need a look. */
export const VERDICTS: readonly { value: Verdict; label: string }[] = [
  { value: "onlyReplayed", label: "only replayed" },
  { value: "onlyStored", label: "only stored" },
  { value: "different", label: "different" },
  { value: "same", label: "the same" },
];

export interface AlarmRow {
  key: string;
  verdict: Verdict;
  originator: EntityId;
  originatorName: string;
  type: string;
  /** As it really was; of one that is the same, as it was replayed. */
  stored: ReplayAlarm | undefined;
  replayed: ReplayAlarm | undefined;
}

function row(verdict: Verdict, stored: ReplayAlarm | undefined, replayed: ReplayAlarm | undefined): AlarmRow[] {
  const known = replayed ?? stored;
  return known === undefined
    ? []
    : [{ key: `${verdict} ${known.id.id}`, verdict, originator: known.originator, originatorName: known.originatorName ?? known.originator.id, type: known.type, stored, replayed }];
}

const startOf = ({ stored, replayed }: AlarmRow): number => Math.min(stored?.startTs ?? Infinity, replayed?.startTs ?? Infinity);

/** Returns all alarms that the answer lists, by when they began. What differs in nothing is told by what is left of the replayed ones. */
export function alarmRows({ alarms, difference: { alarms: found } }: ReplayReport): AlarmRow[] {
  const told = new Set([...found.replayed, ...found.changed.map(({ replayed }) => replayed)].map(({ id }) => id.id));
  return [
    ...alarms.alarms.filter(({ id }) => !told.has(id.id)).flatMap((one) => row("same", one, one)),
    ...found.changed.flatMap(({ stored, replayed }) => row("different", stored, replayed)),
    ...found.replayed.flatMap((one) => row("onlyReplayed", undefined, one)),
    ...found.stored.flatMap((one) => row("onlyStored", one, undefined)),
  ].sort((a, b) => startOf(a) - startOf(b) || a.key.localeCompare(b.key));
}

/** Whether there are more alarms than the answer lists. */
export function isCut({ alarms, difference: { alarms: found } }: ReplayReport): boolean {
  return found.incomplete || found.stored.length < found.onlyStored || found.replayed.length < found.onlyReplayed || found.changed.length < found.different || alarms.alarms.length < alarms.raised;
}

export function countsOf(rows: readonly AlarmRow[]): Record<Verdict, number> {
  const counts: Record<Verdict, number> = { same: 0, different: 0, onlyReplayed: 0, onlyStored: 0 };
  rows.forEach(({ verdict }) => counts[verdict]++);
  return counts;
}

/** A stretch of time with one severity, in parts of the replayed time from 0 to 1. */
export interface Bar {
  from: number;
  to: number;
  severity: AlarmSeverity | undefined;
  verdict: Verdict;
  alarm: ReplayAlarm;
}

/** The alarms of one type and originator: as they were, above as they would have been. */
export interface Lane {
  key: string;
  name: string;
  type: string;
  stored: Bar[];
  replayed: Bar[];
  differs: boolean;
}

function bars(alarm: ReplayAlarm | undefined, verdict: Verdict, start: number, end: number): Bar[] {
  if (alarm === undefined || end <= start) {
    return [];
  }
  const part = (ts: number): number => Math.min(1, Math.max(0, (ts - start) / (end - start)));
  const until = alarm.clearedTs ?? end;
  const changes = alarm.severities.filter(([ts]) => ts < until);
  const steps: readonly (readonly [number, AlarmSeverity | undefined])[] = changes.length === 0 ? [[alarm.startTs, alarm.severity ?? undefined]] : changes.map(([ts, severity], n) => [n === 0 ? Math.min(ts, alarm.startTs) : ts, severity]);
  return steps.map(([ts, severity], n) => ({ from: part(ts), to: part(steps[n + 1]?.[0] ?? until), severity, verdict, alarm }));
}

/** Returns the lanes of alarms, those first in which something differs. */
export function lanesOf(rows: readonly AlarmRow[], start: number, end: number): Lane[] {
  const lanes = new Map<string, Lane>();
  for (const { originator, originatorName, type, verdict, stored, replayed } of rows) {
    const key = `${originator.id} ${type}`;
    const lane = lanes.get(key) ?? { key, name: originatorName, type, stored: [], replayed: [], differs: false };
    lanes.set(key, lane);
    lane.differs ||= verdict !== "same";
    lane.stored.push(...bars(stored, verdict, start, end));
    lane.replayed.push(...bars(replayed, verdict, start, end));
  }
  return [...lanes.values()].sort((a, b) => Number(b.differs) - Number(a.differs) || a.name.localeCompare(b.name) || a.type.localeCompare(b.type));
}

/** The part of a time that alarms lie in, with a little before and after, so that short ones are seen. */
export function spanOf(rows: readonly AlarmRow[], start: number, end: number): readonly [number, number] {
  const all = rows.flatMap(({ stored, replayed }) => [stored, replayed]).filter((one) => one !== undefined);
  if (all.length === 0) {
    return [start, end];
  }
  const first = Math.min(...all.map(({ startTs }) => startTs));
  const last = Math.max(...all.map(({ startTs, clearedTs }) => clearedTs ?? Math.max(end, startTs)));
  const around = (last - first) / 20;
  const [from, to] = [Math.max(start, first - around), Math.min(end, last + around)];
  return from < to ? [from, to] : [start, end];
}

export interface PointRow extends KeyDifference {
  key: string;
  /** Points that the replay stores, those outside of the compared time among them. */
  points: number;
}

/** Returns the points by key, keys that differ first. */
export function pointRows({ stored, difference }: ReplayReport): PointRow[] {
  const none: KeyDifference = { same: 0, different: 0, onlyReplayed: 0, onlyStored: 0 };
  const names = new Set([...Object.keys(stored.keys), ...Object.keys(difference.points.keys)]);
  const differs = (one: PointRow): boolean => one.different + one.onlyReplayed + one.onlyStored > 0;
  return [...names]
    .map((key) => ({ ...none, ...difference.points.keys[key], key, points: stored.keys[key] ?? 0 }))
    .sort((a, b) => Number(differs(b)) - Number(differs(a)) || a.key.localeCompare(b.key));
}

/** Returns moments for the axis below a time. */
export function ticks(start: number, end: number, count: number): { ts: number }[] {
  return end <= start ? [] : Array.from({ length: count }, (_, n) => ({ ts: Math.round(start + ((end - start) * n) / (count - 1)) }));
}
