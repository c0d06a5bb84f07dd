// Views of a list that somebody has named: what is searched, sorted and filtered, and how its columns are arranged. The server keeps
// them with the general settings of the person, below `lists`.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "@/api/client";
import { list, object, text } from "@/dashboard/json";
import { readLayout, type Layout } from "../grid/columns";
import type { GridSort } from "../grid/sorting";
import type { ListState } from "./state";

export interface ListView {
  name: string;
  state: ListState;
  layout: Layout;
  /** Whether the list begins with it. */
  isFirst?: boolean;
}

/** Most views of a list, and most characters of a name. */
export const MOST_VIEWS = 30;
export const LONGEST_NAME = 60;

/** What is stored, by whomever. */
interface Settings {
  lists?: Record<string, unknown>;
}

const PATH = "/api/user/settings";
const QUERY = ["user settings"];

/** Reads stored views; what isn't one is left out. */
export function readViews(value: unknown): ListView[] {
  return list(value).flatMap((stored): ListView[] => {
    const view = object(stored);
    const state = object(view["state"]);
    const [name, filters] = [text(view["name"]), Object.entries(object(state["filters"]))];
    const sorts = list(state["sorts"]).map(object).flatMap((sort): GridSort[] => {
      const key = text(sort["key"]);
      return key === undefined ? [] : [{ key, order: sort["order"] === "ASC" ? "ASC" : "DESC" }];
    });
    if (name === undefined || sorts.length === 0) {
      return [];
    }
    const known = Object.fromEntries(filters.flatMap(([key, one]) => (typeof one === "string" ? [[key, one] as const] : [])));
    return [{ name, state: { search: text(state["search"]) ?? "", sorts, filters: known }, layout: readLayout(view["layout"]), isFirst: view["isFirst"] === true }];
  });
}

/** Returns views with one added, or put in place of that of the same name; only one begins the list. */
export function withView(views: readonly ListView[], view: ListView): ListView[] {
  const others = views.filter((one) => one.name !== view.name).map((one) => (view.isFirst === true ? { ...one, isFirst: false } : one));
  return [...others, view].sort((a, b) => a.name.localeCompare(b.name));
}

export interface Views {
  views: readonly ListView[];
  isLoaded: boolean;
  save: (view: ListView) => Promise<void>;
  remove: (name: string) => Promise<void>;
}

/** Loads the views of a list and changes them; without a name a list has none. */
export function useViews(named: string | undefined): Views {
  const cache = useQueryClient();
  const loaded = useQuery({ queryKey: QUERY, enabled: named !== undefined, staleTime: 60_000, queryFn: () => api.get<Settings>(PATH) });
  const read = (settings: Settings | undefined): readonly ListView[] => (named === undefined ? [] : readViews(settings?.lists?.[named]));
  const change = async (made: (views: readonly ListView[]) => ListView[]): Promise<void> => {
    if (named === undefined) {
      return;
    }
    // Another window may have changed them since.
    const now = await api.get<Settings>(PATH);
    await api.put(PATH, { [`lists.${named}`]: made(read(now)) });
    await cache.invalidateQueries({ queryKey: QUERY });
  };
  return {
    views: read(loaded.data),
    isLoaded: named === undefined || !loaded.isPending,
    save: (view) => change((views) => withView(views, view)),
    remove: (name) => change((views) => views.filter((one) => one.name !== name)),
  };
}
