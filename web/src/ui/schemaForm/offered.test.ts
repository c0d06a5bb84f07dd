import { expect, test } from "vitest";
import { offered } from "./offered";

test("what is stored is offered, once, even if nobody knows it", () => {
  const known = { value: "A", label: "First" };
  expect(offered([known], ["A", "B", "", "B"])).toEqual([known, { value: "B", label: "B" }]);
});
