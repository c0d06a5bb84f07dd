// The pages of one or several sources as one list of rows.

import { useCallback, useMemo, useRef, useSyncExternalStore } from "react";
import type { Json } from "@/dashboard/json";
import { EntityPages, type PageOrder } from "@/dashboard/entityPages";
import { askedBy } from "@/dashboard/questions";
import type { EntityValues, SourceRequest } from "@/dashboard/source";
import { useDataEpoch } from "@/sandbox/refresh";

export interface EntityRows {
  total: number;
  problem: string | undefined;
  /** Whether there is something to show, be it of the former search. */
  isLoaded: boolean;
  rowAt: (index: number) => EntityValues | undefined;
  want: (first: number, last: number) => void;
}

class JoinedPages {
  private version = 0;

  constructor(readonly parts: readonly EntityPages[]) {}

  readonly watch = (listener: () => void): (() => void) => {
    const leaves = this.parts.map((part) =>
      part.watch(() => {
        this.version++;
        listener();
      }),
    );
    return () => leaves.forEach((leave) => leave());
  };
  readonly current = (): number => this.version;

  /** Returns the part that a place lies in, with the place within it. */
  private find(index: number): [EntityPages, number] | undefined {
    let left = index;
    for (const part of this.parts) {
      if (left < part.total()) {
        return [part, left];
      }
      left -= part.total();
    }
    return undefined;
  }

  rowAt(index: number): EntityValues | undefined {
    const [part, place] = this.find(index) ?? [];
    return place === undefined ? undefined : part?.rowAt(place);
  }

  want(first: number, last: number): void {
    let before = 0;
    for (const part of this.parts) {
      const [from, to] = [Math.max(0, first - before), Math.min(part.total() - 1, last - before)];
      // A part whose size is not known yet is asked for its first page.
      if (part.total() === 0 || (to >= from && to >= 0)) {
        part.want(from, Math.max(from, to));
      }
      before += part.total();
    }
  }
}

export interface RowsQuery {
  pageSize: number;
  search: string;
  order: PageOrder;
  keyFilters: Json[];
}

/** Follows the rows in view of some sources of a widget. A new search, order or condition begins anew; what was shown stays until its answer. */
export function useEntityPages(widget: string, requests: readonly (SourceRequest | undefined)[], query: RowsQuery): EntityRows {
  const epoch = useDataEpoch((state) => state.epoch);
  const identity = JSON.stringify([requests.filter((request) => request !== undefined), query, epoch]);
  const pages = useMemo(() => {
    const [asked, wanted] = JSON.parse(identity) as [SourceRequest[], RowsQuery];
    return new JoinedPages(asked.map((request) => new EntityPages({ request, ...wanted }, askedBy(widget))));
  }, [identity, widget]);
  useSyncExternalStore(pages.watch, pages.current);
  const problem = pages.parts.map((part) => part.problem()).find((one) => one !== undefined);
  const isLoaded = pages.parts.every((part) => part.loaded());
  const sources = JSON.stringify(requests);
  const former = useRef<{ sources: string; pages: JoinedPages }>(undefined);
  if (isLoaded || problem !== undefined) {
    former.current = { sources, pages };
  }
  const shown = former.current?.sources === sources ? former.current.pages : pages;
  return {
    total: shown.parts.reduce((sum, part) => sum + part.total(), 0),
    problem,
    isLoaded: shown.parts.every((part) => part.loaded()),
    rowAt: useCallback((index: number) => shown.rowAt(index), [shown]),
    want: useCallback((first: number, last: number) => pages.want(first, last), [pages]),
  };
}
