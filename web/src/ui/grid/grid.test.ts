import { expect, test } from "vitest";
import { keyFilterOf, passes, readColumnFilter } from "./columnFilter";

test("what is typed above a column is part of a text, or compares with a number", () => {
  const check = (typed: string, cell: string): boolean | undefined => {
    const filter = readColumnFilter(typed);
    return filter === undefined ? undefined : passes(cell, filter);
  };
  expect([check("pump", "Old Pump 3"), check("pump", "Valve"), check("=Valve", "valve"), check("!=valve", "Valve")]).toEqual([true, false, true, false]);
  expect([check(">20", "25 °C"), check(">=20", "20"), check("<5", ""), check("= 3", "3.0"), check("!=3", "4")]).toEqual([true, true, false, true, true]);
  expect([check("", "x"), check(">", "x"), check(">x", "x")]).toEqual([undefined, undefined, undefined]);
});

test("a filter of a column becomes one of the server", () => {
  const key = { type: "TIME_SERIES", key: "level" };
  const filter = readColumnFilter("<=5");
  expect(filter === undefined ? undefined : keyFilterOf(key, filter)).toMatchObject({ key, valueType: "NUMERIC", predicate: { operation: "LESS_OR_EQUAL", value: { defaultValue: 5 } } });
});
