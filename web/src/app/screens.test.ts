import { expect, test } from "vitest";
import { ROUTES } from "./routes";
import { SCREENS } from "./screens";

test("each route has its row in the table of screens and roles, and each row its route", () => {
  const rows = SCREENS.map(({ path }) => path);
  expect(Object.keys(ROUTES).filter((path) => !rows.includes(path))).toEqual([]);
  expect(rows.filter((path) => !(path in ROUTES))).toEqual([]);
  expect(new Set(rows).size).toBe(rows.length);
  expect(SCREENS.filter(({ roles }) => roles.length === 0)).toEqual([]);
});
