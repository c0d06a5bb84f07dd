import { expect, test } from "vitest";
import { csvOf, tableText } from "./csv";

test("fields are quoted, and nothing becomes a formula", () => {
  const columns = [{ label: "Name", text: (row: string) => row }];
  expect(csvOf(columns, ['a "b", c', "=1+1", "-5", "-x", "line\nbreak"])).toBe(
    'Name\r\n"a ""b"", c"\r\n\'=1+1\r\n-5\r\n\'-x\r\n"line\nbreak"\r\n',
  );
});

test("what goes to a spreadsheet by the clipboard has its tabs and lines for fields and rows alone", () => {
  expect(tableText([{ label: "A", text: (row: string) => row }, { label: "B", text: () => "b" }], ["one\ttwo\nthree", "=1+1"])).toBe("A\tB\none two three\tb\n'=1+1\tb");
});

test("quotes stay text in a spreadsheet", () => {
  const columns = [{ label: "A", text: (row: string) => row }];
  expect(tableText(columns, ['"open', '"=1+1"', '5" pipe', "it's"])).toBe('A\n"""open"\n"""=1+1"""\n"5"" pipe"\nit\'s');
});
