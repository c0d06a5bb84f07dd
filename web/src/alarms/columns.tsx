// Columns of tables of alarms.

import { Text } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { pathOf } from "@/entities/kinds";
import { formatShortTime, t } from "@/i18n";
import { TextLink } from "@/ui/feedback";
import type { GridColumn } from "@/ui/grid/columns";
import { assigneeName, fieldOf, originatorName, statusText, type Alarm } from "./alarm";
import { SeverityChip } from "./SeverityChip";

export interface AlarmColumn extends GridColumn<Alarm> {
  /** What the server sorts by; a property of alarms if it has no type. */
  sort?: { property: string; type?: string } | undefined;
  /** Names by which a stored order means the column. */
  names: readonly string[];
}

export function Originator({ alarm, leads = true }: { alarm: Alarm; leads?: boolean }): ReactElement {
  const path = leads ? pathOf(alarm.originator) : undefined;
  const name = originatorName(alarm);
  return path === undefined ? <>{name}</> : <TextLink to={path}>{name}</TextLink>;
}

function Status({ alarm }: { alarm: Alarm }): ReactElement {
  return (
    <Text span inherit fw={alarm.cleared ? 400 : 600} c={alarm.cleared ? "var(--soft-text)" : "inherit"}>
      {statusText(alarm.status)}
    </Text>
  );
}

const SHOWN: Record<string, (alarm: Alarm, leads: boolean) => ReactNode> = {
  originator: (alarm, leads) => <Originator alarm={alarm} leads={leads} />,
  severity: (alarm) => <SeverityChip severity={alarm.severity} />,
  status: (alarm) => <Status alarm={alarm} />,
  assignee: (alarm) => assigneeName(alarm) || "–",
};

/** Moments and severities are what an alarm is read by, so that other columns give way before they are cut. */
const MOMENT = { px: 166, least: 158, whole: true };
const TEXT = { px: 180, least: 72 };
/** How much room columns take, and which are left out where there is none: who is at it, and then what `✓` tells, too. */
const ROOM: Record<string, Pick<AlarmColumn, "px" | "least" | "whole" | "yields">> = {
  ...Object.fromEntries(["createdTime", "startTime", "endTime", "ackTime", "clearTime", "assignTime"].map((name) => [name, MOMENT])),
  severity: { px: 112, least: 98, whole: true },
  originator: TEXT,
  type: TEXT,
  status: { px: 190, least: 120, yields: 1 },
  assignee: { px: 130, least: 90, yields: 2 },
};

/** Field of the moment that a column shows. */
const MOMENTS: Record<string, string> = { createdTime: "createdTime", startTime: "startTs", endTime: "endTs", ackTime: "ackTs", clearTime: "clearTs", assignTime: "assignTs" };

function Moment({ ts, whole }: { ts: unknown; whole: string }): ReactElement {
  return <span title={whole}>{typeof ts === "number" && ts > 0 ? formatShortTime(ts) : ""}</span>;
}

/** Returns the column of a field of alarms. `leads` tells whether names lead to the pages of entities. */
export function fieldColumn(name: string, label: string | undefined, leads: boolean): AlarmColumn | undefined {
  const field = fieldOf(name);
  if (field === undefined) {
    return undefined;
  }
  const at = MOMENTS[name];
  const show = at === undefined ? SHOWN[name] : (alarm: Alarm) => <Moment ts={alarm[at]} whole={field.text(alarm)} />;
  return {
    key: name,
    label: label ?? t(field.label),
    ...ROOM[name],
    sortable: field.sort !== undefined,
    sort: field.sort === undefined ? undefined : { property: field.sort },
    names: [name, field.sort ?? name],
    text: field.text,
    show: show === undefined ? undefined : (alarm) => show(alarm, leads),
  };
}

/** In a narrow place the first of them are in view without scrolling: since when, and how bad it is. */
const USUAL = ["createdTime", "severity", "originator", "type", "status", "assignee"];
const HIDDEN = ["originatorLabel", "originatorType", "startTime", "endTime", "ackTime", "clearTime", "assignTime"];

/** Returns the columns of the screens of alarms. */
export function usualColumns(): AlarmColumn[] {
  return [...USUAL, ...HIDDEN].flatMap((name) => {
    const column = fieldColumn(name, undefined, true);
    return column === undefined ? [] : [{ ...column, hidden: HIDDEN.includes(name) }];
  });
}
