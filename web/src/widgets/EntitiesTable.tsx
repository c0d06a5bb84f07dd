// Entities with their latest values, page by page as they come into view.

import { useDebouncedValue } from "@mantine/hooks";
import { useCallback, useContext, useEffect, useMemo, useRef, useState, type ReactElement, type ReactNode } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { PageData } from "@/api/types";
import { actionsOf } from "@/dashboard/actions";
import { BoardContext } from "@/dashboard/board";
import { object, type Json } from "@/dashboard/model";
import { commandOf, type EntityValues } from "@/dashboard/source";
import { SourceData } from "@/dashboard/sourceData";
import { t } from "@/i18n";
import { useConnection } from "@/live/socket";
import { useFunctions } from "@/sandbox/functions";
import { FILE_PAGE, saveRows, type Saving } from "@/ui/rowsFile";
import { EmptyState, Waiting } from "@/ui/feedback";
import { keyFilterOf, readColumnFilter } from "@/ui/grid/columnFilter";
import { shownColumns, useArrangement } from "@/ui/grid/columns";
import { Grid } from "@/ui/grid/Grid";
import gridClasses from "@/ui/grid/grid.module.css";
import type { GridSort } from "@/ui/grid/sorting";
import type { WidgetProps } from "./registry";
import { functionContext, madeStyle } from "./table/cells";
import { ageColumn, entityColumns, entityRow, pageOrder } from "./table/entityColumns";
import { RowActions, useActionsWidth } from "./table/RowActions";
import { readOrder, readTable } from "./table/settings";
import { Pager, TableTools } from "./table/TableTools";
import { useEntityPages } from "./table/useEntityPages";

/** Rows of one subscription where there are no pages to turn. */
const PAGE = 64;
/** Below this width of the screen the actions of a row are in a menu, pixels. */
const NARROW = 600;

export interface EntitiesTableProps extends WidgetProps {
  /** Further buttons above the table. */
  tools?: ReactNode;
  /** Further buttons in each row. */
  rowTools?: (entity: EntityValues) => ReactNode;
}

