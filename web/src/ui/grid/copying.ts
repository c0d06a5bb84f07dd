// What is copied of a table: the cell that was clicked or reached by the arrows, or the whole row. Marks are the page's own, so that no row is drawn again.

import type { ClipboardEvent, PointerEvent } from "react";
import { t } from "@/i18n";
import { safeText, tableText } from "@/ui/csv";
import { notify } from "@/ui/feedback";
import type { GridColumn } from "./columns";

const CELL = "[data-column]";
const MARK = "data-marked";
/** More than so much of what was copied is not repeated. */
const TOLD = 80;

const columnOf = (row: Element): string | undefined => row.querySelector(`[${MARK}]`)?.getAttribute("data-column") ?? undefined;

/** Marks a cell of a table, or none. */
function mark(table: Element | null, cell: Element | null | undefined): Element | undefined {
  table?.querySelectorAll(`[${MARK}]`).forEach((one) => one.removeAttribute(MARK));
  cell?.setAttribute(MARK, "");
  return cell ?? undefined;
}

/** Brings a cell that the keyboard has reached into view: tables may be wider than their place. */
function show(cell: Element | undefined): void {
  cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** Marks the cell that is pressed. */
export function markPressed({ target, currentTarget }: PointerEvent): void {
  mark(currentTarget, (target as Element).closest(CELL));
}

/** Moves the mark to the cell on the right (1) or left (-1) within a row; before the first cell none is marked, and the whole row is meant. */
export function moveMark(row: Element, by: 1 | -1): void {
  const cells = [...row.querySelectorAll(CELL)];
  const on = getComputedStyle(row).direction === "rtl" ? -by : by;
  const at = cells.findIndex((cell) => cell.hasAttribute(MARK));
  show(mark(row.closest("table"), cells[Math.min(cells.length - 1, at + on)]));
}

/** Lets the mark follow to the same column of another row. */
export function followMark(table: Element | null, row: Element | null | undefined): void {
  const column = table === null ? undefined : columnOf(table);
  show(mark(table, column === undefined ? undefined : row?.querySelector(`[data-column="${CSS.escape(column)}"]`)));
}

/** Puts the marked cell, or the row that has the keyboard, on the clipboard; selected text and fields keep theirs. */
export function copyRow<T>(event: ClipboardEvent, columns: readonly GridColumn<T>[], rowAt: (index: number) => T | undefined): void {
  const focused = document.activeElement;
  const index = focused?.matches("tr[data-row]") === true ? Number(focused.getAttribute("data-index")) : NaN;
  const row = Number.isNaN(index) ? undefined : rowAt(index);
  if (focused === null || row === undefined || getSelection()?.isCollapsed === false) {
    return;
  }
  const column = columns.find(({ key }) => key === columnOf(focused));
  const text = column === undefined ? (tableText(columns, [row]).split("\n")[1] ?? "") : safeText(column.text(row));
  event.clipboardData.setData("text/plain", text);
  event.preventDefault();
  notify.ok(t("Copied: {text}", { text: text.length > TOLD ? `${text.slice(0, TOLD)}…` : text }));
}
