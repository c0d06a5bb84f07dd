import { expect, test } from "vitest";
import { titleOf } from "./pageTitle";

test("a title begins with what is looked at, and says nothing twice", () => {
  expect(titleOf("Boiler 1", "Device")).toBe("Boiler 1 · Device · Fieldline");
  expect(titleOf(undefined, "Devices")).toBe("Devices · Fieldline");
  expect(titleOf("Home", "Home")).toBe("Home · Fieldline");
  expect(titleOf("", undefined)).toBe("Fieldline");
});
