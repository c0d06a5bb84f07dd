// Whether the publish/subscribe broker runs, which doesn't change until the server is started anew. Its administration is for system administrators.

import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { ask } from "@/api/typed";
import { useSession } from "./session";

export function useBroker(): UseQueryResult<boolean> {
  const { authority } = useSession();
  return useQuery({
    queryKey: ["system params"],
    queryFn: () => ask("GET /api/system/params"),
    select: ({ hasMqttBroker }) => hasMqttBroker,
    enabled: authority === "SYS_ADMIN",
    staleTime: Infinity,
    retry: false,
  });
}
