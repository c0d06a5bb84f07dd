// Modules of JavaScript that functions of dashboards name: resources of the tenant or the installation. Their text goes into the sandbox
// with the function and is imported there, never here.

import { api } from "@/api/client";
import { object, text } from "@/dashboard/json";
import { t } from "@/i18n";
import { messageOf, notify } from "@/ui/feedback";

/** A module as the sandbox gets it: the name that the function knows it by, and its text. */
export interface CodeModule {
  alias: string;
  source: string;
}

/** The most characters of one module. */
const LONGEST = 1_000_000;
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

const loaded = new Map<string, Promise<string>>();

async function load(path: string): Promise<string> {
  const source = await (await api.blob(path)).text();
  if (source.length > LONGEST) {
    throw new Error(`${path} is too long.`);
  }
  return source;
}

/** Loads the modules that code says it needs. Throws if one can't be had; it is asked for again the next time. */
export async function modulesIn(code: string): Promise<CodeModule[]> {
  return Promise.all(
    modulesOf(code).map(async ([alias, path]) => {
      const coming = loaded.get(path) ?? load(path);
      loaded.set(path, coming);
      try {
        return { alias, source: await coming };
      } catch (error) {
        loaded.delete(path);
        throw new Error(t("The module “{alias}” can't be had: {problem}", { alias, problem: messageOf(error) }), { cause: error });
      }
    }),
  );
}

const told = new Set<string>();

/** Says once for a dashboard that a module of its functions is missing: what they were to make is shown as it is stored. */
export function tellMissing(error: unknown): void {
  const message = messageOf(error);
  if (!told.has(message)) {
    told.add(message);
    notify.error(error);
  }
}

/** Forgets what was loaded, so that a module that was changed since is loaded anew. */
export function forgetModules(): void {
  loaded.clear();
  told.clear();
}
