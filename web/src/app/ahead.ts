// What the page of a dashboard needs, asked for at once and together instead of one after the other.

import type { QueryClient } from "@tanstack/react-query";
import { api } from "@/api/client";
import type { User } from "@/api/types";
import { currentClaims } from "@/api/session";
import { live } from "@/live/socket";
import { Dashboard } from "./routes";

/** Begins to load who uses this page; the dashboard that an address names, its screen and the live connection. Visitors have no session yet, so that they wait. */
export function loadAhead(queries: QueryClient, path: string, search: string): void {
  const claims = currentClaims();
  if (claims === undefined || claims.isPublic === true || new URLSearchParams(search).has("publicId")) {
    return;
  }
  const user = queries.fetchQuery({ queryKey: ["own user"], queryFn: () => api.get<User>("/api/auth/user") });
  const id = /^\/dashboards?\/([\w-]{36})$/.exec(path)?.[1];
  if (id === undefined) {
    // The shell asks again, and says what is wrong.
    user.catch(() => undefined);
    return;
  }
  const dashboard = queries.fetchQuery({ queryKey: ["dashboard", id], queryFn: () => api.get<{ configuration?: unknown }>(`/api/dashboard/${id}`) });
  // Its screen asks again where this fails, and says what is wrong.
  Dashboard.load().catch(() => undefined);
  live.prepare();
  // What draws, and values, are asked for before the screen is drawn: that takes the page a while, during which they come.
  Promise.all([dashboard, user, import("@/screens/dashboard/Dashboard")])
    .then(([{ configuration }, { additionalInfo }, { loadDashboard }]) =>
      loadDashboard(configuration, { search, width: innerWidth, height: innerHeight, units: additionalInfo?.unitSystem, language: navigator.language }),
    )
    // The screen asks again, and says what is wrong.
    .catch(() => undefined);
}
