import { expect, test } from "vitest";
import { FunctionResults } from "./functions";

test("results are kept up to a size, the oldest go first, and what is too large is not kept", async () => {
  let done = (): void => undefined;
  const runs: (() => void)[] = [];
  const results = new FunctionResults("{}", () => done(), async ({ calls }) => calls.map(([size]) => ({ value: "x".repeat(Number(size)) })), (run) => void runs.push(run), 1_000);
  const asked = async (...sizes: number[]): Promise<void> => {
    const told = new Promise<void>((resolve) => (done = resolve));
    sizes.forEach((size) => results.ask("b", ["size"], [size]));
    runs.shift()?.();
    await told;
  };
  const known = (size: number) => results.ask("b", ["size"], [size]);
  await asked(400);
  await asked(401);
  expect(known(400)).toMatchObject({ value: "x".repeat(400) });
  await asked(402);
  expect(known(401)).toBeDefined();
  expect(known(402)).toBeDefined();
  expect(known(400)).toBeUndefined();
  await asked(2_000);
  expect(known(2_000)).toEqual({ error: "too large" });
});
