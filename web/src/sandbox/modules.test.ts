import { expect, test } from "vitest";
import { bodyOf } from "@/dashboard/actions";
import { actionProgram } from "./program";
import { modulesOf, withModules } from "./moduleNames";

test("a body names the modules that it needs, wherever it is put", () => {
  const body = bodyOf({ body: "return a.x();", modules: { a: "tb-resource;/api/resource/js_module/tenant/a.js", b: "/api/resource/js_module/system/b.js" } }) ?? "";
  expect(body.endsWith("return a.x();")).toBe(true);
  expect(modulesOf(`wrapped((value) => { ${body} })`)).toEqual([["a", "/api/resource/js_module/tenant/a.js"], ["b", "/api/resource/js_module/system/b.js"]]);
  expect(bodyOf("return 1;")).toBe("return 1;");
  expect(bodyOf({ body: "return 1;", modules: {} })).toBe("return 1;");
});

test("what is no module, no name, or leads elsewhere is left out", () => {
  const links = ["https://example.org/a.js", "tb-resource;/api/resource/js_module/tenant/../../auth/user", "tb-resource;/api/auth/user", "tb-resource;/api/resource/js_module/other/a.js", "/api/resource/js_module/tenant/a.js?x=1", "/api/resource/js_module/tenant/*/a.js"];
  expect(modulesOf(withModules("x", Object.fromEntries(links.map((link, n) => [`m${n}`, link]))))).toEqual([]);
  expect(withModules("x", { "a-b": "/api/resource/js_module/tenant/a.js" })).toBe("x");
  expect(modulesOf('/*fieldline-modules {"a": "/api/auth/user"}*/ /*fieldline-modules {*/')).toEqual([]);
});

test("actions with modules are programs, too", () => {
  const modules = [{ alias: "tools", source: "export const a = '`${1}`';" }];
  for (const program of [actionProgram("tools.a", true, modules), actionProgram("tools.a", false, modules)]) {
    expect(() => new Function("ctx", "tools", program)).not.toThrow();
  }
});
