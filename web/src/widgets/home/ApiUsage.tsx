// Use of the API by kind, from the values of the entity that counts it.

import { Progress, Table } from "@mantine/core";
import { useContext, type ReactElement } from "react";
import { BoardContext } from "@/dashboard/board";
import { readKey, text } from "@/dashboard/model";
import { latestOf } from "@/dashboard/source";
import { plainWords } from "@/dashboard/words";
import { formatNumber, t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import type { WidgetProps } from "../registry";
import { usageRows } from "./usage";
import classes from "../widgets.module.css";

export default function ApiUsage({ widget, entities }: WidgetProps): ReactElement {
  const rows = usageRows(widget.settings);
  const board = useContext(BoardContext);
  const [entity] = entities;
  const valueOf = (stored: unknown): string | undefined => (entity === undefined ? undefined : latestOf(entity, readKey(stored))?.value);
  if (entity === undefined && text(widget.settings["dsEntityAliasId"]) === undefined) {
    return <EmptyState>{t("No entity is chosen for this.")}</EmptyState>;
  }
  return (
    <div className={classes["scroll"]}>
      <Table aria-label={t("API usage")}>
        <Table.Tbody>
          {rows.map((row, n) => {
            const [current, limit, status] = [Number(valueOf(row["current"]) || 0), Number(valueOf(row["maxLimit"]) || 0), valueOf(row["status"])];
            const label = plainWords(text(row["label"]) ?? String(n + 1));
            const part = limit === 0 ? 0 : Math.min(100, (100 * current) / limit);
            return (
              <Table.Tr key={label}>
                <Table.Td>
                  {text(row["state"]) === undefined ? label : (
                    <button type="button" className={classes["link"]} onClick={() => board?.go([...board.path(), { id: text(row["state"]) ?? "", params: {} }])}>
                      {label}
                    </button>
                  )}
                </Table.Td>
                <Table.Td ta="end">{limit === 0 ? formatNumber(current) : `${formatNumber(current)} / ${formatNumber(limit)}`}</Table.Td>
                <Table.Td w={120}>{limit > 0 && <Progress value={part} color={part >= 100 ? "red" : part >= 80 ? "yellow" : "teal"} aria-label={t("{label}: {part} % of the limit", { label, part: Math.round(part) })} />}</Table.Td>
                <Table.Td>{status === undefined || status === "" ? "" : t(status.toLowerCase())}</Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </div>
  );
}
