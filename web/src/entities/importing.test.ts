import { expect, test } from "vitest";
import { csvRecords, guessColumn } from "./importing";

test("records keep quotes, delimiters and line breaks, and know their lines", () => {
  expect(csvRecords('name,label\r\n"a ""b"", c",x\n\n"two\nlines",y', ",")).toEqual([
    { line: 1, cells: ["name", "label"] },
    { line: 2, cells: ['a "b", c', "x"] },
    { line: 4, cells: ["two\nlines", "y"] },
  ]);
  expect(csvRecords("", ";")).toEqual([]);
});

test("columns are guessed by their names", () => {
  expect([" Name", "serial"].map(guessColumn)).toEqual([{ type: "NAME", key: "Name" }, { type: "SERVER_ATTRIBUTE", key: "serial" }]);
});
