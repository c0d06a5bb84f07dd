import { expect, test } from "vitest";
import { placeOf, recentClick } from "./lastClick";

test("a click is on a button, or at a point of a larger ground", () => {
  const button = { left: 10, top: 20, width: 30, height: 30 };
  const ground = { left: 0, top: 0, width: 800, height: 300 };
  expect(placeOf(button, { x: 12, y: 22 })).toEqual(button);
  expect(placeOf(ground, { x: 400, y: 100 })).toEqual({ left: 400, top: 100, width: 0, height: 0 });
  expect(placeOf(ground, undefined), "a key has no pointer").toEqual(ground);
  expect(recentClick()).toBeUndefined();
});
