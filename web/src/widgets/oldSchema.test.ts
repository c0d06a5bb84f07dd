import { expect, test } from "vitest";
import type { FormField } from "@/ui/form/values";
import { withBeginnings } from "./forms";
import { schemaProperties } from "./oldSchema";
import { formOfType } from "./typeForm";

const SCHEMA = {
  schema: {
    type: "object",
    title: "Settings",
    properties: {
      title: { title: "Title", type: "string", default: "Hello", description: "Above all" },
      size: { title: "Size", type: ["number", "null"], minimum: 2, maximum: 40, default: 12 },
      shown: { type: "boolean", default: true },
      mode: { title: "Mode", type: "string", enum: ["a", "b"], enumNames: ["First", "Second"] },
      rank: { title: "Rank", type: "number", default: 1 },
      tags: { title: "Tags", type: "array", items: { type: "string" } },
      days: { title: "Days", type: "array", items: { type: "string", enum: ["mon", "tue"] } },
      lines: { title: "Lines", type: "array", items: { title: "Line", type: "object", properties: { color: { title: "Color", type: "string" }, width: { title: "Width", type: "number" } } } },
      matrix: { title: "Matrix", type: "array", items: { type: "array", items: { type: "number" } } },
      font: { title: "Font", type: "object", properties: { size: { title: "Size of the font", type: "number" } } },
      code: { title: "Code", type: "string", default: "return 1;" },
      anything: { title: "Anything" },
    },
    required: ["title"],
  },
  form: [
    "title",
    { key: "size", condition: "model.shown === true" },
    { key: "code", type: "javascript" },
    { key: "rank", type: "rc-select", multiple: false, items: [{ value: 1, label: "One" }, { value: 2, label: "Two" }] },
    { key: "lines", items: [{ key: "lines[].color", type: "color" }, "lines[].width"] },
    { type: "help", description: "<b>Words</b>" },
    "*",
  ],
};
const fieldsOf = (descriptor: object): readonly FormField[] => formOfType(descriptor as Record<string, unknown>)?.settings ?? [];
const field = (fields: readonly FormField[], name: string): FormField | undefined => fields.find((one) => one.name === name);

test("an old type has the form of its schema, in the order of its form", () => {
  const fields = fieldsOf({ settingsSchema: JSON.stringify(SCHEMA), settingsForm: [] });
  expect(fields.map(({ name, type }) => `${name} ${type}`)).toEqual([
    "title text", "size number", "code code", "rank choice", "lines rows", "shown boolean", "mode choice", "tags texts", "days choices", "matrix json", " heading", "font.size number", "anything json",
  ]);
  expect(field(fields, "title")).toMatchObject({ label: "Title", help: "Above all", required: true });
  expect(field(fields, "size")).toMatchObject({ least: 2, most: 40 });
  expect([{ shown: true }, { shown: false }].map((values) => field(fields, "size")?.when?.(values))).toEqual([true, false]);
  expect(field(fields, "rank")?.choicesOf?.({})).toEqual([{ value: 1, label: "One" }, { value: 2, label: "Two" }]);
  expect(field(fields, "mode")?.choicesOf?.({})).toEqual([{ value: "a", label: "First" }, { value: "b", label: "Second" }]);
  expect(field(fields, "days")?.choicesOf?.({}).map(({ value }) => value)).toEqual(["mon", "tue"]);
  expect(field(fields, "lines")?.fields?.map(({ name, type }) => [name, type])).toEqual([["color", "color"], ["width", "number"]]);
});

test("groups are headings, and paths go into objects", () => {
  const grouped = { schema: SCHEMA.schema, form: [["title"], ["font.size"]], groupInfoes: [{ formIndex: 0, GroupTitle: "Words" }, { formIndex: 1, GroupTitle: "Look" }] };
  const fields = fieldsOf({ settingsSchema: grouped });
  expect(fields.map(({ name, label, type }) => (type === "heading" ? label : name))).toEqual(["Words", "title", "Look", "font.size"]);
  const framed = schemaProperties({ schema: SCHEMA.schema, form: [{ type: "fieldset", title: "Frame", items: ["title", "code"] }] });
  expect(framed.map(({ id, group }) => [id, group])).toEqual([["title", "Frame"], ["code", "Frame"]]);
});

test("settings begin with what the schema says, and what it doesn't know stays", () => {
  const form = formOfType({ settingsSchema: SCHEMA, dataKeySettingsSchema: { schema: { type: "object", properties: { bold: { type: "boolean", default: true } } } } });
  if (form === undefined) {
    throw new Error("no form");
  }
  expect(withBeginnings(form, { title: "Own", rank: null, strange: { kept: 1 }, font: { family: "serif" } })).toMatchObject({ title: "Own", rank: null, size: 12, code: "return 1;", strange: { kept: 1 }, font: { family: "serif" } });
  expect(form).toMatchObject({ keys: [{ name: "bold", type: "boolean" }], newKey: { settings: { bold: true } } });
});

test("a form of today comes before a schema, and so does one that a program draws; nonsense is none", () => {
  expect(fieldsOf({ settingsForm: [{ id: "own", name: "Own", type: "text" }], settingsSchema: SCHEMA }).map(({ name }) => name)).toEqual(["own"]);
  expect(formOfType({ settingsDirective: "tb-own-settings", settingsSchema: SCHEMA })).toBeUndefined();
  expect([formOfType({ settingsSchema: "{" }), formOfType({ settingsSchema: "{}" }), formOfType({ settingsSchema: "" })]).toEqual([undefined, undefined, undefined]);
});
