// The values of entities as lists of two columns.

import { Table } from "@mantine/core";
import type { ReactElement } from "react";
import { latestOf } from "@/dashboard/source";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import type { WidgetProps } from "./registry";
import { shownValue } from "./text";
import classes from "./widgets.module.css";

/** The most entities that are listed. */
const MOST = 200;

export default function AttributesCard({ widget, sources }: WidgetProps): ReactElement {
  const all = sources.flatMap(({ source, entities }) => entities.map((entity) => ({ entity, keys: source.dataKeys.filter((key) => !key.hidden) })));
  if (all.length === 0) {
    return <EmptyState>{t("No entities.")}</EmptyState>;
  }
  return (
    <div className={classes["scroll"]} tabIndex={0}>
      {all.slice(0, MOST).map(({ entity, keys }) => (
        <Table key={entity.id.id} mb="sm" aria-label={`${widget.title} ${entity.name}`.trim()} layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th colSpan={2}>{entity.name}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {keys.map((key) => {
              const value = latestOf(entity, key)?.value;
              return (
                <Table.Tr key={`${key.type} ${key.name} ${key.label}`}>
                  <Table.Td>{key.label}</Table.Td>
                  <Table.Td style={{ overflowWrap: "anywhere" }}>{value === undefined ? "–" : shownValue(value, key)}</Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      ))}
      {all.length > MOST && <EmptyState>{t("{n} more are not shown.", { n: all.length - MOST })}</EmptyState>}
    </div>
  );
}
