import { expect, test } from "vitest";
import { Coming } from "./coming";

test("a part is loaded once, and asked for again where it could not be had", async () => {
  let asked = 0;
  const part = new Coming(async () => {
    asked += 1;
    if (asked === 1) {
      throw new Error("no connection");
    }
    return { default: () => null };
  });
  await expect(part.load()).rejects.toThrow("no connection");
  await Promise.all([part.load(), part.load()]);
  await part.load();
  expect(asked).toBe(2);
});
