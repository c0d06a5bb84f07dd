// What the page and the worker with its WebSocket tell each other, and how updates are gathered on the way.

import type { Ending } from "./limits";
import type { LiveUpdate } from "./protocol";

/** `check` asks the server for a sign of life. */
export type ToWorker = { type: "open"; url: string; frames: object[] } | { type: "send"; frames: object[] } | { type: "close" } | { type: "check" };

/**
 * `lost` tells that a connection has ended, or could not be made, since when nothing has come, and what its close frame said; `text` is one update that is
 * not decoded.
 */
export type FromWorker = { type: "live" } | { type: "lost"; since: number; ending?: Ending } | { type: "updates"; updates: LiveUpdate[] } | { type: "text"; text: string };

/** A frame of so many characters is decoded by the page: handing over what the worker made of it would take longer than decoding it. */
export const LONG_FRAME = 100_000;

/** The least time between two deliveries to the page in a flood, milliseconds: it draws no more often than ten times a second. */
export const GATHER_MS = 100;
/** The same for the first answers after a pause, which somebody waits for. */
const QUICK_MS = 16;
/** So many deliveries after a pause are quick. */
const QUICK = 6;

/** Hands on what comes alone at once, and what comes fast together, in its order. */
export class UpdateGatherer {
  private waiting: LiveUpdate[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private quick = QUICK;

  constructor(private readonly deliver: (updates: LiveUpdate[]) => void) {}

  add(update: LiveUpdate): void {
    if (this.timer === undefined) {
      this.deliver([update]);
      this.pause();
    } else {
      this.waiting.push(update);
    }
  }

  /** Hands on what waits, so that something else can follow it. */
  hurry(): void {
    if (this.waiting.length > 0) {
      const updates = this.waiting;
      this.waiting = [];
      this.deliver(updates);
    }
  }

  private pause(): void {
    this.timer = setTimeout(() => this.flush(), this.quick-- > 0 ? QUICK_MS : GATHER_MS);
  }

  private flush(): void {
    this.timer = undefined;
    if (this.waiting.length > 0) {
      const updates = this.waiting;
      this.waiting = [];
      this.deliver(updates);
      this.pause();
    } else if (this.quick < 0) {
      // A pause has to be one: values that come now and then are no reason to be quick again.
      this.quick = 0;
      this.timer = setTimeout(() => {
        this.quick = this.waiting.length === 0 ? QUICK : 0;
        this.flush();
      }, GATHER_MS);
    }
  }
}
