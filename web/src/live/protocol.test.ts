import { expect, test } from "vitest";
import { backOff, framesOf } from "./protocol";

test("commands go in frames of ten, the first one with the token", () => {
  const commands = Array.from({ length: 23 }, (_, n) => ({ type: "TIMESERIES", cmdId: n }));
  const frames = framesOf(commands, "secret") as { authCmd?: object; cmds: object[] }[];
  expect(frames.map((frame) => frame.cmds.length)).toEqual([10, 10, 3]);
  expect(frames.map((frame) => frame.authCmd !== undefined)).toEqual([true, false, false]);
  expect(framesOf([], "secret")).toHaveLength(1);
  expect(framesOf([])).toHaveLength(0);
});

test("the wait before a new connection doubles up to a minute", () => {
  expect([0, 1, 2, 10].map(backOff)).toEqual([1_000, 2_000, 4_000, 60_000]);
});
