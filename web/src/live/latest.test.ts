import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LatestValues } from "./latest";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("only those who look at a changed key are woken, and old values change nothing", () => {
  const values = new LatestValues();
  const woken: string[] = [];
  ["a", "b", ""].forEach((key) => values.watch(key, () => woken.push(key)));
  values.take({ data: { a: [[10, "1"]] } });
  expect(woken).toEqual(["a", ""]);
  values.take({ data: { a: [[9, "0"]], b: [] } });
  expect(woken).toEqual(["a", ""]);
  values.take({ data: { a: [[12, "3"], [11, "2"]] } });
  expect(values.value("a")).toEqual({ ts: 12, value: "3" });
  expect(values.history("a").map((point) => point.value)).toEqual(["1", "2", "3"]);
  expect(values.keys()).toEqual(["a"]);
});

test("what is stored comes before what has come, and an answer without values is one", () => {
  const values = new LatestValues();
  let woken = 0;
  values.watch("", () => (woken += 1));
  values.take({ data: {} });
  expect([values.answered(), woken]).toEqual([true, 1]);
  values.take({ data: { a: [[30, "3"]] } });
  values.precede("a", [{ ts: 30, value: "3" }, { ts: 20, value: "2" }, { ts: 10, value: "1" }]);
  values.take({ data: { a: [[40, "4"]] } });
  expect(values.history("a").map((point) => point.value)).toEqual(["1", "2", "3", "4"]);
  expect(values.value("a")).toEqual({ ts: 40, value: "4" });
  values.precede("a", Array.from({ length: 100 }, (_, n) => ({ ts: 9 - n, value: n })));
  expect(values.history("a")).toHaveLength(60);
  expect(values.history("a").at(-1)?.value).toBe("4");
});

test("a flood wakes nobody more than a few times a second, and its last value is seen", () => {
  const values = new LatestValues();
  let woken = 0;
  values.watch("a", () => (woken += 1));
  for (let ts = 1; ts <= 100; ts++) {
    values.take({ data: { a: [[ts, String(ts)]] } });
    vi.advanceTimersByTime(10);
  }
  vi.advanceTimersByTime(1_000);
  expect(woken).toBeGreaterThan(2);
  expect(woken).toBeLessThan(7);
  expect(values.value("a")?.value).toBe("100");
});
