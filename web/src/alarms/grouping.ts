// Alarms in groups: by what they are about, or where they come from.

import type { GridItem } from "@/ui/grid/Grid";
import { t } from "@/i18n";
import { originatorName, SEVERITIES, type Alarm } from "./alarm";

export const GROUPINGS = [
  { value: "type", label: "Type" },
  { value: "originator", label: "Originator" },
  { value: "severity", label: "Severity" },
] as const;

export type Grouping = (typeof GROUPINGS)[number]["value"];

function groupOf(alarm: Alarm, by: Grouping): { group: string; label: string } {
  return by === "type"
    ? { group: alarm.type, label: alarm.type }
    : by === "severity"
      ? { group: alarm.severity, label: t(alarm.severity) }
      : { group: `${alarm.originator.entityType}/${alarm.originator.id}`, label: originatorName(alarm) };
}

/** Puts alarms into groups, which keep the order of their first ones; severities have their own order. Closed groups show their head alone. */
export function grouped(alarms: readonly Alarm[], by: Grouping | undefined, closed: ReadonlySet<string>): GridItem<Alarm>[] {
  if (by === undefined) {
    return alarms.map((row) => ({ row }));
  }
  const groups = new Map<string, { label: string; alarms: Alarm[] }>();
  for (const alarm of alarms) {
    const { group, label } = groupOf(alarm, by);
    const known = groups.get(group) ?? { label, alarms: [] };
    known.alarms.push(alarm);
    groups.set(group, known);
  }
  const order = [...groups];
  if (by === "severity") {
    order.sort(([a], [b]) => SEVERITIES.indexOf(a as (typeof SEVERITIES)[number]) - SEVERITIES.indexOf(b as (typeof SEVERITIES)[number]));
  }
  return order.flatMap(([group, { label, alarms: own }]) => {
    const open = !closed.has(group);
    return [{ group, label, count: own.length, open }, ...(open ? own.map((row) => ({ row })) : [])];
  });
}
