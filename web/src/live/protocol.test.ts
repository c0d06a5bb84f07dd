import { expect, test } from "vitest";
import { backOff, framesOf, isSendable } from "./protocol";

test("commands go in frames of ten, the first one with the token", () => {
  const commands = Array.from({ length: 23 }, (_, n) => ({ type: "TIMESERIES", cmdId: n }));
  const frames = framesOf(commands, "secret") as { authCmd?: object; cmds: object[] }[];
  expect(frames.map((frame) => frame.cmds.length)).toEqual([10, 10, 3]);
  expect(frames.map((frame) => frame.authCmd !== undefined)).toEqual([true, false, false]);
  expect(framesOf([], "secret")).toHaveLength(1);
  expect(framesOf([])).toHaveLength(0);
});

test("the wait before a new connection doubles up to a minute", () => {
  expect([0, 1, 2, 10].map((attempt) => backOff(attempt, 1))).toEqual([1_000, 2_000, 4_000, 60_000]);
  expect([0, 10].map((attempt) => backOff(attempt, 0))).toEqual([500, 30_000]);
});

test("no frame is longer than the server takes", () => {
  const commands = Array.from({ length: 6 }, (_, n) => ({ type: "ENTITY_DATA", cmdId: n, keys: "ü".repeat(6_000) }));
  const frames = framesOf(commands, "secret") as { cmds: object[] }[];
  expect(frames.map((frame) => frame.cmds.length)).toEqual([2, 2, 2]);
  expect(frames.every((frame) => new TextEncoder().encode(JSON.stringify(frame)).length < 32 << 10)).toBe(true);
  expect([isSendable({ type: "A", keys: "ü".repeat(15_000) }), isSendable({ type: "A", keys: "ü".repeat(17_000) })]).toEqual([true, false]);
});
