import { expect, test } from "vitest";
import { bringsLogIn, claimsOf, landingOf, loginPath, safeNext, withoutLogIn } from "./session";

test("the way back after a log-in stays on this site", () => {
  expect(safeNext("/entities/devices?x=1")).toBe("/entities/devices?x=1");
  for (const foreign of ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", null]) {
    expect(safeNext(foreign)).toBe("/");
  }
  expect(loginPath("/a?b=c")).toBe("/login?next=%2Fa%3Fb%3Dc");
  expect(loginPath("/home")).toBe("/login");
});

test("a log-in leads to an address of this site, whatever dots and tabs make of the path", () => {
  const origin = "https://here.example";
  expect(landingOf("/entities/devices?x=1#y", origin).href).toBe(`${origin}/entities/devices?x=1#y`);
  for (const foreign of ["/.//evil.example/x", "/x/..//evil.example/x", "/\t/evil.example/x", "//evil.example/x"]) {
    const { href } = landingOf(foreign, origin);
    expect(new URL(href, origin).origin).toBe(origin);
    expect(href.startsWith(`${origin}/`)).toBe(true);
  }
});

test("what a link brings to log in with is taken out of it, also out of the way back", () => {
  const origin = "https://here.example";
  const brought = "/dashboards/1?state=a%20b&accessToken=1&refreshToken=2&username=3&password=4";
  expect(bringsLogIn(new URL(brought, origin).searchParams)).toBe(true);
  expect(withoutLogIn(origin + brought).href).toBe(`${origin}/dashboards/1?state=a+b`);
  const login = withoutLogIn(origin + loginPath(brought));
  expect([login.pathname, login.searchParams.get("next")]).toEqual(["/login", "/dashboards/1?state=a+b"]);
  for (const kept of ["/dashboards/1?state=a%20b#c", "/login?next=/passwordResetLinkExpired", "/?publicId=1"]) {
    expect(withoutLogIn(origin + kept).href).toBe(origin + kept);
  }
});

test("claims are read from a token, and garbage is no session", () => {
  const payload = btoa(JSON.stringify({ userId: "7", sub: "a@b.c", scopes: ["TENANT_ADMIN"], exp: 9 }));
  expect(claimsOf(`x.${payload}.y`)?.scopes).toEqual(["TENANT_ADMIN"]);
  expect(claimsOf("garbage")).toBeUndefined();
  expect(claimsOf("a.%%%.b")).toBeUndefined();
});
