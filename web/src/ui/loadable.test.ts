import { expect, test } from "vitest";
import { loadable } from "./loadable";

test("a part is loaded once, and asked for again where it could not be had", async () => {
  let asked = 0;
  const Part = loadable(async () => {
    asked += 1;
    if (asked === 1) {
      throw new Error("no connection");
    }
    return { default: () => null };
  });
  await expect(Part.load()).rejects.toThrow("no connection");
  await Promise.all([Part.load(), Part.load()]);
  await Part.load();
  expect(asked).toBe(2);
});
