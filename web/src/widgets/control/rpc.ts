// Commands to devices, and what their failures mean.

import { api, ApiError } from "@/api/client";
import { object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { messageOf } from "@/ui/feedback";
import type { RpcOptions } from "./settings";

export interface DeviceCall extends RpcOptions {
  params: unknown;
  twoWay: boolean;
}

/** The server waits at least this long for a device, milliseconds. */
const LEAST_TIMEOUT_MS = 5_000;
const UNFINISHED = ["QUEUED", "SENT", "DELIVERED"];

/** Returns why a request for a device or another entity failed, in words of what can be done. */
export function reasonOf(error: unknown, name: string, timeoutMs: number = LEAST_TIMEOUT_MS): string {
  if (!(error instanceof ApiError)) {
    return messageOf(error);
  }
  switch (error.status) {
    case 403:
      return t("You may not change {name}.", { name });
    case 404:
      return t("Does not exist any more: {name}", { name });
    case 406:
      return t("The answer of {name} is no JSON.", { name });
    case 408:
    case 504:
      return t("No answer within {n} s from {name}", { name, n: Math.round(Math.max(LEAST_TIMEOUT_MS, timeoutMs) / 1_000) });
    case 409:
      return t("Not connected: {name}", { name });
    case 429:
      return t("Too much was sent at once. Try it again in a moment.");
    default:
      return messageOf(error);
  }
}

/** Returns what a stored command has come to: its answer, an error, or nothing yet. */
export function outcomeOf(stored: Json, twoWay: boolean, name: string): { done: boolean; value?: unknown } {
  const status = text(stored["status"]) ?? "";
  if (status === "SUCCESSFUL" || (!twoWay && status === "DELIVERED")) {
    return { done: true, value: stored["response"] ?? undefined };
  }
  if (UNFINISHED.includes(status)) {
    return { done: false };
  }
  const words: Record<string, string> = {
    TIMEOUT: t("No answer to the command from {name}", { name }),
    EXPIRED: t("Not connected in time for the command: {name}", { name }),
    FAILED: t("The command could not be delivered to {name}.", { name }),
    DELETED: t("The command for {name} was deleted.", { name }),
  };
  const error = text(object(stored["response"])["error"]);
  throw new Error([words[status] ?? status, error].filter((part) => part !== undefined).join(" "));
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(new DOMException("", "AbortError"))), { once: true });
  });

/** Sends a command to a device and returns its answer. One that is stored is followed until it has come to an end. */
export async function callDevice(id: string, name: string, call: DeviceCall, signal: AbortSignal, onStored?: () => void): Promise<unknown> {
  signal.throwIfAborted();
  const { method, params, timeoutMs, persistent, pollingMs, twoWay } = call;
  const body = { method, params, timeout: timeoutMs, persistent };
  // The older path tells a device that is away from one that doesn't answer; the newer one doesn't.
  const path = `/api/plugins/rpc/${twoWay ? "twoway" : "oneway"}/${id}`;
  if (!persistent) {
    return await api.post<unknown>(path, body);
  }
  const { rpcId } = await api.post<{ rpcId: string }>(path, body);
  onStored?.();
  for (;;) {
    await pause(pollingMs, signal);
    const outcome = outcomeOf(await api.get<Json>(`/api/rpc/persistent/${rpcId}`), twoWay, name);
    if (outcome.done) {
      return outcome.value;
    }
  }
}
