import { expect, test } from "vitest";
import type { User } from "@/api/types";
import { beginOf, detourOf } from "./begin";

const user = (additionalInfo: User["additionalInfo"], authority: User["authority"] = "CUSTOMER_USER"): User => ({ id: { entityType: "USER", id: "u" }, authority, email: "a@b.c", additionalInfo: additionalInfo ?? null });

test("a person begins at the dashboard that was chosen for them, and may be given that alone", () => {
  expect(beginOf(user(null))).toBe("/home");
  expect(beginOf(user({ defaultDashboardId: "d1" }))).toBe("/dashboards/d1");
  expect(beginOf(user({ defaultDashboardId: "d1" }, "SYS_ADMIN"))).toBe("/home");
  expect(beginOf(user({ defaultDashboardId: "../../evil" }))).toBe("/home");
  const only = user({ defaultDashboardId: "d1", defaultDashboardFullscreen: true });
  expect(beginOf(only)).toBe("/dashboard/d1");
  expect(detourOf(only, "/entities/devices")).toBe("/dashboard/d1");
  expect(detourOf(only, "/dashboard/other")).toBeUndefined();
  expect(detourOf(only, "/account/security")).toBeUndefined();
  expect(detourOf(user({ defaultDashboardId: "d1" }), "/entities/devices")).toBeUndefined();
});
