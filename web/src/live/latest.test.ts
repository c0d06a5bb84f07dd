import { expect, test } from "vitest";
import { LatestValues } from "./latest";

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
