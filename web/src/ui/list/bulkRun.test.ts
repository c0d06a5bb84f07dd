import { expect, test } from "vitest";
import { runEach } from "./bulkRun";

const rows = Array.from({ length: 20 }, (_, n) => n);
const usual = { nameOf: (n: number) => `row ${n}`, reasonOf: (error: unknown) => (error as Error).message, tell: () => undefined };

test("each row is done once, and failures are counted by their reason", async () => {
  const done: number[] = [];
  const told: number[] = [];
  const outcome = await runEach(rows, {
    ...usual,
    act: async (n) => {
      await Promise.resolve();
      if (n % 2 === 0) {
        throw new Error(n === 0 ? "is gone" : "is used");
      }
      done.push(n);
    },
    tell: (over) => told.push(over),
    signal: new AbortController().signal,
  });
  expect(done.sort((a, b) => a - b)).toEqual(rows.filter((n) => n % 2 === 1));
  expect(told.at(-1)).toBe(20);
  expect(outcome).toEqual({
    done: 10, failed: 10, left: 0,
    reasons: [{ reason: "is used", count: 9, names: ["row 2", "row 4", "row 6", "row 8", "row 10"] }, { reason: "is gone", count: 1, names: ["row 0"] }],
  });
});

test("nothing is begun after somebody has cancelled", async () => {
  const controller = new AbortController();
  let begun = 0;
  const outcome = await runEach(rows, { ...usual, act: async () => void (++begun === 6 && controller.abort()), signal: controller.signal });
  expect(begun).toBeLessThan(12);
  expect(outcome).toMatchObject({ done: begun, failed: 0, left: 20 - begun });
});
