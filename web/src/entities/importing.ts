// Reading CSV files (RFC 4180) that become entities.

export interface ImportColumn {
  type: string;
  key: string;
}

export interface CsvRecord {
  /** The line that it begins in; the first is 1. */
  line: number;
  cells: string[];
}

/** Columns of these types go to a key of their own. */
export const KEYED = new Set(["SERVER_ATTRIBUTE", "SHARED_ATTRIBUTE", "TIMESERIES"]);

/** Splits a text into records. Quoted cells may contain delimiters, quotes and line breaks; empty lines are left out. */
export function csvRecords(text: string, delimiter: string): CsvRecord[] {
  const records: CsvRecord[] = [];
  let cells: string[] = [];
  let cell = "";
  let quoted = false;
  let line = 1;
  let begin = 1;
  const end = (): void => {
    cells.push(cell);
    if (cells.some((one) => one !== "")) {
      records.push({ line: begin, cells });
    }
    cells = [];
    cell = "";
    begin = line;
  };
  for (let at = 0; at < text.length; at++) {
    const letter = text.charAt(at);
    if (letter === "\n") {
      line += 1;
    }
    if (quoted) {
      if (letter !== '"') {
        cell += letter;
      } else if (text.charAt(at + 1) === '"') {
        cell += '"';
        at += 1;
      } else {
        quoted = false;
      }
    } else if (letter === '"' && cell === "") {
      quoted = true;
    } else if (letter === delimiter) {
      cells.push(cell);
      cell = "";
    } else if (letter === "\n") {
      end();
    } else if (letter !== "\r" && letter !== "\uFEFF") {
      cell += letter;
    }
  }
  end();
  return records;
}

/** Guesses what a column is by its name. */
export function guessColumn(name: string): ImportColumn {
  const known: Record<string, string> = { name: "NAME", type: "TYPE", profile: "TYPE", label: "LABEL", description: "DESCRIPTION", token: "ACCESS_TOKEN", gateway: "IS_GATEWAY" };
  const plain = name.trim().toLowerCase();
  return { type: known[plain] ?? "SERVER_ATTRIBUTE", key: name.trim() };
}
