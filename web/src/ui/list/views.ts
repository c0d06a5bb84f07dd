// Views of a list that somebody has named: what is searched, sorted and filtered, and how its columns are arranged. The server keeps
// them with the general settings of the person, below `lists`.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "@/api/client";
import type { Layout } from "../grid/columns";
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

interface Settings {
  lists?: Record<string, ListView[]>;
}

const PATH = "/api/user/settings";
const QUERY = ["user settings"];

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
export function useViews(list: string | undefined): Views {
  const cache = useQueryClient();
  const loaded = useQuery({ queryKey: QUERY, enabled: list !== undefined, staleTime: 60_000, queryFn: () => api.get<Settings>(PATH) });
  const read = (settings: Settings | undefined): readonly ListView[] => (list === undefined ? [] : (settings?.lists?.[list] ?? []));
  const change = async (made: (views: readonly ListView[]) => ListView[]): Promise<void> => {
    if (list === undefined) {
      return;
    }
    // Another window may have changed them since.
    const now = await api.get<Settings>(PATH);
    await api.put(PATH, { [`lists.${list}`]: made(read(now)) });
    await cache.invalidateQueries({ queryKey: QUERY });
  };
  return {
    views: read(loaded.data),
    isLoaded: list === undefined || !loaded.isPending,
    save: (view) => change((views) => withView(views, view)),
    remove: (name) => change((views) => views.filter((one) => one.name !== name)),
  };
}
