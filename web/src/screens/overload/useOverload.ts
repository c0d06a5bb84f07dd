// What is throttled or lags behind, as the server tells it.

import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import type { OverloadEntry, OverloadReport } from "@/api/schema.gen";
import { ask } from "@/api/typed";

export type { OverloadEntry };

/** Asks for the overload again and again; a server that doesn't tell it is asked no more. */
export function useOverload(everyMs: number, enabled = true): UseQueryResult<OverloadReport> {
  return useQuery({
    queryKey: ["overload"],
    enabled,
    queryFn: () => ask("GET /api/overload"),
    retry: false,
    refetchInterval: ({ state }) => (state.error instanceof ApiError && [403, 404].includes(state.error.status) ? false : everyMs),
  });
}
