import { expect, test } from "vitest";
import { limitOf } from "./limits";

test("limits of the tenant profile are named as its form names them", () => {
  expect(limitOf({ code: 1008, reason: "Max tenant sessions limit reached!" })).toMatchObject({ setting: "Sessions of the tenant", isOwn: false });
  expect(limitOf({ code: 1008, reason: "Max regular user subscriptions limit reached!" })).toMatchObject({ setting: "Subscriptions of a user", isOwn: true });
  expect(limitOf({ code: 1008, reason: "Max public user sessions limit reached!" })?.setting).toBe("Sessions of a public user");
});

test("limits of the server and of one message have words of their own", () => {
  const titles = [
    { code: 1009, reason: "" },
    { code: 1008, reason: "Max session subscriptions limit reached!" },
    { code: 1008, reason: "Max sessions limit reached!" },
    { code: 1008, reason: "Max pending updates limit reached!" },
    { code: 1008, reason: "The tenant holds its part of `api.socket-memory` (256 MiB): ask for less at a time, or later" },
    { code: 1008, reason: "Whatever comes later" },
  ].map((ending) => limitOf(ending)?.title);
  expect(new Set(titles).size).toBe(6);
  expect(titles).not.toContain(undefined);
  expect(limitOf({ code: 1008, reason: "Whatever comes later" })?.reason).toBe("Whatever comes later");
});

test("other ends are no limits", () => {
  for (const ending of [{ code: 1006, reason: "" }, { code: 1000, reason: "Session is no longer valid" }, { code: 1008, reason: "Authentication timeout" }, { code: 4500, reason: "Session not reliable" }]) {
    expect(limitOf(ending)).toBeUndefined();
  }
});
