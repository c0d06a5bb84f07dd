// Whether somebody else has saved what is edited here, before one's own save meets it.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "@/api/client";
import type { EntityVersion } from "@/api/schema.gen";
import type { PageData } from "@/api/types";

const EVERY_MS = 15_000;

/** A version that was saved elsewhere, and by whom. */
export interface Newer {
  version: number;
  by: string | undefined;
  /** Nothing more is said of this version. */
  dismiss: () => void;
}

/** Returns the newest version where it is not the one that is edited. It is asked for while the page is seen, and when somebody comes back to it. */
export function useNewer(path: string, edited: number, isSaving: boolean): Newer | undefined {
  const [dismissed, setDismissed] = useState(0);
  const { data } = useQuery({
    queryKey: ["newest version", path],
    queryFn: () => api.get<PageData<EntityVersion>>(path, { pageSize: 1, page: 0 }),
    refetchInterval: EVERY_MS,
    refetchOnWindowFocus: "always",
    gcTime: 0,
    // Without it, saving still finds out.
    retry: false,
  });
  const newest = data?.data[0];
  if (newest === undefined || isSaving || newest.version <= Math.max(edited, dismissed)) {
    return undefined;
  }
  return { version: newest.version, by: newest.userName ?? undefined, dismiss: () => setDismissed(newest.version) };
}
