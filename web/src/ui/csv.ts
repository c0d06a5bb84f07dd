// Rows as comma-separated values (RFC 4180).

export interface TextColumn<T> {
  label: string;
  text: (row: T) => string;
}

/** A leading `=`, `+`, `-` or `@` would be a formula in a spreadsheet, so such text gets an apostrophe. */
export const safeText = (text: string): string => (/^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text);

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** Quotes a field where it must be. */
function field(text: string): string {
  const safe = safeText(text);
  return /[",\r\n]/.test(safe) ? quoted(safe) : safe;
}

const lineOf = (texts: string[]): string => `${texts.map(field).join(",")}\r\n`;

/** Returns the line of a row, its end included. */
export function csvLine<T>(columns: readonly TextColumn<T>[], row: T): string {
  return lineOf(columns.map((column) => column.text(row)));
}

/** Returns rows below the labels of their columns. */
export function csvOf<T>(columns: readonly TextColumn<T>[], rows: readonly T[]): string {
  return lineOf(columns.map((column) => column.label)) + rows.map((row) => csvLine(columns, row)).join("");
}

/** Returns rows below the labels of their columns as spreadsheets take them from the clipboard: a tab between fields, a line for each row. */
export function tableText<T>(columns: readonly TextColumn<T>[], rows: readonly T[]): string {
  const plain = (text: string): string => {
    const line = safeText(text).replaceAll(/[\t\r\n]+/g, " ");
    // They take quotes off, and go on past tabs and lines until one that closes.
    return line.includes('"') ? quoted(line) : line;
  };
  return [columns.map(({ label }) => label), ...rows.map((row) => columns.map((column) => column.text(row)))].map((line) => line.map(plain).join("\t")).join("\n");
}

/** Lets the browser save a file. */
export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Lets the browser save a text, or its parts, as a file. */
export function download(name: string, text: string | BlobPart[]): void {
  saveBlob(new Blob(typeof text === "string" ? [text] : text, { type: name.endsWith(".json") ? "application/json" : "text/csv;charset=utf-8" }), name);
}
