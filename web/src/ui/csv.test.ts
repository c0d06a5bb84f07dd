import { expect, test } from "vitest";
import { csvOf } from "./csv";

test("fields are quoted, and nothing becomes a formula", () => {
  const columns = [{ label: "Name", text: (row: string) => row }];
  expect(csvOf(columns, ['a "b", c', "=1+1", "-5", "-x", "line\nbreak"])).toBe(
    'Name\r\n"a ""b"", c"\r\n\'=1+1\r\n-5\r\n\'-x\r\n"line\nbreak"\r\n',
  );
});
