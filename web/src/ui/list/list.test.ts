import { afterEach, expect, test, vi } from "vitest";
import { saveRows, unlike } from "../rowsFile";
import { orderOf, placed, readLayout, shownColumns } from "../grid/columns";
import { comparing, sortsAfter } from "../grid/sorting";
import { readList, writeList, type ListState } from "./state";
import { readViews, withView, type ListView } from "./views";

const initial: ListState = { search: "", sorts: [{ key: "createdTime", order: "DESC" }], filters: {} };

afterEach(() => vi.unstubAllGlobals());

test("a list's state is the same after its way through the address, whose other parameters stay", () => {
  const state: ListState = { search: "pump & <b>", sorts: [{ key: "type", order: "ASC" }, { key: "name", order: "DESC" }], filters: { active: "true" }, columns: ["name", "type"] };
  const address = writeList(new URLSearchParams("tab=x"), ["active"], initial, state);
  expect(address.get("tab")).toBe("x");
  expect(address.get("sort")).toBe("type:asc,name:desc");
  expect(readList(new URLSearchParams(address.toString()), ["active"], initial)).toEqual(state);
  expect(writeList(address, ["active"], initial, initial).toString()).toBe("tab=x");
});

test("what an address says wrongly counts as not said", () => {
  expect(readList(new URLSearchParams("sort=;drop:sideways&columns=,,"), [], initial)).toEqual(initial);
});

test("a column is sorted by alone, or besides others, from which it can be taken again", () => {
  const first = sortsAfter([], "a", false);
  expect(first).toEqual([{ key: "a", order: "ASC" }]);
  expect(sortsAfter(first, "a", false)).toEqual([{ key: "a", order: "DESC" }]);
  const both = sortsAfter(first, "b", true);
  expect(both).toEqual([...first, { key: "b", order: "ASC" }]);
  expect(sortsAfter(sortsAfter(both, "b", true), "b", true)).toEqual(first);
});

test("rows are compared by columns in turn, numbers as numbers", () => {
  const columns = [
    { key: "kind", label: "", text: (row: { kind: string; n: number }) => row.kind },
    { key: "n", label: "", text: (row: { kind: string; n: number }) => `${row.n} °C`, value: (row: { kind: string; n: number }) => row.n },
  ];
  const rows = [{ kind: "b", n: 9 }, { kind: "a", n: 10 }, { kind: "b", n: 100 }, { kind: "a", n: 9 }];
  const sorted = [...rows].sort(comparing(columns, [{ key: "kind", order: "ASC" }, { key: "n", order: "DESC" }]));
  expect(sorted.map(({ kind, n }) => `${kind}${n}`)).toEqual(["a10", "a9", "b100", "b9"]);
});

test("columns stand in the order that was chosen, those that stay in view first, new ones last", () => {
  expect(orderOf(["a", "b", "c"], ["c", "gone", "a"])).toEqual(["c", "a", "b"]);
  expect([placed(["a", "b", "c"], "a", "c"), placed(["a", "b", "c"], "c", "a"), placed(["a"], "x", "a")]).toEqual([["b", "c", "a"], ["c", "a", "b"], ["a"]]);
  const columns = ["a", "b", "c", "d"].map((key) => ({ key, label: key, text: () => "", hideable: key !== "d" }));
  const shown = shownColumns(columns, { hidden: new Set(["a", "d"]), pinned: new Set(["c"]), layout: {} });
  expect(shown.map((column) => column.key)).toEqual(["c", "b", "d"]);
});

test("one view of a name, and one that the list begins with", () => {
  const view = (name: string, isFirst: boolean): ListView => ({ name, isFirst, state: initial, layout: {} });
  const views = withView(withView([], view("b", true)), view("a", true));
  expect(views.map(({ name, isFirst }) => `${name}${isFirst}`)).toEqual(["atrue", "bfalse"]);
  expect(withView(views, view("a", false))).toHaveLength(2);
});

test("a file has all rows, however many, unless somebody cancels", async () => {
  const saved: Blob[] = [];
  vi.stubGlobal("document", { createElement: () => ({ click: () => undefined }) });
  vi.stubGlobal("URL", { createObjectURL: (blob: Blob) => (saved.push(blob), ""), revokeObjectURL: () => undefined });
  const columns = [{ label: "n", text: (n: number) => String(n) }];
  const source = (page: number) => Promise.resolve({ rows: Array.from({ length: 1_000 }, (_, n) => page * 1_000 + n), hasNext: page < 119, total: 120_000 });
  const told: string[] = [];
  await saveRows("all", columns, [source, source], { format: "csv", tell: (done, total) => told.push(`${done}/${total}`), signal: new AbortController().signal });
  expect(told.at(-1)).toBe("240000/240000");
  expect((await saved[0]?.text())?.split("\r\n")).toHaveLength(240_002);
  const controller = new AbortController();
  await saveRows("none", columns, [source], { format: "csv", tell: () => controller.abort(), signal: controller.signal });
  expect(saved).toHaveLength(1);
});

test("a file of another kind has the same rows", async () => {
  const saved: Blob[] = [];
  vi.stubGlobal("document", { createElement: () => ({ click: () => undefined }) });
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => (saved.push(blob as Blob), ""));
  const columns = [{ label: "Name", text: (row: string) => row }, { label: "Size", text: () => "5" }];
  const source = (page: number) => Promise.resolve({ rows: [`a${page}`, "=1"], hasNext: page === 0, total: 4 });
  const saving = { tell: () => undefined, signal: new AbortController().signal };
  await saveRows("all", columns, [source], { ...saving, format: "json" });
  expect(JSON.parse((await saved[0]?.text()) ?? "")).toEqual(["a0", "=1", "a1", "=1"].map((Name) => ({ Name, Size: "5" })));
  // Columns of one label are several all the same.
  expect(unlike(["A", "A (2)", "A", "B"])).toEqual(["A", "A (2)", "A (3)", "B"]);
  await saveRows("all", columns, [source], { ...saving, format: "xlsx" });
  expect(saved[1]?.type).toContain("spreadsheetml");
});

test("what is stored wrongly is left out", () => {
  expect([null, 7, [], "x"].map(readLayout)).toEqual([{}, {}, {}, {}]);
  expect(readLayout({ hidden: ["a", 7], widths: { a: 1, b: "x" }, order: {}, pinned: null })).toEqual({ hidden: ["a"], widths: { a: 48 } });
  const view = { name: "a", isFirst: false, state: { search: "", sorts: [{ key: "n", order: "ASC" }], filters: { x: "1" } }, layout: {} };
  expect(readViews([view, {}, { name: "b" }, null, { ...view, name: 7 }])).toEqual([view]);
  expect(readViews({ length: 3 })).toEqual([]);
});
