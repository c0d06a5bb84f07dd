// A file of all rows of a list, however many pages: asked for page by page, with progress, until it is whole or somebody cancels.

import { t } from "@/i18n";
import { csvLine, csvOf, download, saveBlob, type TextColumn } from "./csv";
import { notify } from "./feedback";

/** Rows of one request. */
export const FILE_PAGE = 1_000;
/** The most rows of one file: more would fill the memory of the page, and a sheet of Excel has few more. */
export const MOST_ROWS = 1_000_000;

export type FileFormat = "csv" | "xlsx" | "json";

export interface Saving {
  format: FileFormat;
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

/** How rows become text, and texts a file. What is made of them is kept, not rows: a row of the server is many times larger. */
interface Writer<T> {
  row: (row: T, n: number) => string;
  add: (text: string) => Promise<void> | void;
  save: (name: string) => Promise<void> | void;
}

/** Keeps texts outside of the memory of scripts, which they would fill. */
function textWriter<T>(row: Writer<T>["row"], [head, end]: readonly [string, string], ending: FileFormat): Writer<T> {
  const parts: Blob[] = [];
  return { row, add: (text) => void parts.push(new Blob([text])), save: (name) => download(`${name}.${ending}`, [head, ...parts, end]) };
}

/** Returns labels of which each is another one: the values of columns of the same label would be one in an object. */
export function unlike(labels: readonly string[]): string[] {
  const taken = new Set<string>();
  return labels.map((label) => {
    let own = label;
    for (let n = 2; taken.has(own) || (own !== label && labels.includes(own)); n++) {
      own = `${label} (${n})`;
    }
    taken.add(own);
    return own;
  });
}

async function writerOf<T>(format: FileFormat, columns: readonly TextColumn<T>[]): Promise<Writer<T>> {
  if (format === "json") {
    const names = unlike(columns.map(({ label }) => label));
    const object = (row: T): object => Object.fromEntries(columns.map((column, n) => [names[n], column.text(row)]));
    return textWriter((row, n) => `${n === 0 ? "" : ",\n"}${JSON.stringify(object(row))}`, ["[\n", "\n]\n"], format);
  }
  if (format === "xlsx") {
    const { sheetRow, Workbook } = await import("./xlsx");
    const book = new Workbook();
    await book.add(sheetRow(columns.map(({ label }) => label)));
    return {
      row: (row) => sheetRow(columns.map((column) => column.text(row))),
      add: (text) => book.add(text),
      save: async (name) => saveBlob(await book.end(), `${name}.xlsx`),
    };
  }
  return textWriter((row) => csvLine(columns, row), [csvOf(columns, []), ""], format);
}

/** Lets the page draw and hear a click between two parts of a long task. */
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** Asks one source after the other for its pages and saves their rows as a file; nothing is saved if a page fails or somebody cancels. */
export async function saveRows<T>(name: string, columns: readonly TextColumn<T>[], sources: readonly ((page: number) => Promise<RowsPage<T>>)[], { format, tell, signal }: Saving): Promise<void> {
  const writer = await writerOf(format, columns);
  let [done, before] = [0, 0];
  for (const source of sources) {
    for (let page = 0; done < MOST_ROWS; page++) {
      const { rows, hasNext, total } = await source(page);
      if (signal.aborted) {
        return;
      }
      const taken = rows.slice(0, MOST_ROWS - done);
      for (let at = 0; at < taken.length; at += FILE_PAGE) {
        const first = done;
        const part = taken.slice(at, at + FILE_PAGE);
        await writer.add(part.map((row, n) => writer.row(row, first + n)).join(""));
        done += part.length;
        tell(done, before + total);
        if (at + FILE_PAGE < taken.length) {
          await pause();
          if (signal.aborted) {
            return;
          }
        }
      }
      if (!hasNext || rows.length === 0) {
        before += total;
        break;
      }
    }
  }
  if (done === MOST_ROWS) {
    notify.error(t("The file has the first {n} rows. Narrow the list by its search and filters for the others.", { n: MOST_ROWS }));
  }
  await writer.save(name);
}

/** Makes the source of rows that are all here. */
export function allAtOnce<T>(rows: T[]): () => Promise<RowsPage<T>> {
  return () => Promise.resolve({ rows, hasNext: false, total: rows.length });
}
