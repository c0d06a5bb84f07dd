// What the settings of all tables of dashboards have in common, and those of their columns.

import { bodyOf } from "@/dashboard/actions";
import { number, object, text, type DataKey, type Json } from "@/dashboard/model";

export interface TableSettings {
  search: boolean;
  columnMenu: boolean;
  stickyHeader: boolean;
  actionsMenu: boolean;
  pagination: boolean;
  pageSize: number;
  /** Sizes of pages that can be chosen. */
  pageSizes: number[];
  rowStyle: string | undefined;
  /** Column to sort by, with `-` before it for the other direction. */
  order: string;
}

const on = (value: unknown): boolean => value !== false;

export function readTable(settings: Json, order: string): TableSettings {
  const pageSize = Math.min(1_000, Math.max(1, number(settings["defaultPageSize"]) ?? 10));
  const step = Math.max(1, number(settings["pageStepIncrement"]) ?? pageSize);
  const count = Math.min(10, Math.max(1, number(settings["pageStepCount"]) ?? 3));
  return {
    search: on(settings["enableSearch"]),
    columnMenu: on(settings["enableSelectColumnDisplay"]),
    stickyHeader: on(settings["enableStickyHeader"]),
    actionsMenu: on(settings["showCellActionsMenu"]),
    pagination: on(settings["displayPagination"]),
    pageSize,
    pageSizes: [...new Set([pageSize, ...Array.from({ length: count }, (_, n) => step * (n + 1))])].sort((a, b) => a - b),
    rowStyle: settings["useRowStyleFunction"] === true ? bodyOf(settings["rowStyleFunction"]) : undefined,
    order: text(settings["defaultSortOrder"]) ?? order,
  };
}

export interface KeySettings {
  title: string;
  width: string | undefined;
  hidden: boolean;
  hideable: boolean;
  sortable: boolean;
  style: string | undefined;
  content: string | undefined;
  /** A function that makes the value from the stored one. */
  post: string | undefined;
}

/** A width of a column: a CSS length, or pixels; zero is none. */
export function columnWidth(value: unknown): string | undefined {
  const width = typeof value === "number" ? `${value}px` : text(value)?.trim();
  const length = width !== undefined && /^\d+(\.\d+)?$/.test(width) ? `${width}px` : width;
  return length !== undefined && /^\d+(\.\d+)?(px|%|em|rem|vw)$/.test(length) && Number.parseFloat(length) > 0 ? length : undefined;
}

/** Reads what is set for the column of a key. */
export function keySettings(key: DataKey): KeySettings {
  const { settings } = key;
  const visibility = settings["defaultColumnVisibility"];
  return {
    title: text(settings["customTitle"]) ?? key.label,
    width: columnWidth(settings["columnWidth"]),
    hidden: visibility === "hidden" || (visibility === "hidden-mobile" && typeof innerWidth === "number" && innerWidth < 960),
    hideable: settings["columnSelectionToDisplay"] !== "disabled",
    sortable: settings["disableSorting"] !== true,
    style: settings["useCellStyleFunction"] === true ? bodyOf(settings["cellStyleFunction"]) : undefined,
    content: settings["useCellContentFunction"] === true ? bodyOf(settings["cellContentFunction"]) : undefined,
    post: key.raw["usePostProcessing"] === false ? undefined : bodyOf(key.raw["postFuncBody"]),
  };
}

/** Splits a stored order into the name of its column and the direction. */
export function readOrder(order: string): { name: string; order: "ASC" | "DESC" } {
  return order.startsWith("-") ? { name: order.slice(1), order: "DESC" } : { name: order, order: "ASC" };
}

/** Returns the format of dates that settings name: a text, or an object with one; `otherwise` if they name none. */
export function formatOf(stored: unknown, otherwise: string): string {
  return text(stored) ?? text(object(stored)["format"]) ?? otherwise;
}
