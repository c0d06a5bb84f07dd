// What somebody sees of a list: its search, order and filters. A list that has a screen of its own keeps them in the address, so that a
// link leads to what was seen and the way back finds it again.

import { useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import type { GridSort } from "../grid/sorting";

export interface ListState {
  search: string;
  sorts: readonly GridSort[];
  filters: Readonly<Record<string, string>>;
  /** Columns from first to last, where a link names them. */
  columns?: readonly string[] | undefined;
}

export interface ListControl {
  inAddress: boolean;
  state: ListState;
  change: (part: Partial<ListState>) => void;
}

const SEARCH = "search";
const SORT = "sort";
const COLUMNS = "columns";

/** Reads a list's state from an address such as `?search=pump&sort=type:asc,name:desc&active=true`. What it doesn't name is as in `initial`. */
export function readList(params: URLSearchParams, filters: readonly string[], initial: ListState): ListState {
  const sorts = (params.get(SORT) ?? "").split(",").flatMap((part): GridSort[] => {
    const [, key, order] = /^([\w.]+):(asc|desc)$/i.exec(part) ?? [];
    return key === undefined || order === undefined ? [] : [{ key, order: order.toLowerCase() === "asc" ? "ASC" : "DESC" }];
  });
  const columns = params.get(COLUMNS)?.split(",").filter((key) => key !== "");
  return {
    search: params.get(SEARCH) ?? initial.search,
    sorts: sorts.length === 0 ? initial.sorts : sorts,
    filters: { ...initial.filters, ...Object.fromEntries(filters.flatMap((name) => (params.has(name) ? [[name, params.get(name) ?? ""]] : []))) },
    ...(columns === undefined || columns.length === 0 ? {} : { columns }),
  };
}

const sortText = (sorts: readonly GridSort[]): string => sorts.map(({ key, order }) => `${key}:${order.toLowerCase()}`).join(",");

/** Writes a list's state into an address, whose other parameters stay. What is as in `initial` is left out. */
export function writeList(params: URLSearchParams, filters: readonly string[], initial: ListState, state: ListState): URLSearchParams {
  const after = new URLSearchParams(params);
  const put = (name: string, value: string, usual: string): void => {
    if (value === usual) {
      after.delete(name);
    } else {
      after.set(name, value);
    }
  };
  put(SEARCH, state.search, initial.search);
  put(SORT, sortText(state.sorts), sortText(initial.sorts));
  put(COLUMNS, state.columns?.join(",") ?? "", "");
  for (const name of filters) {
    put(name, state.filters[name] ?? "", initial.filters[name] ?? "");
  }
  return after;
}

/** Keeps a list's state: in the address if `inAddress`, else as long as the list is shown. */
export function useListState(sort: GridSort, filters: readonly string[], inAddress: boolean): ListControl {
  const [params, setParams] = useSearchParams();
  const initial = useMemo((): ListState => ({ search: "", sorts: [{ key: sort.key, order: sort.order }], filters: {} }), [sort.key, sort.order]);
  const [local, setLocal] = useState(initial);
  const state = inAddress ? readList(params, filters, initial) : local;
  return {
    inAddress,
    state,
    change: (part) => {
      if (inAddress) {
        setParams((before) => writeList(before, filters, initial, { ...readList(before, filters, initial), ...part }), { replace: true });
      } else {
        setLocal((before) => ({ ...before, ...part }));
      }
    },
  };
}
