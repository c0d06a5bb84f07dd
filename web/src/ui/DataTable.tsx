// A table over pages of the server: searched and sorted there. Only the pages in view are loaded and only the rows in view drawn,
// so that any place of a long list is as near as the first.

import { Checkbox, Group, Loader, Table, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, useState, type KeyboardEvent, type ReactElement, type ReactNode } from "react";
import { api, type Query } from "@/api/client";
import type { PageData } from "@/api/types";
import { t, useLanguage } from "@/i18n";
import { useAppearance } from "./appearance";
import { EmptyState, notify, Problem, Waiting } from "./feedback";
import { csvOf, download } from "./csv";
import { DataRow, type RowEvents } from "./DataRow";
import classes from "./DataTable.module.css";

const PAGE = 100;
const ROW_PX = { comfortable: 42, dense: 32 };
/** Rows of one request, and most rows, of a CSV file. */
const CSV_PAGE = 1_000;
const CSV_MOST = 100_000;
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
  /** Inputs beside the search that narrow the list. */
  filters?: ReactNode;
  /** How often the rows in view are asked for anew, milliseconds. */
  every?: number;
  /** What further keys do on a row. */
  onKey?: (key: string, row: T) => void;
  /** Endpoints that want a POST with this body, instead of a GET. */
  body?: unknown;
}

interface Pages<T> {
  rowAt: (index: number) => T | undefined;
  loaded: T[];
  total: number;
  state: { isPending: boolean; isFetching: boolean; error: unknown };
  all: () => Promise<T[]>;
}

const pageOf = (index: number | undefined): number => Math.floor((index ?? 0) / PAGE);

/** Loads pages from one to another, and the first one, which tells how many rows there are. */
function usePages<T>(props: TableProps<T>, query: Query, { first, last }: { first: number; last: number }): Pages<T> {
  const numbers = new Set([0]);
  for (let page = first; page <= last; page++) {
    numbers.add(page);
  }
  const ask = (pageSize: number, page: number): Promise<PageData<T>> =>
    props.body === undefined
      ? api.get<PageData<T>>(props.path, { ...query, pageSize, page })
      : api.post<PageData<T>>(props.path, props.body, { ...query, pageSize, page });
  const pages = useQueries({
    queries: [...numbers].map((page) => ({
      queryKey: ["list", props.path, query, props.body, page],
      queryFn: () => ask(PAGE, page),
      placeholderData: keepPreviousData,
      ...(props.every === undefined ? {} : { refetchInterval: props.every }),
    })),
  });
  const byNumber = new Map([...numbers].map((page, n) => [page, pages[n]?.isPlaceholderData === true && page > 0 ? undefined : pages[n]?.data]));
  const begin = pages[0];
  const all = async (): Promise<T[]> => {
    const rows: T[] = [];
    for (let page = 0; rows.length < CSV_MOST; page++) {
      const { data, hasNext } = await ask(CSV_PAGE, page);
      rows.push(...data);
      if (!hasNext) {
        break;
      }
    }
    return rows;
  };
  return {
    rowAt: (index) => byNumber.get(Math.floor(index / PAGE))?.data[index % PAGE],
    loaded: [...byNumber.values()].flatMap((page) => page?.data ?? []),
    total: begin?.data?.totalElements ?? 0,
    state: { isPending: begin?.isPending ?? true, isFetching: pages.some((page) => page.isFetching), error: pages.find((page) => page.isError)?.error },
    all,
  };
}

export function DataTable<T>(props: TableProps<T>): ReactElement {
  const { columns, rowKey, onOpen } = props;
  const rowPx = ROW_PX[useAppearance((state) => state.density)];
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const [sort, setSort] = useState(props.sort);
  const [selected, setSelected] = useState<ReadonlyMap<string, T>>(new Map());
  const [range, setRange] = useState({ first: 0, last: 0 });
  const query = { ...props.query, textSearch: wanted, sortProperty: sort.key, sortOrder: sort.order };
  const { rowAt, loaded, total, state, all } = usePages(props, query, range);
  const pane = useRef<HTMLDivElement>(null);
  const language = useLanguage();
  const events = useRef<RowEvents<T>>({ open: undefined, choose: () => undefined, key: () => undefined });
  const drawn = useVirtualizer({
    count: total,
    getScrollElement: () => pane.current,
    estimateSize: () => rowPx,
    overscan: 8,
    useFlushSync: false,
    onChange: ({ range: seen }) => {
      // Only another page is news.
      const next = { first: pageOf(seen?.startIndex), last: pageOf(seen?.endIndex) };
      setRange((known) => (known.first === next.first && known.last === next.last ? known : next));
    },
  });
  const shown = drawn.getVirtualItems();

  const chosen = [...selected.values()];
  const choose = (row: T): void =>
    setSelected((before) => {
      const after = new Map(before);
      return after.delete(rowKey(row)) ? after : after.set(rowKey(row), row);
    });
  const saveCsv = async (): Promise<void> => {
    try {
      download(`${props.label}.csv`, csvOf(columns.map((column) => ({ ...column, label: t(column.label) })), await all()));
    } catch (error) {
      notify.error(error);
    }
  };
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
    } else if (event.target === event.currentTarget && !event.ctrlKey && !event.metaKey) {
      props.onKey?.(event.key, row);
    }
  };
  events.current = { open: onOpen, choose, key: keys };
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
        {props.filters}
        <Text size="sm" role="status">
          {state.isPending ? "" : t("{n} in all", { n: total })}
        </Text>
        {state.isFetching && props.every === undefined && <Loader size="xs" aria-label={t("Loading")} />}
        <Group ml="auto" gap="xs">
          {chosen.length > 0 && props.bulk?.(chosen, () => setSelected(new Map()))}
          <UnstyledButton className={classes["tool"]} onClick={() => void saveCsv()}>
            {t("Save as CSV")}
          </UnstyledButton>
        </Group>
      </Group>
      {state.error !== undefined && state.error !== null && <Problem error={state.error} />}
      {state.isPending && !state.error && <Waiting />}
      {!state.isPending && total === 0 && <EmptyState>{t(wanted === "" ? "Nothing is here yet." : "Nothing matches the search.")}</EmptyState>}
      <div ref={pane} className={classes["pane"]} hidden={total === 0}>
        <Table highlightOnHover stickyHeader aria-label={props.label} aria-rowcount={total}>
          <Table.Thead>
            <Table.Tr>
              {props.bulk !== undefined && (
                <Table.Th w={40}>
                  <Checkbox
                    aria-label={t("Select all that are loaded")}
                    checked={chosen.length > 0 && chosen.length >= loaded.length}
                    indeterminate={chosen.length > 0 && chosen.length < loaded.length}
                    onChange={() => setSelected(new Map(chosen.length >= loaded.length ? [] : loaded.map((row) => [rowKey(row), row])))}
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
              const row = rowAt(index);
              return row === undefined ? (
                <tr key={index} style={{ height: rowPx }} aria-hidden />
              ) : (
                <DataRow
                  key={rowKey(row)}
                  row={row}
                  index={index}
                  height={rowPx}
                  columns={columns}
                  selected={props.bulk === undefined ? undefined : selected.has(rowKey(row))}
                  opens={onOpen !== undefined}
                  language={language}
                  events={events}
                />
              );
            })}
            {after > 0 && <tr style={{ height: after }} aria-hidden />}
          </Table.Tbody>
        </Table>
      </div>
    </div>
  );
}
