import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DOUBT_MS, Heartbeat, PATIENCE_MS, SILENCE_MS } from "./heartbeat";

const told: string[] = [];
let pulse: Heartbeat;

beforeEach(() => {
  vi.useFakeTimers();
  told.length = 0;
  pulse = new Heartbeat({ ask: () => told.push("ask"), dead: () => told.push("dead") });
});
afterEach(() => void vi.useRealTimers());

test("a connection that values come through is not asked, a silent one is, and one that answers lives", () => {
  pulse.begin();
  pulse.opened();
  for (let n = 0; n < 10; n++) {
    vi.advanceTimersByTime(SILENCE_MS - 1);
    pulse.heard();
  }
  expect(told).toEqual([]);
  for (let n = 0; n < 10; n++) {
    vi.advanceTimersByTime(SILENCE_MS);
    vi.advanceTimersByTime(PATIENCE_MS - 1);
    pulse.heard();
  }
  expect(told).toEqual(Array.from({ length: 10 }, () => "ask"));
});

test("without an answer the connection is dead, once", () => {
  pulse.begin();
  pulse.opened();
  pulse.heard();
  vi.advanceTimersByTime(SILENCE_MS + PATIENCE_MS - 1);
  expect(told).toEqual(["ask"]);
  vi.advanceTimersByTime(1_000_000);
  expect(told).toEqual(["ask", "dead"]);
});

test("a doubt asks at once and waits less; while an answer is waited for, nothing is asked again", () => {
  pulse.begin();
  pulse.opened();
  pulse.heard();
  pulse.check();
  pulse.check();
  expect(told).toEqual(["ask"]);
  vi.advanceTimersByTime(DOUBT_MS);
  expect(told).toEqual(["ask", "dead"]);
});

test("a connection that can't be made is given up, sooner in doubt", () => {
  pulse.begin();
  vi.advanceTimersByTime(PATIENCE_MS);
  expect(told).toEqual(["dead"]);
  pulse.begin();
  pulse.check();
  vi.advanceTimersByTime(DOUBT_MS);
  expect(told).toEqual(["dead", "dead"]);
});

test("connections through which nothing came in time get more of it, until something comes", () => {
  const lifetime = (): number => {
    const before = told.filter((one) => one === "dead").length;
    pulse.begin();
    pulse.opened();
    let passed = 0;
    for (; told.filter((one) => one === "dead").length === before; passed += 1_000) {
      vi.advanceTimersByTime(1_000);
    }
    return passed;
  };
  expect([lifetime(), lifetime(), lifetime()]).toEqual([20_000, 30_000, 50_000]);
  Array.from({ length: 10 }, lifetime);
  expect(lifetime()).toBe(130_000);
  pulse.begin();
  pulse.opened();
  pulse.heard();
  pulse.end();
  expect(lifetime()).toBe(20_000);
});

test("an ended connection is neither asked nor dead", () => {
  pulse.begin();
  pulse.opened();
  pulse.end();
  pulse.heard();
  pulse.check();
  vi.advanceTimersByTime(1_000_000);
  expect(told).toEqual([]);
});
