import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { UpdateGatherer } from "./wire";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("an update alone comes at once, a flood ten times a second and in its order", () => {
  const deliveries: number[][] = [];
  const gatherer = new UpdateGatherer((updates) => deliveries.push(updates.map((update) => update.cmdId ?? -1)));
  gatherer.add({ cmdId: 1 });
  expect(deliveries).toEqual([[1]]);
  gatherer.add({ cmdId: 2 });
  gatherer.add({ cmdId: 3 });
  expect(deliveries).toHaveLength(1);
  vi.advanceTimersByTime(100);
  expect(deliveries).toEqual([[1], [2, 3]]);
  vi.advanceTimersByTime(100);
  gatherer.add({ cmdId: 4 });
  expect(deliveries).toEqual([[1], [2, 3], [4]]);
});

test("what waits is handed on before a long frame, and once", () => {
  const deliveries: number[][] = [];
  const gatherer = new UpdateGatherer((updates) => deliveries.push(updates.map((update) => update.cmdId ?? -1)));
  gatherer.add({ cmdId: 1 });
  gatherer.add({ cmdId: 2 });
  gatherer.hurry();
  gatherer.hurry();
  expect(deliveries).toEqual([[1], [2]]);
  vi.advanceTimersByTime(200);
  gatherer.add({ cmdId: 3 });
  expect(deliveries).toEqual([[1], [2], [3]]);
});
