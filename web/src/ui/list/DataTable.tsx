// A table over pages of the server: searched and sorted there. People arrange its columns and name what they see as views.

import { Group, Loader, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useCallback, useEffect, useMemo, useRef, useState, type ReactElement, type ReactNode } from "react";
import type { Query } from "@/api/client";
import { t, useLanguage } from "@/i18n";
import { useAppearance } from "../appearance";
import { saveRows } from "../rowsFile";
import { Problem, Waiting } from "../feedback";
import { shownColumns, useArrangement, type GridColumn } from "../grid/columns";
import { Grid } from "../grid/Grid";
import { comparing, type GridSort } from "../grid/sorting";
import { TableMenu } from "../grid/TableMenu";
import classes from "./list.module.css";
import { SelectMatching } from "./SelectMatching";
import { useListState, writeList, type ListControl } from "./state";
import { PAGE, pageOf, usePages, type PagesSource } from "./usePages";
import { ViewMenu } from "./ViewMenu";
import { useViews, type ListView } from "./views";

const ROW_PX = { comfortable: 42, dense: 32 };
const SEARCH_AFTER_MS = 200;
/** The server sorts by one column. Lists up to this length are loaded whole where somebody wants more. */
const MOST_SORTED = 1_000;

export type Column<T> = GridColumn<T>;

export interface TableProps<T> extends PagesSource {
  label: string;
  query?: Query;
  columns: readonly Column<T>[];
  rowKey: (row: T) => string;
  sort: GridSort;
  onOpen?: (row: T) => void;
  /** Buttons for the selected rows; without them rows can't be selected. */
  bulk?: (rows: T[], done: () => void) => ReactNode;
  searchable?: boolean;
  /** Inputs beside the search that narrow the list. */
  filters?: ReactNode;
  /** What further keys do on a row; true if it did something. */
  onKey?: (key: string, row: T) => boolean;
  /** Names the list: by it the arrangement and the named views are kept. */
  name?: string;
  /** The state, where its owner has parts of it. One that is in the address has views, which can be named and linked to. */
  control?: ListControl;
  /** What stands where there is nothing yet. */
  whenEmpty?: ReactNode;
  /** What the address calls the filters. */
  filterNames?: readonly string[];
}

const NO_NAMES: readonly string[] = [];

