import { expect, test } from "vitest";
import { ActionGate } from "./actionGate";

test("a frame acts only while somebody is doing something, and not without end", () => {
  let active = false;
  let now = 0;
  const gate = new ActionGate(() => active, () => now);
  expect(gate.passes()).toBe(false);
  active = true;
  expect(Array.from({ length: 25 }, () => gate.passes()).filter(Boolean)).toHaveLength(20);
  now = 10_000;
  expect(gate.passes()).toBe(true);
  active = false;
  expect(gate.passes()).toBe(false);
});
