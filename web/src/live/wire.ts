// What the page and the worker with its WebSocket tell each other, and how updates are gathered on the way.

import type { LiveUpdate } from "./protocol";

export type ToWorker = { type: "open"; url: string; frames: object[] } | { type: "send"; frames: object[] };

/** `lost` tells that a connection has ended, or could not be made. */
export type FromWorker = { type: "live" } | { type: "lost" } | { type: "updates"; updates: LiveUpdate[] };

/** The least time between two deliveries to the page, milliseconds: it draws no more often than ten times a second. */
export const GATHER_MS = 100;

/** Hands on what comes alone at once, and what comes fast together, in its order. */
export class UpdateGatherer {
  private waiting: LiveUpdate[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly deliver: (updates: LiveUpdate[]) => void) {}

  add(update: LiveUpdate): void {
    if (this.timer === undefined) {
      this.deliver([update]);
      this.timer = setTimeout(() => this.flush(), GATHER_MS);
    } else {
      this.waiting.push(update);
    }
  }

  private flush(): void {
    this.timer = undefined;
    if (this.waiting.length > 0) {
      const updates = this.waiting;
      this.waiting = [];
      this.deliver(updates);
      this.timer = setTimeout(() => this.flush(), GATHER_MS);
    }
  }
}
