// A table over pages of the server: searched and sorted there, loaded while it is scrolled, and only the rows in view drawn.

import { Checkbox, Group, Loader, Table, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactElement, type ReactNode } from "react";
import { api, type Query } from "@/api/client";
import type { PageData } from "@/api/types";
import { t } from "@/i18n";
import { EmptyState, Problem, Waiting } from "./feedback";
import { csvOf, download } from "./csv";
import classes from "./DataTable.module.css";

const PAGE = 100;
const ROW_PX = 42;
const MARKS = { ascending: "▲", descending: "▼", none: "" };

export interface Column<T> {
  /** Names the column; the property to sort by if `sortable`. */
  key: string;
  label: string;
  sortable?: boolean;
  /** Text of the cell, for the screen and for CSV. */
  text: (row: T) => string;
  /** What the cell shows instead of its text. */
  show?: (row: T) => ReactNode;
}

export interface TableProps<T> {
  label: string;
  path: string;
  query?: Query;
  columns: Column<T>[];
  rowKey: (row: T) => string;
  sort: { key: string; order: "ASC" | "DESC" };
  onOpen?: (row: T) => void;
  /** Buttons for the selected rows; without them rows can't be selected. */
  bulk?: (rows: T[], done: () => void) => ReactNode;
  searchable?: boolean;
}

export function DataTable<T>(props: TableProps<T>): ReactElement {
  const { columns, rowKey, onOpen } = props;
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const [sort, setSort] = useState(props.sort);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const query = { ...props.query, textSearch: wanted, sortProperty: sort.key, sortOrder: sort.order };
  const list = useInfiniteQuery({
    queryKey: ["list", props.path, query],
    initialPageParam: 0,
    queryFn: ({ pageParam }) => api.get<PageData<T>>(props.path, { ...query, pageSize: PAGE, page: pageParam }),
    getNextPageParam: (last, pages) => (last.hasNext ? pages.length : undefined),
  });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.data) ?? [], [list.data]);
  const total = list.data?.pages[0]?.totalElements ?? 0;
  const pane = useRef<HTMLDivElement>(null);
  const drawn = useVirtualizer({ count: rows.length, getScrollElement: () => pane.current, estimateSize: () => ROW_PX, overscan: 8 });
  const shown = drawn.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= rows.length - PAGE / 2) {
      void fetchNextPage();
    }
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);

  const chosen = rows.filter((row) => selected.has(rowKey(row)));
  const choose = (row: T): void =>
    setSelected((before) => {
      const after = new Set(before);
      return after.delete(rowKey(row)) ? after : after.add(rowKey(row));
    });
  const keys = (event: KeyboardEvent, row: T): void => {
    const move = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" } as const;
    if (event.key === "Enter") {
      onOpen?.(row);
    } else if (event.key === " " && props.bulk !== undefined && event.target === event.currentTarget) {
      event.preventDefault();
      choose(row);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const next = event.currentTarget[move[event.key]];
      if (next instanceof HTMLElement) {
        next.focus();
      }
    }
  };
  const order = (column: Column<T>): "ascending" | "descending" | undefined =>
    sort.key !== column.key ? undefined : sort.order === "ASC" ? "ascending" : "descending";
  const before = shown[0]?.start ?? 0;
  const after = drawn.getTotalSize() - (shown.at(-1)?.end ?? 0);

  return (
    <div className={classes["frame"]}>
      <Group p="xs" gap="sm">
        {props.searchable !== false && (
          <TextInput
            aria-label={t("Search")}
            placeholder={t("Search")}
            value={search}
            onChange={(event) => setSearch(event.currentTarget.value)}
          />
        )}
        <Text size="sm" role="status">
          {list.isSuccess ? t("{n} in all", { n: total }) : ""}
        </Text>
        {list.isFetching && <Loader size="xs" aria-label={t("Loading")} />}
        <Group ml="auto" gap="xs">
          {chosen.length > 0 && props.bulk?.(chosen, () => setSelected(new Set()))}
          <UnstyledButton className={classes["tool"]} onClick={() => download(`${props.label}.csv`, csvOf(columns, rows))}>
            {t("Save as CSV")}
          </UnstyledButton>
        </Group>
      </Group>
      {list.isError && <Problem error={list.error} />}
      {list.isPending && <Waiting />}
      {list.isSuccess && rows.length === 0 && <EmptyState>{t(wanted === "" ? "Nothing is here yet." : "Nothing matches the search.")}</EmptyState>}
      <div ref={pane} className={classes["pane"]} hidden={rows.length === 0}>
        <Table highlightOnHover stickyHeader aria-label={props.label} aria-rowcount={total}>
          <Table.Thead>
            <Table.Tr>
              {props.bulk !== undefined && (
                <Table.Th w={40}>
                  <Checkbox
                    aria-label={t("Select all that are loaded")}
                    checked={chosen.length > 0 && chosen.length === rows.length}
                    indeterminate={chosen.length > 0 && chosen.length < rows.length}
                    onChange={() => setSelected(new Set(chosen.length === rows.length ? [] : rows.map(rowKey)))}
                  />
                </Table.Th>
              )}
              {columns.map((column) => (
                <Table.Th key={column.key} aria-sort={order(column)}>
                  {column.sortable === true ? (
                    <UnstyledButton
                      fw={600}
                      fz="sm"
                      onClick={() => setSort({ key: column.key, order: order(column) === "ascending" ? "DESC" : "ASC" })}
                    >
                      {t(column.label)} {MARKS[order(column) ?? "none"]}
                    </UnstyledButton>
                  ) : (
                    t(column.label)
                  )}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {before > 0 && <tr style={{ height: before }} aria-hidden />}
            {shown.map(({ index }) => {
              const row = rows[index];
              return row === undefined ? null : (
                <Table.Tr
                  key={rowKey(row)}
                  tabIndex={0}
                  h={ROW_PX}
                  aria-rowindex={index + 2}
                  aria-selected={props.bulk === undefined ? undefined : selected.has(rowKey(row))}
                  onKeyDown={(event) => keys(event, row)}
                  onClick={() => onOpen?.(row)}
                  className={onOpen === undefined ? "" : classes["open"]}
                >
                  {props.bulk !== undefined && (
                    <Table.Td onClick={(event) => event.stopPropagation()}>
                      <Checkbox tabIndex={-1} aria-label={t("Select")} checked={selected.has(rowKey(row))} onChange={() => choose(row)} />
                    </Table.Td>
                  )}
                  {columns.map((column) => (
                    <Table.Td key={column.key} className={classes["cell"]}>
                      {column.show?.(row) ?? column.text(row)}
                    </Table.Td>
                  ))}
                </Table.Tr>
              );
            })}
            {after > 0 && <tr style={{ height: after }} aria-hidden />}
          </Table.Tbody>
        </Table>
      </div>
    </div>
  );
}
