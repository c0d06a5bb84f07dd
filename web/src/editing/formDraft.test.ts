import { describe, expect, test } from "vitest";
import type { FormField } from "@/ui/form/values";
import { changesOf, withChanges } from "./formDraft";

const FIELDS: readonly FormField[] = [
  { name: "", label: "A heading", type: "heading" },
  { name: "name", label: "Name" },
  { name: "info.description", label: "Description" },
  { name: "password", label: "Password", type: "password" },
  { name: "key", label: "Key", secret: true },
  { name: "tokenExpirationTime", label: "Seconds", type: "number" },
  { name: "accessToken", label: "Access token" },
  { name: "json", label: "JSON", type: "json" },
  { name: "rows", label: "Rows", type: "rows", keyed: "name", fields: [{ name: "pin", label: "PIN", secret: true }, { name: "auth.code", label: "Code", secret: true }, { name: "text", label: "Text" }] },
];

describe("what is kept of a form", () => {
  test("only what was changed, by its path", () => {
    const begun = { name: "Pump", info: { description: null }, tokenExpirationTime: 60, other: 1 };
    const values = { name: "Pump", info: { description: "in the cellar" }, tokenExpirationTime: 90, other: 2 };
    expect(changesOf(FIELDS, begun, values)).toEqual({ changes: { "info.description": "in the cellar", tokenExpirationTime: 90 }, withheld: false });
    expect(changesOf(FIELDS, begun, { ...begun, info: { description: "" } }).changes).toEqual({});
  });

  test("no secrets, wherever they stand", () => {
    const values = {
      name: "Pump",
      password: "s3cret-a",
      key: "s3cret-b",
      accessToken: "s3cret-c",
      json: { host: "h", credentials: { user: "s3cret-d" }, more: [{ clientSecret: "s3cret-e", port: 1 }] },
      rows: { token: { pin: "s3cret-f", auth: { code: "s3cret-g", kind: "plain" }, text: "seen" } },
    };
    const { changes, withheld } = changesOf(FIELDS, {}, values);
    expect(withheld).toBe(true);
    expect(JSON.stringify(changes)).not.toContain("s3cret");
    expect(changes).toEqual({ name: "Pump", json: { host: "h", more: [{ port: 1 }] }, rows: { token: { auth: { kind: "plain" }, text: "seen" } } });
  });
});

describe("what is brought back", () => {
  test("onto what is stored by now", () => {
    const now = { name: "Pump", info: { description: "theirs", kept: true }, tokenExpirationTime: 30 };
    expect(withChanges(FIELDS, now, { name: "Mine", gone: "no field any more" })).toEqual({ ...now, name: "Mine" });
    expect(withChanges(FIELDS, now, { "info.description": "mine" })).toEqual({ ...now, info: { description: "mine", kept: true } });
  });

  test("with the secrets that are stored, so that saving doesn't delete them", () => {
    const stored = { json: { host: "old", credentials: { user: "u" }, more: [{ clientSecret: "e", port: 1 }] } };
    const changes = { json: { host: "new", more: [{ port: 2 }] } };
    expect(withChanges(FIELDS, stored, changes)).toEqual({ json: { host: "new", credentials: { user: "u" }, more: [{ clientSecret: "e", port: 2 }] } });
  });

  test("without rows that were deleted, whatever their keys are called, and with the secrets of those that stay", () => {
    const stored = { rows: { token: { text: "deleted" }, other: { pin: "1", auth: { code: "2", kind: "plain" }, text: "old" } } };
    const { changes } = changesOf(FIELDS, stored, { rows: { other: { ...stored.rows.other, text: "new" } } });
    expect(JSON.stringify(changes)).not.toContain("pin");
    expect(withChanges(FIELDS, stored, changes)).toEqual({ rows: { other: { pin: "1", auth: { code: "2", kind: "plain" }, text: "new" } } });
  });
});
