// The clients that may not connect.

import { Badge, Group } from "@mantine/core";
import type { ReactElement } from "react";
import type { BlockedClientInfo } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { formatTime, t } from "@/i18n";
import type { FormField } from "@/ui/form/values";
import type { GridSort } from "@/ui/grid/sorting";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { FilterForm } from "@/ui/list/FilterForm";
import { useListState } from "@/ui/list/state";
import { BlockButton } from "./Blocking";
import { BLOCK_STATUS, BLOCK_TARGETS, BLOCK_TYPES, blockKey, LIST_EVERY_MS, wordFor } from "./model";
import { AskForMany } from "./parts";

const COLUMNS: Column<BlockedClientInfo>[] = [
  { key: "value", label: "Value", px: 240, least: 130, hideable: false, sortable: true, text: (row) => row.value },
  { key: "type", label: "Blocked by", px: 150, sortable: true, text: (row) => wordFor(BLOCK_TYPES, row.type) },
  { key: "regexMatchTarget", label: "The expression looks at", px: 150, yields: 2, sortable: true, text: (row) => wordFor(BLOCK_TARGETS, row.regexMatchTarget) },
  {
    key: "status", label: "Status", px: 150, sortable: true, text: (row) => wordFor(BLOCK_STATUS, row.status),
    show: (row) => (
      <Badge variant="dot" color={row.status === "ACTIVE" ? "red" : "gray"}>
        {wordFor(BLOCK_STATUS, row.status)}
      </Badge>
    ),
  },
  { key: "expirationTime", label: "Until", px: 184, sortable: true, text: (row) => (row.expirationTime > 0 ? formatTime(row.expirationTime) : t("for ever")), value: (row) => row.expirationTime },
  { key: "description", label: "Description", px: 200, least: 100, yields: 1, sortable: true, text: (row) => row.description ?? "" },
];

const FIELDS: readonly FormField[] = [
  { name: "types", label: "Blocked by", type: "several", options: BLOCK_TYPES },
  { name: "targets", label: "The expression looks at", type: "several", options: BLOCK_TARGETS },
];
const FILTERS = FIELDS.map(({ name }) => name);
const SORT: GridSort = { key: "value", order: "ASC" };

export function Blocked(): ReactElement {
  const control = useListState(SORT, FILTERS, true);
  const { filters } = control.state;
  return (
    <>
      <Group justify="flex-end">
        <BlockButton size="sm" variant="filled" />
      </Group>
      <DataTable<BlockedClientInfo>
        label={t("Blocked clients")}
        name="BROKER_BLOCKED"
        path="/api/blockedClient/v2"
        query={{ typeList: filters["types"], regexMatchTargetList: filters["targets"] }}
        every={LIST_EVERY_MS}
        columns={COLUMNS}
        rowKey={(row) => JSON.stringify(blockKey(row))}
        sort={SORT}
        control={control}
        filterNames={FILTERS}
        whenEmpty={t("Nobody is blocked. “Block clients” keeps clients out by their ID, user name or address, or by a regular expression.")}
        bulk={(rows, done) => (
          <AskForMany
            text={t("Unblock {n}", { n: rows.length })}
            heading={t("Unblock {n}?", { n: rows.length })}
            note={t("These clients may connect again, as far as their credentials permit it.")}
            told={t("{n} unblocked", { n: rows.length })}
            rows={rows}
            nameOf={({ value }) => value}
            act={(row) => ask("DELETE /api/blockedClient", { query: blockKey(row) })}
            done={done}
          />
        )}
        filters={<FilterForm fields={FIELDS} texts={filters} change={(texts) => control.change({ filters: { ...filters, ...texts } })} />}
      />
    </>
  );
}
