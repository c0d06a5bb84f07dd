import { expect, test, vi } from "vitest";
import { allow, allowedTo, isAllowed, placeOfCode, withdraw } from "./consent";

const stored = new Map<string, string>();
vi.stubGlobal("localStorage", { getItem: (key: string) => stored.get(key) ?? null, setItem: (key: string, value: string) => stored.set(key, value) });

test("consents to widgets of a dashboard stand side by side, are shown with it and go with it", async () => {
  expect(placeOfCode("ab")).not.toBe(placeOfCode("ba"));
  const board = { userId: "u", dashboardId: "d", code: "board\n" };
  const widget = (own: string) => ({ userId: "u", dashboardId: `d ${placeOfCode(own)}`, code: `board\n${own}` });
  expect(await allowedTo(board)).toBeUndefined();
  await allow(widget("ab"), "read");
  expect(await allowedTo(board)).toBe("read");
  await allow(widget("ba"), "change");
  expect(await isAllowed(widget("ab"), "read")).toBe(true);
  expect(await isAllowed(board, "read")).toBe(false);
  expect(await allowedTo(board)).toBe("change");
  expect(await allowedTo({ ...board, dashboardId: "other" })).toBeUndefined();
  withdraw(board);
  expect(await allowedTo(board)).toBeUndefined();
  expect(await isAllowed(widget("ba"), "read")).toBe(false);
});
