// Whether a node keeps messages as debug events, for how long, and which choices there are.

import { t } from "@/i18n";
import { isRecord, type Json } from "@/ruleChain/model";

export type DebugMode = "all" | "failures" | "off";

/** How long all messages can be kept from saving on; the tenant profile may allow less. */
const MINUTES = [5, 15, 60] as const;
const MINUTE_MS = 60_000;

/** Whether a node stores all or failed messages as debug events at present. */
export function debugOf(settings: unknown, now = Date.now()): DebugMode {
  const { allEnabled, allEnabledUntil, failuresEnabled } = isRecord(settings) ? settings : {};
  return allEnabled === true || Number(allEnabledUntil ?? 0) > now ? "all" : failuresEnabled === true ? "failures" : "off";
}

/** How many minutes all messages are kept yet, those that have begun included; `undefined` where none is told. */
export function minutesLeft(settings: unknown, now = Date.now()): number | undefined {
  const until = Number(isRecord(settings) ? (settings["allEnabledUntil"] ?? 0) : 0);
  return until > now ? Math.ceil((until - now) / MINUTE_MS) : undefined;
}

/** What debug can be set to; what a node has at present is called by `present`. */
export function debugChoices(mode: DebugMode, present: string): { value: string; label: string }[] {
  return [
    { value: "off", label: t("none") },
    { value: "failures", label: t("failures only") },
    ...MINUTES.map((n) => ({ value: String(n), label: t("all for {n} minutes", { n }) })),
    ...(mode === "all" ? [{ value: "all", label: present }] : []),
  ];
}

/** Returns the settings of a choice; `undefined` for the one that changes nothing. */
export function debugSettings(choice: string, now = Date.now()): Json | undefined {
  const minutes = Number(choice);
  return choice === "all" ? undefined : { failuresEnabled: choice !== "off", allEnabled: false, allEnabledUntil: minutes > 0 ? now + minutes * MINUTE_MS : 0 };
}
