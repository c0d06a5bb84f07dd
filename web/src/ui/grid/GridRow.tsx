// A row of a table: a line of cells, or in a narrow place a card.

import { memo, type CSSProperties, type KeyboardEvent, type ReactElement, type ReactNode, type RefObject } from "react";
import { t } from "@/i18n";
import { cardColumns } from "./cards";
import type { GridColumn } from "./columns";
import type { GridProps } from "./Grid";
import classes from "./grid.module.css";

export interface RowProps<T> {
  row: T;
  index: number;
  /** What the table was given last: a row that is not drawn again still does what is right now. */
  newest: RefObject<GridProps<T>>;
  version: unknown;
  isSelected: boolean;
  isCard: boolean;
  height: number;
  columns: readonly GridColumn<T>[];
  cellStyle: (key: string) => CSSProperties | undefined;
  onKeys: (event: KeyboardEvent, row: T) => void;
  measure: ((element: HTMLElement | null) => void) | undefined;
}

function RowView<T>({ row, index, newest, isSelected, isCard, height, columns, cellStyle, onKeys, measure }: RowProps<T>): ReactElement {
  const { rowKey, selected, onOpen, onCell, rowStyle, actions } = newest.current;
  const [first] = columns;
  const content = (column: GridColumn<T>): ReactNode => (column.show === undefined ? column.text(row) : column.show(row));
  const attributes = (column: GridColumn<T>): object => ({
    "data-column": column.key,
    // What may be cut is told whole.
    title: column.show === undefined || (column.least !== undefined && column.whole !== true) ? column.text(row) : undefined,
    onClick: onCell === undefined ? undefined : () => newest.current.onCell?.(row, newest.current.columns.indexOf(column)),
  });
  const acts = actions === undefined ? undefined : <div className={classes["acts"]}>{actions(row)}</div>;
  return (
    <tr
      ref={measure}
      tabIndex={0}
      data-index={index}
      data-row={rowKey(row)}
      aria-rowindex={index + 2}
      aria-selected={selected === undefined ? undefined : isSelected}
      className={`${classes["row"]} ${onOpen === undefined ? "" : classes["opens"]}`}
      style={{ height, ...rowStyle?.(row) }}
      onKeyDown={(event) => onKeys(event, row)}
      onClick={() => newest.current.onOpen?.(row)}
      onDoubleClick={() => newest.current.onDoubleClick?.(row)}
    >
      {selected !== undefined && (
        <td style={isCard ? undefined : cellStyle("")} onClick={(event) => event.stopPropagation()}>
          <input type="checkbox" className={classes["check"]} tabIndex={-1} aria-label={selected.label?.(row) ?? t("Select")} checked={isSelected} onChange={() => newest.current.selected?.toggle(row)} />
        </td>
      )}
      {isCard && (
        <td>
          <div className={classes["cardTop"]}>
            {first !== undefined && (
              <div className={classes["cardName"]} style={first.style?.(row)} {...attributes(first)}>
                {content(first)}
              </div>
            )}
            {acts !== undefined && (
              <div onClick={(event) => event.stopPropagation()} onDoubleClick={(event) => event.stopPropagation()}>
                {acts}
              </div>
            )}
          </div>
          <div className={classes["cardParts"]}>
            {cardColumns(columns, row).map((column) => (
              <div key={column.key} style={column.style?.(row)} {...attributes(column)}>
                <span className={classes["cardLabel"]}>{column.label}</span> {content(column)}
              </div>
            ))}
          </div>
        </td>
      )}
      {!isCard &&
        columns.map((column) => (
          <td key={column.key} style={{ ...column.style?.(row), ...cellStyle(column.key) }} {...attributes(column)}>
            {content(column)}
          </td>
        ))}
      {!isCard && acts !== undefined && (
        <td className={classes["actions"]} onClick={(event) => event.stopPropagation()} onDoubleClick={(event) => event.stopPropagation()}>
          {acts}
        </td>
      )}
    </tr>
  );
}

/** A row is drawn again when it is another object, or when the table says that all are. */
export const Row = memo(
  RowView,
  (before, after) =>
    before.row === after.row &&
    before.index === after.index &&
    before.isSelected === after.isSelected &&
    before.isCard === after.isCard &&
    before.height === after.height &&
    before.version === after.version &&
    before.columns === after.columns &&
    before.cellStyle === after.cellStyle,
) as typeof RowView;
