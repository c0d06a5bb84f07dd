import { expect, test } from "vitest";
import { carried, within } from "./frames";
import type { ChainDocument, Remark } from "./model";

const node = (key: string, layoutX: number, layoutY: number) => ({ key, stored: { type: "Known", name: key, additionalInfo: { layoutX, layoutY } } });
const remark = (key: string, kind: Remark["kind"], x: number, y: number, width: number, height: number): Remark => ({ key, kind, text: key, x, y, width, height });
const chain: ChainDocument = {
  nodes: [node("in", 100, 100), node("half", 390, 100), node("out", 900, 100)],
  wires: [],
  first: undefined,
  remarks: [remark("frame", "frame", 0, 0, 500, 300), remark("inner", "frame", 80, 80, 300, 100), remark("note", "note", 20, 200, 100, 60), remark("aside", "note", 900, 300, 100, 60)],
};

test("a frame holds what has its middle within it, and a note holds nothing", () => {
  expect(within(chain, "frame")).toEqual(["in", "half", "inner", "note"]);
  expect(within(chain, "inner")).toEqual(["in"]);
  expect(within(chain, "note")).toEqual([]);
  expect(within(chain, "in")).toEqual([]);
});

test("a moved frame carries what it holds by the same way, once", () => {
  expect(Object.fromEntries(carried(chain, new Map([["frame", { x: 10, y: -20 }]])))).toEqual({
    frame: { x: 10, y: -20 },
    in: { x: 110, y: 80 },
    half: { x: 400, y: 80 },
    inner: { x: 90, y: 60 },
    note: { x: 30, y: 180 },
  });
  // What was selected with the frame has been moved already.
  expect(carried(chain, new Map([["frame", { x: 10, y: 0 }], ["inner", { x: 90, y: 80 }], ["in", { x: 110, y: 100 }]])).get("in")).toEqual({ x: 110, y: 100 });
  expect([...carried(chain, new Map([["in", { x: 0, y: 0 }]])).keys()]).toEqual(["in"]);
});
