import { expect, test } from "vitest";
import { errorFrom } from "@/api/client";
import { usersOf } from "./DeleteUsed";

test("who uses a file is read from the refusal to delete it, and other refusals name nobody", () => {
  const one = { id: { entityType: "DASHBOARD", id: "d" }, name: "Plant" };
  expect(usersOf(errorFrom(400, JSON.stringify({ success: false, references: { DASHBOARD: [one], WIDGET_TYPE: [] } })))).toEqual([one]);
  expect(usersOf(errorFrom(403, JSON.stringify({ message: "no" })))).toBeUndefined();
  expect(usersOf(errorFrom(400, JSON.stringify({ references: null })))).toBeUndefined();
  expect(usersOf(new Error("offline"))).toBeUndefined();
});
