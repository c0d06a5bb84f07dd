// Links that people keep for themselves, in their settings on the server.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "@/api/client";
import { list, object } from "@/dashboard/json";
import { notify } from "@/ui/feedback";

/** Returns the links of a kind, undefined as long as nobody has kept any, and what keeps others. */
export function useLinks(kind: "QUICK_LINKS" | "DOC_LINKS"): { links: unknown[] | undefined; keep: (links: unknown[]) => void } {
  const cache = useQueryClient();
  const path = `/api/user/settings/${kind}`;
  const stored = useQuery({ queryKey: [path], queryFn: async () => object(await api.get(path)), retry: false });
  const links = stored.data?.["links"];
  const keep = (next: unknown[]): void => {
    cache.setQueryData([path], { ...stored.data, links: next });
    api.put(path, { links: next }).catch(notify.error);
  };
  return { links: links === undefined || links === null ? undefined : list(links), keep };
}
