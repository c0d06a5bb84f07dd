// Points by their time, the newest first: a tab for each entity, a row for each moment.

import { Tabs } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useContext, useMemo, useState, type ReactElement } from "react";
import { actionsOf } from "@/dashboard/actions";
import { BoardContext } from "@/dashboard/board";
import { latestOf, type EntityValues } from "@/dashboard/source";
import type { DataKey, Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { useFunctions } from "@/sandbox/functions";
import { EmptyState } from "@/ui/feedback";
import { passes, readColumnFilter } from "@/ui/grid/columnFilter";
import { shownColumns, useArrangement, type GridColumn } from "@/ui/grid/columns";
import { Grid } from "@/ui/grid/Grid";
import gridClasses from "@/ui/grid/grid.module.css";
import { comparing, type GridSort } from "@/ui/grid/sorting";
import { allAtOnce, saveRows } from "@/ui/rowsFile";
import { datePattern } from "./dates";
import { numeric } from "./postProcessing";
import type { WidgetProps } from "./registry";
import { functionContext, madeStyle, MadeContent } from "./table/cells";
import { labelOf } from "./table/entityColumns";
import { moments, type Moment } from "./table/moments";
import { RowActions, useActionsWidth } from "./table/RowActions";
import { formatOf, keySettings, readOrder, readTable } from "./table/settings";
import { Pager, TableTools } from "./table/TableTools";
import { shownValue } from "./text";

const NAMES = ["value", "rowData"];

type PointColumn = GridColumn<Moment> & { value: (row: Moment) => string | number; names: string[] };

/** Returns a row as functions see it: values by label, the time, and names of the entity. */
function rowData(row: Moment, keys: readonly DataKey[], latest: readonly DataKey[]): Json {
  const { entity } = row;
  return {
    ...Object.fromEntries(keys.map((key) => [key.label, numeric(row.values.get(key.name) ?? "")])),
    ...Object.fromEntries(latest.map((key) => [key.label, numeric(latestOf(entity, key)?.value ?? "")])),
    Timestamp: row.ts,
    entityName: entity.name,
    entityLabel: labelOf(entity),
    entityType: entity.id.entityType,
  };
}

function EntityTab({ widget, act, entity }: WidgetProps & { entity: EntityValues }): ReactElement {
  const { settings, config } = widget;
  const source = widget.datasources[0];
  const board = useContext(BoardContext);
  const table = useMemo(() => readTable(settings, "-Timestamp"), [settings]);
  const { ask, version } = useFunctions(useMemo(() => functionContext(widget), [widget]));
  const columns = useMemo((): PointColumn[] => {
    const keys = (source?.dataKeys ?? []).filter((key) => !key.hidden);
    const latest = (source?.latestKeys ?? []).filter((key) => key.settings["show"] !== false);
    const format = formatOf(settings["dateFormat"], settings["showMilliseconds"] === true ? "yyyy-MM-dd HH:mm:ss.SSS" : "yyyy-MM-dd HH:mm:ss");
    const data = (row: Moment): Json => rowData(row, keys, latest);
    const made = (key: DataKey, read: (row: Moment) => string): PointColumn => {
      const own = keySettings(key);
      const { content, style } = own;
      const value = (row: Moment): string | number => numeric(read(row)) as string | number;
      const shown = (row: Moment): string => shownValue(read(row), key);
      return {
        key: `${key.type} ${key.name} ${key.label}`,
        label: own.title,
        width: own.width,
        hidden: own.hidden,
        hideable: own.hideable,
        sortable: own.sortable,
        names: [key.label, key.name],
        value,
        text: shown,
        show: content === undefined ? undefined : (row) => <MadeContent ask={ask} body={content} names={NAMES} args={[value(row), data(row)]} otherwise={shown(row)} />,
        style: style === undefined ? undefined : (row) => madeStyle(ask, style, NAMES, [value(row), data(row)]),
      };
    };
    const time: PointColumn = { key: "Timestamp", label: t("Time"), sortable: true, names: ["Timestamp", "0"], value: (row) => row.ts, text: (row) => datePattern(row.ts, format) };
    const ofLatest = latest.map((key) => ({ order: typeof key.settings["order"] === "number" ? key.settings["order"] : undefined, column: made(key, (row) => latestOf(row.entity, key)?.value ?? "") }));
    const all = [...(settings["showTimestamp"] === false ? [] : [time]), ...keys.map((key) => made(key, (row) => row.values.get(key.name) ?? ""))];
    // A latest value may name its place among the others.
    ofLatest.forEach(({ order, column }) => all.splice(order ?? all.length, 0, column));
    return all;
  }, [settings, source, ask]);
  const arrangement = useArrangement(board === undefined ? undefined : `${board.id}/${widget.id}`, columns);
  const stored = readOrder(table.order);
  const [sorts, setSorts] = useState<readonly GridSort[]>(() => [{ key: columns.find((column) => column.names.includes(stored.name))?.key ?? "Timestamp", order: stored.order }]);
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed, 150);
  const [filters, setFilters] = useState<{ shown: boolean; values: Record<string, string> }>({ shown: false, values: {} });
  const [page, setPage] = useState(0);
  const [pageSize, setPageSize] = useState(table.pageSize);
  const rows = useMemo(() => {
    const wanted = columns.flatMap((column) => {
      const filter = readColumnFilter(filters.values[column.key] ?? "");
      return filter === undefined ? [] : [{ column, filter }];
    });
    const found = moments(entity, source?.dataKeys ?? [], settings["hideEmptyLines"] === true).filter(
      (row) =>
        wanted.every(({ column, filter }) => passes(column.text(row), filter)) && (search === "" || columns.some((column) => column.text(row).toLowerCase().includes(search.toLowerCase()))),
    );
    return found.sort(comparing(columns, sorts));
  }, [columns, entity, source, settings, search, filters, sorts]);
  const last = Math.max(0, Math.ceil(rows.length / pageSize) - 1);
  const current = Math.min(page, last);
  const from = table.pagination ? current * pageSize : 0;
  const data = (row: Moment): Json => rowData(row, source?.dataKeys ?? [], source?.latestKeys ?? []);
  const actions = actionsOf(config, "actionCellButton");
  const actionsWidth = useActionsWidth(actions);
  return (
    <div className={gridClasses["frame"]}>
      <TableTools
        settings={table}
        columns={columns}
        arrangement={arrangement}
        search={typed}
        onSearch={setTyped}
        filters={{ shown: filters.shown, toggle: () => setFilters(({ shown }) => ({ shown: !shown, values: {} })) }}
        total={rows.length}
        save={(saving) => saveRows(`${widget.title || t("Values")} ${entity.name}`, shownColumns(columns, arrangement), [allAtOnce(rows)], saving)}
      />
      <Grid
        label={`${widget.title || t("Values")} ${entity.name}`}
        columns={columns}
        arrangement={arrangement}
        count={table.pagination ? Math.min(pageSize, rows.length - from) : rows.length}
        at={(index) => {
          const row = rows[from + index];
          return row === undefined ? undefined : { row };
        }}
        rowKey={(row) => String(row.ts)}
        version={version}
        sorts={sorts}
        onSort={setSorts}
        manySorts
        filters={filters.shown ? { values: filters.values, change: (key, value) => setFilters((before) => ({ ...before, values: { ...before.values, [key]: value } })) } : undefined}
        onOpen={actionsOf(config, "rowClick").length > 0 ? (row) => act("rowClick", entity, undefined, data(row)) : undefined}
        onDoubleClick={actionsOf(config, "rowDoubleClick").length > 0 ? (row) => act("rowDoubleClick", entity, undefined, data(row)) : undefined}
        rowStyle={table.rowStyle === undefined ? undefined : (row) => madeStyle(ask, table.rowStyle, ["rowData"], [data(row)])}
        actions={actions.length === 0 ? undefined : (row) => <RowActions actions={actions} ask={ask} row={data(row)} inMenu={table.actionsMenu && innerWidth < 600} run={(action) => act("actionCellButton", entity, action.name, data(row))} />}
        actionsWidth={Math.max(120, 32 + actionsWidth)}
        tall={columns.some((column) => column.show !== undefined)}
        sticky={table.stickyHeader}
        empty={t(typed === "" ? "No values in this time." : "Nothing matches the search.")}
      />
      {table.pagination && <Pager page={current} pageSize={pageSize} sizes={table.pageSizes} total={rows.length} onPage={setPage} onSize={setPageSize} />}
    </div>
  );
}

export default function PointsTable(props: WidgetProps): ReactElement {
  const { entities, widget } = props;
  const [chosen, setChosen] = useState<string | null>(null);
  const current = entities.find((entity) => entity.id.id === chosen) ?? entities[0];
  if (current === undefined) {
    return <EmptyState>{t("No values in this time.")}</EmptyState>;
  }
  if (entities.length === 1) {
    return <EntityTab {...props} entity={current} />;
  }
  const name = (entity: EntityValues): string => (widget.settings["useEntityLabel"] === true && labelOf(entity) !== "" ? labelOf(entity) : entity.name);
  return (
    <Tabs value={current.id.id} onChange={setChosen} keepMounted={false} h="100%" style={{ display: "flex", flexDirection: "column" }}>
      <Tabs.List style={{ flexWrap: "nowrap", overflowX: "auto", flex: "none" }}>
        {entities.map((entity) => (
          <Tabs.Tab key={entity.id.id} value={entity.id.id}>
            {name(entity)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={current.id.id} style={{ flex: 1, minHeight: 0 }}>
        <EntityTab key={current.id.id} {...props} entity={current} />
      </Tabs.Panel>
    </Tabs>
  );
}
