import { expect, test } from "vitest";
import { typesOf } from "../../scripts/apiTypes.mjs";
import { pathOf } from "./typed";

test("names in braces are filled each as one part of the path", () => {
  expect(pathOf("PUT /api/apiKey/{apiKeyId}/enabled/{enabledValue}", { apiKeyId: "a/b", enabledValue: true })).toBe("/api/apiKey/a%2Fb/enabled/true");
});

const description = {
  components: {
    schemas: {
      ThingId: { type: "object", required: ["id"], properties: { entityType: { type: "string" }, id: { type: "string" } } },
      Thing: { type: "object", properties: { id: { oneOf: [{ $ref: "#/components/schemas/ThingId" }, { type: "null" }] }, kind: { $ref: "#/components/schemas/Kind" }, note: { type: ["string", "null"] }, info: {}, parts: { type: "array", items: { type: "number" } } } },
      Kind: { type: "string", enum: ["A", "B"] },
      PageData_Thing: { type: "object" },
      Unused: { type: "object" },
    },
  },
  paths: { "/api/things": { get: { responses: { 200: { content: { "application/json": { schema: { $ref: "#/components/schemas/PageData_Thing" } } } } } }, delete: { responses: { 200: {} } } } },
};

test("types are made of what answers use, pages and ids are ours, and what may be null may be absent", () => {
  const text = typesOf(description);
  expect(text).toContain("export type Thing = { id: EntityId; kind: Kind; note?: string | null; info?: unknown; parts: number[] };");
  expect(text).toContain('export type Kind = "A" | "B";');
  expect(text).toContain('"GET /api/things": PageData<Thing>;');
  expect(text).toContain('"DELETE /api/things": undefined;');
  expect(text).not.toContain("Unused");
  expect(typesOf(description)).toBe(text);
});
