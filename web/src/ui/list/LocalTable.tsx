// A table over rows that are all here: searched and sorted by the browser, and drawn only where they are in view.

import { Group, Text, TextInput } from "@mantine/core";
import { useCallback, useMemo, useRef, useState, type ReactElement, type ReactNode } from "react";
import { t, useLanguage } from "@/i18n";
import { useAppearance } from "../appearance";
import { shownColumns, useArrangement, type GridColumn } from "../grid/columns";
import { Grid } from "../grid/Grid";
import { comparing, type GridSort } from "../grid/sorting";
import { TableMenu } from "../grid/TableMenu";
import { allAtOnce, saveRows } from "../rowsFile";
import classes from "./list.module.css";

const ROW_PX = { comfortable: 42, dense: 32 };

export interface LocalTableProps<T> {
  label: string;
  /** Names the table: by it the arrangement of its columns is kept. */
  name: string;
  columns: readonly GridColumn<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  /** What rows are sorted by at first. Values that change later move no row, until the order is chosen again. */
  sort: GridSort;
  /** Whether a row fits what is searched, in small letters. */
  fits: (row: T, wanted: string) => boolean;
  /** Says how many rows there are, and how many of them are selected. */
  told: (count: number, selected: number) => string;
  /** What stands before the search. */
  tools?: ReactNode;
  /** Buttons for the selected rows; without them rows can't be selected. */
  bulk?: (rows: T[], done: () => void) => ReactNode;
  /** Names the check box of a row. */
  selectLabel?: (row: T) => string;
  actions?: ((row: T) => ReactNode) | undefined;
  actionsWidth?: number;
  /** What rows are drawn from besides their own values: when it changes, all are drawn again. */
  version?: unknown;
  /** Whether rows may be higher than one line. */
  tall?: boolean;
  /** Told the rows in view. */
  onView?: (rows: T[]) => void;
}

export function LocalTable<T>(props: LocalTableProps<T>): ReactElement {
  const { rows, rowKey, fits, onView } = props;
  const rowPx = ROW_PX[useAppearance((state) => state.density)];
  const language = useLanguage();
  const [search, setSearch] = useState("");
  const [sorts, setSorts] = useState<GridSort[]>([props.sort]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const columns = useMemo(() => props.columns.map((column) => ({ ...column, label: t(column.label) })), [props.columns, language]);
  const arrangement = useArrangement(props.name, columns);
  const wanted = search.trim().toLowerCase();
  const found = useMemo(() => rows.filter((row) => fits(row, wanted)).sort(comparing(columns, sorts)), [rows, fits, wanted, columns, sorts]);
  const newest = useRef(found);
  newest.current = found;
  const onRange = useCallback((first: number, last: number) => onView?.(newest.current.slice(first, last + 1)), [onView, found]);
  const chosen = found.filter((row) => selected.has(rowKey(row)));
  const selection = {
    keys: selected,
    toggle: (row: T) =>
      setSelected((before) => {
        const after = new Set(before);
        return after.delete(rowKey(row)) ? after : after.add(rowKey(row));
      }),
    state: chosen.length === 0 ? ("none" as const) : chosen.length === found.length ? ("all" as const) : ("some" as const),
    toggleAll: () => setSelected(new Set(chosen.length === found.length ? [] : found.map(rowKey))),
    ...(props.selectLabel === undefined ? {} : { label: props.selectLabel }),
  };
  return (
    <div className={classes["frame"]}>
      <Group p="xs" gap="sm" className={classes["tools"] ?? ""}>
        {props.tools}
        <TextInput aria-label={t("Search")} placeholder={t("Search")} value={search} onChange={(event) => setSearch(event.currentTarget.value)} />
        <Text size="sm" role="status">
          {props.told(found.length, chosen.length)}
        </Text>
        <Group ms="auto" gap="xs">
          {chosen.length > 0 && props.bulk?.(chosen, () => setSelected(new Set()))}
          <TableMenu columns={columns} arrangement={arrangement} save={(saving) => saveRows(props.label, shownColumns(columns, arrangement), [allAtOnce(found)], saving)} />
        </Group>
      </Group>
      <Grid
        label={props.label}
        columns={columns}
        arrangement={arrangement}
        count={found.length}
        at={(index) => {
          const row = found[index];
          return row === undefined ? undefined : { row };
        }}
        rowKey={rowKey}
        rowPx={rowPx}
        version={JSON.stringify([language, props.version])}
        sorts={sorts}
        onSort={setSorts}
        manySorts
        {...(onView === undefined ? {} : { onRange })}
        selected={props.bulk === undefined ? undefined : selection}
        actions={props.actions}
        {...(props.actionsWidth === undefined ? {} : { actionsWidth: props.actionsWidth })}
        tall={props.tall === true}
        empty={t("Nothing matches the search.")}
      />
    </div>
  );
}
