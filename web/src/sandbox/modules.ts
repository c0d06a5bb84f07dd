// Modules of JavaScript that functions of dashboards name: resources of the tenant or the installation. Their text goes into the sandbox
// with the function and is imported there, never here.

import { api } from "@/api/client";
import { t } from "@/i18n";
import { messageOf, notify } from "@/ui/feedback";
import { modulesOf } from "./moduleNames";

/** A module as the sandbox gets it: the name that the function knows it by, and its text. */
export interface CodeModule {
  alias: string;
  source: string;
}

/** The most characters of one module. */
const LONGEST = 1_000_000;
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
