// Pages of a list of the server: only those in view are loaded, so that any place of a long list is as near as the first.

import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { api, type Query } from "@/api/client";
import type { PageData } from "@/api/types";
import { FILE_PAGE, type RowsPage } from "../rowsFile";

/** Rows of a page. */
export const PAGE = 100;

export interface PagesSource {
  path: string;
  /** Endpoints that want a POST with this body, instead of a GET. */
  body?: unknown;
  /** How often the pages in view are asked for anew, milliseconds. */
  every?: number | undefined;
}

interface Pages<T> {
  rowAt: (index: number) => T | undefined;
  loaded: T[];
  total: number;
  /** Another one when other rows have come. */
  version: number;
  state: { isPending: boolean; isFetching: boolean; error: unknown };
  /** Asks for a page of a file. */
  filePage: (page: number) => Promise<RowsPage<T>>;
}

export const pageOf = (index: number): number => Math.floor(index / PAGE);

/** Loads pages from one to another, and the first one, which tells how many rows there are. */
export function usePages<T>({ path, body, every }: PagesSource, query: Query, { first, last }: { first: number; last: number }): Pages<T> {
  const numbers = new Set([0]);
  for (let page = first; page <= last; page++) {
    numbers.add(page);
  }
  const ask = (pageSize: number, page: number): Promise<PageData<T>> =>
    body === undefined ? api.get<PageData<T>>(path, { ...query, pageSize, page }) : api.post<PageData<T>>(path, body, { ...query, pageSize, page });
  const pages = useQueries({
    queries: [...numbers].map((page) => ({
      queryKey: ["list", path, query, body, page],
      queryFn: () => ask(PAGE, page),
      placeholderData: keepPreviousData,
      ...(every === undefined ? {} : { refetchInterval: every }),
    })),
  });
  const byNumber = new Map([...numbers].map((page, n) => [page, pages[n]?.isPlaceholderData === true && page > 0 ? undefined : pages[n]?.data]));
  const begin = pages[0];
  return {
    rowAt: (index) => byNumber.get(pageOf(index))?.data[index % PAGE],
    loaded: [...byNumber.values()].flatMap((page) => page?.data ?? []),
    total: begin?.data?.totalElements ?? 0,
    version: Math.max(...pages.map((page) => page.dataUpdatedAt)) + pages.length,
    state: { isPending: begin?.isPending ?? true, isFetching: pages.some((page) => page.isFetching), error: pages.find((page) => page.isError)?.error },
    filePage: async (page) => {
      const { data, hasNext, totalElements } = await ask(FILE_PAGE, page);
      return { rows: data, hasNext, total: totalElements };
    },
  };
}
