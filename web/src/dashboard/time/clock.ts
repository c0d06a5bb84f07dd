// The server's clock. Windows end at its present moment, not at that of a browser whose clock is wrong.

import { api } from "@/api/client";

/** Smaller differences are none, milliseconds; neither are those that a slow answer alone can make. */
const LEAST_MS = 1_000;

let difference = 0;
let asked: Promise<void> | undefined;
const listeners = new Set<() => void>();

/** Returns the present moment of the server. */
export function serverNow(): number {
  return Date.now() + difference;
}

/** Takes in what the server's clock showed between two moments of the browser's. */
export function setClock(shown: number, before: number, after: number): void {
  const found = shown - (before + after) / 2;
  const next = Math.abs(found) < Math.max(LEAST_MS, (after - before) / 2) ? 0 : Math.round(found);
  if (next !== difference) {
    difference = next;
    listeners.forEach((listener) => listener());
  }
}

/** Asks once for the server's clock. Without an answer the browser's own counts. */
export function compareClocks(): void {
  const before = Date.now();
  asked ??= api.get<number>("/api/dashboard/serverTime").then(
    (shown) => setClock(Number(shown), before, Date.now()),
    () => undefined,
  );
}

export function watchClock(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const clockDifference = (): number => difference;
