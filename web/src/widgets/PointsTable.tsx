// Points by their time, the newest first.

import { Table } from "@mantine/core";
import type { ReactElement } from "react";
import { formatTime, t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import type { WidgetProps } from "./registry";
import { shownValue } from "./text";
import classes from "./widgets.module.css";

/** The most rows that are drawn; what is older can be asked for with another window. */
const MOST = 500;

export default function PointsTable({ widget, entities }: WidgetProps): ReactElement {
  const keys = widget.datasources[0]?.dataKeys ?? [];
  const rows = entities.flatMap((entity) => {
    const byTime = new Map<number, Map<string, string>>();
    for (const [name, points] of entity.points) {
      points.forEach(({ ts, value }) => byTime.set(ts, (byTime.get(ts) ?? new Map()).set(name, value)));
    }
    return [...byTime].map(([ts, values]) => ({ entity, ts, values }));
  });
  rows.sort((a, b) => b.ts - a.ts);
  if (rows.length === 0) {
    return <EmptyState>{t("No values in this time.")}</EmptyState>;
  }
  return (
    <div className={classes["scroll"]}>
      <Table stickyHeader aria-label={widget.title || t("Values")}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t("Time")}</Table.Th>
            {entities.length > 1 && <Table.Th>{t("Entity")}</Table.Th>}
            {keys.map((key) => (
              <Table.Th key={key.name}>{key.label}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.slice(0, MOST).map(({ entity, ts, values }) => (
            <Table.Tr key={`${entity.id.id} ${ts}`}>
              <Table.Td>{formatTime(ts)}</Table.Td>
              {entities.length > 1 && <Table.Td>{entity.name}</Table.Td>}
              {keys.map((key) => (
                <Table.Td key={key.name}>{shownValue(values.get(key.name) ?? "", key)}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
