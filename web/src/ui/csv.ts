// Rows as comma-separated values (RFC 4180).

interface TextColumn<T> {
  label: string;
  text: (row: T) => string;
}

/** Quotes a field where it must be. A leading `=`, `+`, `-` or `@` would be a formula in a spreadsheet, so such text gets an apostrophe. */
function field(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvOf<T>(columns: TextColumn<T>[], rows: T[]): string {
  const lines = [columns.map((column) => field(column.label)), ...rows.map((row) => columns.map((column) => field(column.text(row))))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** Lets the browser save a text as a file. */
export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: name.endsWith(".json") ? "application/json" : "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
