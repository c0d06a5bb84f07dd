// Columns of tables of alarms.

import { Text } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { pathOf } from "@/entities/kinds";
import { t } from "@/i18n";
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

/** Returns the column of a field of alarms. `leads` tells whether names lead to the pages of entities. */
export function fieldColumn(name: string, label: string | undefined, leads: boolean): AlarmColumn | undefined {
  const field = fieldOf(name);
  if (field === undefined) {
    return undefined;
  }
  const show = SHOWN[name];
  return {
    key: name,
    label: label ?? t(field.label),
    sortable: field.sort !== undefined,
    sort: field.sort === undefined ? undefined : { property: field.sort },
    names: [name, field.sort ?? name],
    text: field.text,
    show: show === undefined ? undefined : (alarm) => show(alarm, leads),
  };
}

const USUAL = ["createdTime", "originator", "type", "severity", "status", "assignee"];
const HIDDEN = ["originatorLabel", "originatorType", "startTime", "endTime", "ackTime", "clearTime", "assignTime"];
const WIDTHS: Record<string, string> = { createdTime: "12rem", severity: "8.25rem", status: "12rem" };

/** Returns the columns of the screens of alarms. */
export function usualColumns(): AlarmColumn[] {
  return [...USUAL, ...HIDDEN].flatMap((name) => {
    const column = fieldColumn(name, undefined, true);
    return column === undefined ? [] : [{ ...column, width: WIDTHS[name], hidden: HIDDEN.includes(name) }];
  });
}
