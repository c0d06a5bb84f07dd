import { expect, test } from "vitest";
import { grouped, limitText, subjectText, textsOf } from "./overload";
import type { OverloadEntry } from "./useOverload";

const entry = (given: Partial<OverloadEntry>): OverloadEntry => ({
  kind: "QUEUE_LAG", tenantId: null, tenantName: null, subject: "", since: 1, last: 1, active: false, count: 1, value: null, limit: null, unit: "", reason: "", ...given,
});

test("what concerns all stands before the tenants, and what goes on before what is over", () => {
  const groups = grouped([
    entry({ tenantId: { id: "t1" }, tenantName: "One", last: 9, reason: "over" }),
    entry({ tenantId: { entityType: "TENANT", id: "t1" }, active: true, last: 2, reason: "on" }),
    entry({ reason: "disk" }),
  ]);
  expect(groups.map(({ tenant, entries }) => [tenant, ...entries.map(({ reason }) => reason)])).toEqual([[null, "disk"], ["t1", "on", "over"]]);
});

test("each kind says what to do, by who reads it, and a new kind has its name", () => {
  expect(textsOf("RATE_LIMIT", true).advice).not.toBe(textsOf("RATE_LIMIT", false).advice);
  expect(textsOf("SOMETHING_NEW", true)).toEqual({ label: "SOMETHING_NEW", advice: "" });
});

test("limits are written as numbers, or as rates", () => {
  const text = (limit: string): string => limitText(limit, (n, s) => `${n}/${s}s`, String);
  expect([text("100:1,2000:60"), text("500"), text("7"), text("half")]).toEqual(["100/1s, 2000/60s", "500", "7", "half"]);
});

test("subjects are read in the language of the person, but for names that people gave", () => {
  const text = (kind: string, subject: string): string => subjectText({ kind, subject }, (word) => `<${word}>`);
  expect([text("RATE_LIMIT", "device: messages"), text("DISK", "journal"), text("MEMORY", "api.socket-memory")]).toEqual(["<device>: <messages>", "<journal>", "api.socket-memory"]);
  expect([text("QUEUE_LAG", "Default"), text("QUEUE_LAG", "messages")]).toEqual(["Default", "messages"]);
});
