// What a browser keeps of a dashboard that is edited, for whoever looks at it without the editor.

import type { Entity } from "@/api/types";
import type { Json } from "@/dashboard/json";

export interface StoredDashboard extends Entity {
  configuration: unknown;
  version: number;
}

export interface Draft {
  /** What the draft began with, and its version. */
  version: number;
  base: Json;
  configuration: Json;
}

export const draftKey = (user: string, id: string): string => `fieldline_dashboard_draft:${user}:${id}`;

export function draftOf(user: string, id: string): Draft | undefined {
  try {
    const draft = JSON.parse(localStorage.getItem(draftKey(user, id)) ?? "null") as Draft | null;
    return typeof draft?.configuration === "object" && typeof draft.base === "object" && typeof draft.version === "number" ? draft : undefined;
  } catch {
    return undefined;
  }
}