export default function EntitiesTable({ widget, requests, act, tools, rowTools }: EntitiesTableProps): ReactElement {
  const { settings, config } = widget;
  const table = useMemo(() => readTable(settings, "entityName"), [settings]);
  const board = useContext(BoardContext);
  const [location] = useLocation();
  const { ask, version } = useFunctions(useMemo(() => functionContext(widget), [widget]));
  const first = requests.find((request) => request !== undefined);
  const keys = useMemo(() => widget.datasources[0]?.dataKeys ?? [], [widget]);
  const on = (source: string): boolean => actionsOf(config, source).length > 0;
  const opens = on("rowClick");
  const newestAct = useRef(act);
  newestAct.current = act;
  const leads = !location.startsWith("/dashboard/");
  const columns = useMemo(
    () => entityColumns(settings, keys, ask, opens ? (entity) => newestAct.current("rowClick", entity, undefined, entityRow(entity, keys)) : undefined, leads),
    [settings, keys, ask, opens, leads],
  );
  const isStale = useConnection() === "reconnecting";
  const shown = useMemo(() => (isStale ? [...columns, ageColumn()] : columns), [columns, isStale]);
  const arrangement = useArrangement(board === undefined ? undefined : `${board.id}/${widget.id}`, shown);
  const stored = readOrder(table.order);
  const [sort, setSort] = useState<GridSort>(() => ({ key: columns.find((column) => column.names.includes(stored.name))?.key ?? columns[0]?.key ?? "", order: stored.order }));
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed, 150);
  const [filters, setFilters] = useState<{ shown: boolean; values: Record<string, string> }>({ shown: false, values: {} });
  const [wanted] = useDebouncedValue(filters.values, 300);
  const [page, setPage] = useState(0);
  const [pageSize, setPageSize] = useState(table.pageSize);
  const keyFilters = useMemo(
    () =>
      columns.flatMap((column): Json[] => {
        const filter = readColumnFilter(wanted[column.key] ?? "");
        return filter === undefined || column.query === undefined ? [] : [keyFilterOf(column.query, filter)];
      }),
    [columns, wanted],
  );
  const order = pageOrder(columns, sort.key, sort.order);
  const rows = useEntityPages(widget.id, requests, { pageSize: table.pagination ? pageSize : PAGE, search, order, keyFilters });
  const from = table.pagination ? page * pageSize : 0;
  const count = table.pagination ? Math.max(0, Math.min(pageSize, rows.total - from)) : rows.total;
  const { want, rowAt } = rows;
  const narrowed = JSON.stringify([search, keyFilters, pageSize]);
  useEffect(() => setPage(0), [narrowed]);
  useEffect(() => {
    if (table.pagination) {
      want(from, from + pageSize - 1);
    }
  }, [want, table, from, pageSize]);
  const inView = useCallback((start: number, end: number) => want(start, end), [want]);
  const actions = useMemo(() => actionsOf(config, "actionCellButton"), [config]);
  const actionsWidth = useActionsWidth(actions);
  const cellActions = useMemo(() => actionsOf(config, "cellClick"), [config]);

  const save = (saving: Saving): Promise<void> => {
    const sources = requests.flatMap((request) => (request === undefined ? [] : [request]));
    const pages = sources.map((request) => async (n: number) => {
      const query = object(commandOf(request, Date.now())["query"]);
      const pageLink = { pageSize: FILE_PAGE, page: n, textSearch: search === "" ? null : search, sortOrder: order };
      const answer = await api.post<PageData<Json>>("/api/entitiesQuery/find", { ...query, keyFilters: [...request.keyFilters, ...keyFilters], pageLink });
      return { rows: SourceData.read(answer.data), hasNext: answer.hasNext, total: answer.totalElements };
    });
    return saveRows(widget.title || t("Entities"), shownColumns(columns, arrangement), pages, saving);
  };

  if (first === undefined) {
    return <EmptyState>{t("No entity is chosen for this.")}</EmptyState>;
  }
  // Conditions of which one is enough can't be joined with others.
  const mayFilter = first.any !== true;
  return (
    <div className={gridClasses["frame"]} data-loaded={rows.isLoaded}>
      <TableTools
        settings={table}
        columns={columns}
        arrangement={arrangement}
        search={typed}
        onSearch={setTyped}
        filters={mayFilter ? { shown: filters.shown, toggle: () => setFilters(({ shown }) => ({ shown: !shown, values: {} })) } : undefined}
        total={rows.total}
        save={save}
      >
        {tools}
      </TableTools>
      {rows.problem !== undefined && <EmptyState>{t("The server refused this: {problem}", { problem: rows.problem })}</EmptyState>}
      {!rows.isLoaded && rows.problem === undefined ? (
        <Waiting />
      ) : (
        <Grid
          label={widget.title || t("Entities")}
          columns={shown}
          arrangement={arrangement}
          count={count}
          at={(index) => {
            const row = rowAt(from + index);
            return row === undefined ? undefined : { row };
          }}
          rowKey={(entity) => entity.id.id}
          version={version}
          sorts={[sort]}
          onSort={([next]) => next !== undefined && setSort(next)}
          {...(table.pagination ? {} : { onRange: inView })}
          filters={filters.shown ? { values: filters.values, change: (key, value) => setFilters((before) => ({ ...before, values: { ...before.values, [key]: value } })) } : undefined}
          onOpen={opens ? (entity) => act("rowClick", entity, undefined, entityRow(entity, keys)) : undefined}
          onDoubleClick={on("rowDoubleClick") ? (entity) => act("rowDoubleClick", entity, undefined, entityRow(entity, keys)) : undefined}
          onCell={
            cellActions.length === 0
              ? undefined
              : (entity, column) => {
                  const action = cellActions.find((one) => one.column === column) ?? cellActions.find((one) => one.column === undefined);
                  if (action !== undefined) {
                    act("cellClick", entity, action.name, entityRow(entity, keys));
                  }
                }
          }
          rowStyle={table.rowStyle === undefined ? undefined : (entity) => madeStyle(ask, table.rowStyle, ["entity"], [entityRow(entity, keys)])}
          actions={
            actions.length === 0 && rowTools === undefined
              ? undefined
              : (entity) => (
                  <>
                    <RowActions actions={actions} ask={ask} row={entityRow(entity, keys)} inMenu={table.actionsMenu && innerWidth < NARROW} run={(action) => act("actionCellButton", entity, action.name, entityRow(entity, keys))} />
                    {rowTools?.(entity)}
                  </>
                )
          }
          actionsWidth={Math.max(72, 32 + (table.actionsMenu && innerWidth < NARROW && actions.length > 1 ? 26 : actionsWidth) + (rowTools === undefined ? 0 : 52))}
          sticky={table.stickyHeader}
          tall={columns.some((column) => column.show !== undefined && column.key !== "entityName")}
          empty={t(typed === "" && keyFilters.length === 0 ? "No entities." : "Nothing matches the search.")}
        />
      )}
      {table.pagination && <Pager page={page} pageSize={pageSize} sizes={table.pageSizes} total={rows.total} onPage={setPage} onSize={setPageSize} />}
    </div>
  );
}
