// What a replay is asked for: a time, devices, and what is tried on them.

import type { EntityId } from "@/api/types";
import { formatTime, t } from "@/i18n";
import { ApiError } from "@/api/client";
import { messageOf } from "@/ui/feedback";
import { isObject, valueAt, type FormField, type FormValues } from "@/ui/form/values";

/** What is tried in the place of what is saved; parts of the request. */
export interface Tried {
  metadata?: unknown;
  alarmRules?: unknown;
  calculatedFields?: readonly unknown[];
}

export interface ReplayRequest extends Tried {
  startTs: number;
  endTs: number;
  deviceIds?: readonly string[];
  deviceProfileId?: EntityId;
  keys: readonly string[];
  alarmToleranceMs: number;
  limits: { devices: number; messages: number; timeMs: number; alarms: number };
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;
/** The most devices that the server takes, and alarms that it lists. */
const MOST_DEVICES = 1_000;
const MOST_ALARMS = 1_000;
const TOO_MANY_REQUESTS = 429;

/** Times up to now, hours. */
export const RANGES = [1, 6, 24, 168, 720] as const;
/** How long a replay may take, with the messages that it may have then; the last is the most that the server permits. */
const EFFORTS = [{ timeMs: 30_000, messages: 100_000 }, { timeMs: 120_000, messages: 500_000 }, { timeMs: 300_000, messages: 1_000_000 }] as const;

export function rangeLabel(hours: number): string {
  return hours < 48 ? t("last {n} hours", { n: hours }) : t("last {n} days", { n: hours / 24 });
}

/** The times of a range: the minute that has begun belongs to it, and inputs have no seconds. */
export function rangeOf(hours: number, now: number): FormValues {
  return { startTs: now - hours * HOUR_MS, endTs: now + MINUTE_MS };
}

/** Where the form begins: a day, and whatever its owner knows of devices. */
export function beginning(now: number, known: FormValues): FormValues {
  return { ...rangeOf(24, now), which: "all", deviceIds: [], keys: [], effort: String(EFFORTS[0].timeMs), toleranceSec: 1, ...known };
}

const isWhich = (which: string) => (values: FormValues): boolean => values["which"] === which;

/** The fields of the form. Names of series are offered, others can be typed. */
export function replayFields(keys: readonly string[], choosesChain: boolean): FormField[] {
  return [
    { name: "startTs", label: "From", type: "time", required: true },
    { name: "endTs", label: "To", type: "time", required: true },
    {
      name: "which", label: "Devices", type: "select", required: true,
      options: [{ value: "all", label: "All devices" }, { value: "profile", label: "Those of a profile" }, { value: "devices", label: "Chosen devices" }],
    },
    { name: "deviceProfileId", label: "Devices of the profile", type: "entity", list: "/api/deviceProfileInfos", required: true, when: isWhich("profile") },
    { name: "deviceIds", label: "Chosen devices", type: "entities", list: "DEVICE", when: isWhich("devices") },
    { name: "keys", label: "Series that devices sent", type: "texts", options: keys, help: "All that are stored where none is named. Leave out what the rule chain or a calculated field makes." },
    ...(choosesChain ? [{ name: "ruleChainId", label: "Rule chain that messages enter", type: "entity", list: "/api/ruleChains?type=CORE", required: true } satisfies FormField] : []),
    {
      name: "effort", label: "Ends at the latest after", type: "select", required: true,
      options: EFFORTS.map(({ timeMs, messages }) => ({ value: String(timeMs), label: t("{n} s or {messages} messages", { n: timeMs / SECOND_MS, messages }) })),
    },
    { name: "toleranceSec", label: "Alarms are the same within, s", type: "number" },
  ];
}

const timeOf = (values: FormValues, name: string): number => {
  const ts = values[name];
  return typeof ts === "number" ? ts : 0;
};

/** Returns why the form can't be sent yet, if so. */
export function missing(values: FormValues, choosesChain: boolean): string | undefined {
  const [from, to] = [timeOf(values, "startTs"), timeOf(values, "endTs")];
  if (from === 0 || to === 0) {
    return t("Choose both times.");
  }
  if (to <= from) {
    return t("The end must be after the beginning.");
  }
  if (values["which"] === "profile" && valueAt(values, "deviceProfileId.id") === undefined) {
    return t("Choose the profile whose devices are meant.");
  }
  if (values["which"] === "devices" && textsOf(values["deviceIds"]).length === 0) {
    return t("Choose a device.");
  }
  return choosesChain && valueAt(values, "ruleChainId.id") === undefined ? t("Choose the rule chain that messages enter.") : undefined;
}

export const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** Returns how long the replay may take, milliseconds. */
export function mostMs(values: FormValues): number {
  return (EFFORTS.find(({ timeMs }) => String(timeMs) === values["effort"]) ?? EFFORTS[0]).timeMs;
}

/** Makes the request of a form that lacks nothing. */
export function requestOf(values: FormValues, tried: Tried): ReplayRequest {
  const effort = EFFORTS.find(({ timeMs }) => timeMs === mostMs(values)) ?? EFFORTS[0];
  const profile = values["deviceProfileId"];
  const tolerance = Number(values["toleranceSec"] ?? 1);
  return {
    startTs: timeOf(values, "startTs"),
    endTs: timeOf(values, "endTs"),
    ...(values["which"] === "devices" ? { deviceIds: textsOf(values["deviceIds"]) } : {}),
    ...(values["which"] === "profile" && isObject(profile) ? { deviceProfileId: profile as unknown as EntityId } : {}),
    keys: textsOf(values["keys"]),
    alarmToleranceMs: Math.max(0, Math.round((Number.isFinite(tolerance) ? tolerance : 1) * SECOND_MS)),
    limits: { devices: MOST_DEVICES, messages: effort.messages, timeMs: effort.timeMs, alarms: MOST_ALARMS },
    ...tried,
  };
}

/** Says what was wrong, and what to do. */
export function problemOf(error: unknown): string {
  if (error instanceof ApiError && error.status === TOO_MANY_REQUESTS && /replay/i.test(error.message)) {
    return t("Two replays are running on this server already, which is the most. Try again when one of them has ended.");
  }
  if (error instanceof ApiError && /limits\.devices/.test(error.message)) {
    return t("A replay has at most {n} devices: choose a profile with fewer, or single devices.", { n: MOST_DEVICES });
  }
  return messageOf(error);
}

/** Says why a replay has ended early, and what to do. */
export function endedText(truncatedBy: string, endTs: number): string {
  const time = formatTime(endTs);
  switch (truncatedBy) {
    case "messages":
      return t("It ended at {time}: there are more messages. Choose a shorter time, fewer devices, or name the series.", { time });
    case "time":
      return t("It ended at {time}: it took too long. Let it take longer, or choose a shorter time or fewer devices.", { time });
    default:
      return t("It ended at {time}: a limit was reached. Choose a shorter time or fewer devices.", { time });
  }
}
