// A CSV file of all rows of a list, however many: asked for page by page, with progress, until it is whole or somebody cancels.

import { csvLine, csvOf, download, type TextColumn } from "./csv";

/** Rows of one request. */
export const CSV_PAGE = 1_000;

export interface Saving {
  /** Told how many rows are there, of how many. */
  tell: (done: number, total: number) => void;
  /** Cancels. */
  signal: AbortSignal;
}

export interface RowsPage<T> {
  rows: T[];
  hasNext: boolean;
  total: number;
}

/** Asks one source after the other for its pages and saves their rows as a file; nothing is saved if a page fails or somebody cancels. */
export async function saveCsv<T>(name: string, columns: readonly TextColumn<T>[], sources: readonly ((page: number) => Promise<RowsPage<T>>)[], { tell, signal }: Saving): Promise<void> {
  // Text, not rows, is kept: a row of the server is many times larger.
  const parts = [csvOf(columns, [])];
  let [done, before] = [0, 0];
  for (const source of sources) {
    for (let page = 0; ; page++) {
      const { rows, hasNext, total } = await source(page);
      if (signal.aborted) {
        return;
      }
      parts.push(rows.map((row) => csvLine(columns, row)).join(""));
      done += rows.length;
      tell(done, before + total);
      if (!hasNext || rows.length === 0) {
        before += total;
        break;
      }
    }
  }
  download(`${name}.csv`, parts);
}
