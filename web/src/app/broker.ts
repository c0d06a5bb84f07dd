// Whether the publish/subscribe broker runs. The server says so to system administrators alone, and it doesn't change until it is started anew.

import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { ask } from "@/api/typed";
import { useSession } from "./session";

async function runs(): Promise<boolean> {
  try {
    await ask("GET /api/client-session/info");
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) {
      return false;
    }
    throw error;
  }
}

export function useBroker(): UseQueryResult<boolean> {
  const { authority } = useSession();
  return useQuery({ queryKey: ["broker"], enabled: authority === "SYS_ADMIN", queryFn: runs, staleTime: Infinity, gcTime: Infinity });
}