export function DataTable<T>(props: TableProps<T>): ReactElement {
  const { rowKey, onOpen, name, filterNames = NO_NAMES } = props;
  const rowPx = ROW_PX[useAppearance((state) => state.density)];
  const language = useLanguage();
  const own = useListState(props.sort, NO_NAMES, false);
  const { state: seen, change } = props.control ?? own;
  const [typed, setTyped] = useState(seen.search);
  const search = useDebouncedCallback((text: string) => change({ search: text }), SEARCH_AFTER_MS);
  const [selected, setSelected] = useState<ReadonlyMap<string, T>>(new Map());
  const [range, setRange] = useState({ first: 0, last: 0 });
  const columns = useMemo(() => props.columns.map((column) => ({ ...column, label: t(column.label) })), [props.columns, language]);
  const linked = seen.columns;
  const arrangement = useArrangement(name, columns, linked && { order: [...linked], hidden: columns.map((column) => column.key).filter((key) => !linked.includes(key)) });
  const sort = seen.sorts[0] ?? props.sort;
  const query = { ...props.query, textSearch: seen.search, sortProperty: sort.key, sortOrder: sort.order };
  const pages = usePages<T>(props, query, range);
  // What is selected belongs to what is searched: rows that another search doesn't show must not stay chosen.
  const place = JSON.stringify([props.path, props.body, props.query, seen.search, seen.filters]);
  const [selectedIn, setSelectedIn] = useState(place);
  if (selectedIn !== place) {
    setSelectedIn(place);
    setSelected(new Map());
  }
  const { total, state, loaded } = pages;

  // Rows by several columns are put in order here, once all of them are there.
  const wantsMany = seen.sorts.length > 1;
  const isWhole = wantsMany && total <= MOST_SORTED;
  const lastPage = pageOf(Math.max(0, total - 1));
  const inOrder = useMemo(() => (isWhole ? [...loaded].sort(comparing(columns, seen.sorts)) : undefined), [isWhole, columns, JSON.stringify(seen.sorts), pages.version]);
  const rowAt = (index: number): T | undefined => (inOrder?.length === total ? inOrder[index] : pages.rowAt(index));
  useEffect(() => {
    if (isWhole) {
      setRange({ first: 0, last: lastPage });
    }
  }, [isWhole, lastPage]);
  const onRange = useCallback(
    (from: number, to: number) => {
      // Only another page is news.
      const next = { first: pageOf(from), last: pageOf(to) };
      if (!isWhole) {
        setRange((known) => (known.first === next.first && known.last === next.last ? known : next));
      }
    },
    [isWhole],
  );

  const hasViews = props.control?.inAddress === true && name !== undefined;
  const views = useViews(hasViews ? name : undefined);
  const choose = ({ state: next, layout }: ListView): void => {
    setTyped(next.search);
    change({ ...next, columns: undefined });
    arrangement.adopt(layout);
  };
  // The view that the list begins with counts where the address says nothing.
  const begun = useRef(location.search !== "");
  useEffect(() => {
    if (views.isLoaded && !begun.current) {
      begun.current = true;
      const first = views.views.find((view) => view.isFirst === true);
      if (first !== undefined) {
        choose(first);
      }
    }
  });
  const link = (): string => {
    const shown = shownColumns(columns, arrangement).map((column) => column.key);
    const initial = { search: "", sorts: [props.sort], filters: {} };
    return `${location.origin}${location.pathname}?${writeList(new URLSearchParams(), filterNames, initial, { ...seen, columns: shown }).toString()}`;
  };

  const chosen = [...selected.values()];
  const toggle = (row: T): void =>
    setSelected((before) => {
      const after = new Map(before);
      return after.delete(rowKey(row)) ? after : after.set(rowKey(row), row);
    });
  const selection = {
    keys: new Set(selected.keys()),
    toggle,
    state: chosen.length === 0 ? ("none" as const) : chosen.length >= loaded.length ? ("all" as const) : ("some" as const),
    toggleAll: () => setSelected(new Map(chosen.length >= loaded.length ? [] : loaded.map((row) => [rowKey(row), row]))),
  };
  return (
    <div className={classes["frame"]}>
      <Group p="xs" gap="sm" className={classes["tools"] ?? ""}>
        {props.searchable !== false && (
          <TextInput
            aria-label={t("Search")}
            placeholder={t("Search")}
            value={typed}
            onChange={(event) => {
              setTyped(event.currentTarget.value);
              search(event.currentTarget.value);
            }}
          />
        )}
        {props.filters}
        <Text size="sm" role="status">
          {state.isPending ? "" : t("{n} in all", { n: total })}
        </Text>
        {state.isFetching && props.every === undefined && <Loader size="xs" aria-label={t("Loading")} />}
        <Group ms="auto" gap="xs">
          {chosen.length > 0 && props.bulk?.(chosen, () => setSelected(new Map()))}
          {hasViews && <ViewMenu views={views} seen={{ state: seen, layout: arrangement.layout }} choose={choose} link={link} />}
          <TableMenu columns={columns} arrangement={arrangement} save={(saving) => saveRows(props.label, shownColumns(columns, arrangement), [pages.filePage], saving)} />
        </Group>
      </Group>
      {props.bulk !== undefined && (selection.state === "all" || chosen.length >= PAGE) && total > PAGE && (
        <SelectMatching<T>
          key={`${place} ${JSON.stringify(query)}`}
          selected={chosen.length}
          total={total}
          page={pages.filePage}
          select={(rows) => setSelected(new Map(rows.map((row) => [rowKey(row), row])))}
        />
      )}
      {wantsMany && !isWhole && !state.isPending && (
        <Text size="xs" px="xs" role="status">
          {t("More than {n} rows are sorted by the first column alone.", { n: MOST_SORTED })}
        </Text>
      )}
      {state.error !== undefined && state.error !== null && <Problem error={state.error} />}
      {state.isPending && !state.error && <Waiting />}
      {!state.isPending && (
        <Grid
          label={props.label}
          columns={columns}
          arrangement={arrangement}
          count={total}
          at={(index) => {
            const row = rowAt(index);
            return row === undefined ? undefined : { row };
          }}
          rowKey={rowKey}
          rowPx={rowPx}
          version={language}
          sorts={seen.sorts}
          onSort={(sorts) => change({ sorts })}
          manySorts
          onRange={onRange}
          selected={props.bulk === undefined ? undefined : selection}
          onOpen={onOpen}
          {...(props.onKey === undefined ? {} : { onKey: props.onKey })}
          empty={seen.search !== "" || Object.values(seen.filters).some((value) => value !== "") ? t("Nothing matches the search.") : (props.whenEmpty ?? t("Nothing is here yet."))}
        />
      )}
    </div>
  );
}
