// Which modules of JavaScript functions of dashboards name, by their aliases.

import { object, text } from "@/dashboard/json";

const LINK = /^(?:tb-resource;)?(\/api\/resource\/js_module\/(?:system|tenant)\/[^/?#\\]+)$/;
const ALIAS = /^[A-Za-z_$][\w$]*$/;
/** What a body begins with that needs modules. It is a comment, so that the body stays one for whoever doesn't read it. */
const MARK = /\/\*fieldline-modules (\{[^\n]*?\})\*\//g;

/** Returns a body that says which modules it needs, by their aliases. What names no module of JavaScript is left out. */
export function withModules(body: string, modules: unknown): string {
  const known = Object.entries(object(modules)).flatMap(([alias, link]) => {
    const [, path] = LINK.exec(text(link) ?? "") ?? [];
    return path === undefined || !ALIAS.test(alias) || path.includes("*/") ? [] : [[alias, path] as const];
  });
  return known.length === 0 ? body : `/*fieldline-modules ${JSON.stringify(Object.fromEntries(known))}*/ ${body}`;
}

/** Returns the modules that code says it needs, as pairs of alias and path, without any twice. */
export function modulesOf(code: string): [string, string][] {
  const found = [...code.matchAll(MARK)].flatMap(([, written]): [string, string][] => {
    try {
      const read: unknown = JSON.parse(written ?? "");
      return Object.entries(object(read)).flatMap(([alias, path]) => (typeof path === "string" && LINK.test(path) && ALIAS.test(alias) ? [[alias, path]] : []));
    } catch {
      return [];
    }
  });
  return [...new Map(found.map(([alias, path]) => [`${alias} ${path}`, [alias, path] as [string, string]])).values()];
}
