import { expect, test } from "vitest";
import { cardColumns, drawsCards, groupHeads, itemKey, leftOut, neededWidth } from "./cards";
import type { GridColumn } from "./columns";

interface Row {
  name: string;
  profile: string;
  customer: string;
}

const column = (key: keyof Row): GridColumn<Row> => ({ key, label: key, text: (row) => row[key] });

test("rows become cards where the place is narrow and the columns do not fit", () => {
  expect([drawsCards(358, 700, 1), drawsCards(358, 280, 1), drawsCards(900, 1_400, 1), drawsCards(0, 700, 1)]).toEqual([true, false, false, false]);
  // Larger letters need more room.
  expect([drawsCards(600, 1_400, 1), drawsCards(600, 1_400, 1.5)]).toEqual([false, true]);
});

test("columns need the widths that people gave them, or those of their kind, or the usual one", () => {
  const columns = [column("name"), column("profile")];
  expect([neededWidth(columns, { name: 300 }, 1), neededWidth(columns, {}, 1.5)]).toEqual([440, 420]);
  const ofKind = [{ ...column("name"), px: 200 }, column("profile")];
  expect([neededWidth(ofKind, {}, 1), neededWidth(ofKind, {}, 1.5), neededWidth(ofKind, { name: 60 }, 1)]).toEqual([340, 510, 200]);
});

test("columns that yield are left out one after the other, until the others have their least width", () => {
  const columns = [{ ...column("name"), least: 100 }, { ...column("profile"), least: 90, yields: 1 }, { ...column("customer"), yields: 2 }];
  expect([330, 329, 190, 189, 50].map((room) => leftOut(columns, {}, 1, room))).toEqual([[], ["customer"], ["customer"], ["customer", "profile"], ["customer", "profile"]]);
  // Larger letters and widths that somebody gave need more room.
  expect([leftOut(columns, {}, 1.5, 330), leftOut(columns, { name: 200 }, 1, 330)]).toEqual([["customer"], ["customer"]]);
  expect(leftOut([column("name")], {}, 1, 10)).toEqual([]);
});

test("a card leaves out what is empty, but not what draws itself", () => {
  const row = { name: "Pump", profile: "", customer: "" };
  const drawn: GridColumn<Row> = { ...column("profile"), show: () => "–" };
  const linked: GridColumn<Row> = { ...column("customer"), show: () => "", leadsTo: () => undefined };
  expect(cardColumns([column("name"), column("profile")], row)).toEqual([]);
  expect(cardColumns([column("name"), drawn, linked], row)).toEqual([drawn]);
  expect(cardColumns([], row)).toEqual([]);
});

test("heights go with heads of groups and with rows, whose names never meet; what is not loaded has its place", () => {
  const items = [{ group: "a" }, { row: "a" }, undefined, { group: "b" }];
  expect(groupHeads(items.length, (index) => items[index])).toEqual([[0, "a"], [3, "b"]]);
  expect(items.map((item, index) => itemKey(item, (row) => row, index))).toEqual(["group a", "row a", "2", "group b"]);
});
