import { expect, test } from "vitest";
import { actionsFor, matches, type Looks } from "./actions";

const now: Looks = { scheme: "light", contrast: "normal", density: "comfortable", direction: "ltr", language: "en" };
const labels = (authority: Parameters<typeof actionsFor>[0]): string[] => actionsFor(authority, now, () => undefined).map(({ label }) => label);

test("a role is offered what it may do", () => {
  expect(labels("TENANT_ADMIN")).toEqual(expect.arrayContaining(["Add: Device", "Add: Dashboard", "Add: Rule chain", "Appearance: Dark", "Appearance: Dense", "Full screen", "Log out"]));
  expect(labels("TENANT_ADMIN")).not.toContain("Add: Tenant");
  expect(labels("SYS_ADMIN")).toContain("Add: Tenant");
  expect(labels("SYS_ADMIN")).not.toContain("Add: Device");
  expect(labels("CUSTOMER_USER").filter((label) => label.startsWith("Add"))).toEqual([]);
  expect(labels("CUSTOMER_USER")).toContain("Log out");
});

test("what holds already is not offered, and all words of a search count", () => {
  expect(labels("TENANT_ADMIN")).not.toContain("Appearance: Light");
  expect(matches("dev add", "Add: Device new")).toBe(true);
  expect(matches("new chain", "Add: Rule chain new create")).toBe(true);
  expect(matches("new pump", "Add: Rule chain new create")).toBe(false);
});
