// How the pages can look, and how one leaves them: for the menu of the user and for the palette.

import { useSyncExternalStore } from "react";
import { api } from "@/api/client";
import { clearTokens } from "@/api/session";

export const SCHEMES = { light: "Light", dark: "Dark", auto: "As the system" } as const;
export const CONTRASTS = { normal: "Normal contrast", high: "High contrast" } as const;
export const DIRECTIONS = { ltr: "Left to right", rtl: "Right to left" } as const;
export const DENSITIES = { comfortable: "Comfortable", dense: "Dense" } as const;

export const entries = <K extends string>(choices: Record<K, string>): [K, string][] => Object.entries(choices) as [K, string][];

/** Lets the pages have the whole screen, or gives it back. Browsers refuse it to frames of others. */
export function toggleFullScreen(): void {
  void (document.fullscreenElement === null ? document.documentElement.requestFullscreen() : document.exitFullscreen()).catch(() => undefined);
}

function hearFullScreen(hear: () => void): () => void {
  document.addEventListener("fullscreenchange", hear);
  return () => document.removeEventListener("fullscreenchange", hear);
}

export const useIsFullScreen = (): boolean => useSyncExternalStore(hearFullScreen, () => document.fullscreenElement !== null);

export async function logOut(): Promise<void> {
  await api.post("/api/auth/logout").catch(() => undefined);
  clearTokens();
  location.assign("/login");
}
