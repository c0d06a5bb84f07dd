import { expect, test } from "vitest";
import type { Authority } from "@/api/types";
import { menuFor } from "./menu";

const paths = (authority: Authority): string[] => menuFor(authority).flatMap(({ items }) => items.map((item) => item.path));

test("a role is offered nothing that it can't use", () => {
  expect(paths("SYS_ADMIN")).toEqual(expect.arrayContaining(["/home", "/tenants", "/tenantProfiles"]));
  expect(paths("SYS_ADMIN")).not.toContain("/entities/devices");
  expect(paths("TENANT_ADMIN")).toEqual(expect.arrayContaining(["/entities/devices", "/customers", "/ruleChains"]));
  expect(paths("CUSTOMER_USER")).toContain("/entities/devices");
  for (const hidden of ["/customers", "/users", "/ruleChains", "/security-settings/auditLogs", "/tenants"]) {
    expect(paths("CUSTOMER_USER")).not.toContain(hidden);
  }
});
