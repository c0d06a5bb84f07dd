// Whether this browser tells of new alarms, which people choose: neither by itself.

import { useSyncExternalStore } from "react";

export interface NoticeSettings {
  sound: boolean;
  browser: boolean;
}

const STORED = "fieldline_alarm_notices";
const listeners = new Set<() => void>();

function load(): NoticeSettings {
  const chosen = localStorage.getItem(STORED) ?? "";
  return { sound: chosen.includes("sound"), browser: chosen.includes("browser") };
}

let current = load();

export function chooseNotices(next: NoticeSettings): void {
  current = next;
  localStorage.setItem(STORED, [next.sound ? "sound" : "", next.browser ? "browser" : ""].join(" ").trim());
  listeners.forEach((listener) => listener());
}

export function useNoticeSettings(): NoticeSettings {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
