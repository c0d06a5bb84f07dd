// Where a person begins: at home, or at the dashboard that an administrator has chosen for them.

import type { User } from "@/api/types";

/** Paths of a dashboard alone, without menu. */
export const BARE = /^\/dashboard\//;
/** What one may open besides the only dashboard: the own account. */
const FREE = /^\/account\//;

function chosenOf({ authority, additionalInfo }: User): string | undefined {
  const id = authority === "SYS_ADMIN" ? undefined : additionalInfo?.defaultDashboardId;
  return typeof id === "string" && /^[\w-]+$/.test(id) ? id : undefined;
}

/** Returns the path of the only screen that a user is given, if there is such a one. */
export function onlyOf(user: User): string | undefined {
  const id = chosenOf(user);
  return id !== undefined && user.additionalInfo?.defaultDashboardFullscreen === true ? `/dashboard/${id}` : undefined;
}

/** Returns the path at which a user begins. */
export function beginOf(user: User): string {
  const id = chosenOf(user);
  return onlyOf(user) ?? (id === undefined ? "/home" : `/dashboards/${id}`);
}

/** Returns where a user is sent instead of a path that is not open to them. */
export function detourOf(user: User, path: string): string | undefined {
  const only = onlyOf(user);
  return only === undefined || BARE.test(path) || FREE.test(path) ? undefined : only;
}
