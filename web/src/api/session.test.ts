import { expect, test } from "vitest";
import { claimsOf, loginPath, safeNext } from "./session";

test("the way back after a log-in stays on this site", () => {
  expect(safeNext("/entities/devices?x=1")).toBe("/entities/devices?x=1");
  for (const foreign of ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", null]) {
    expect(safeNext(foreign)).toBe("/");
  }
  expect(loginPath("/a?b=c")).toBe("/login?next=%2Fa%3Fb%3Dc");
  expect(loginPath("/home")).toBe("/login");
});

test("claims are read from a token, and garbage is no session", () => {
  const payload = btoa(JSON.stringify({ userId: "7", sub: "a@b.c", scopes: ["TENANT_ADMIN"], exp: 9 }));
  expect(claimsOf(`x.${payload}.y`)?.scopes).toEqual(["TENANT_ADMIN"]);
  expect(claimsOf("garbage")).toBeUndefined();
  expect(claimsOf("a.%%%.b")).toBeUndefined();
});
