// The one WebSocket of a tab. Subscriptions outlive it: after a lost connection all of them are asked for again.

import { useSyncExternalStore } from "react";
import { getToken, SessionEnded } from "@/api/session";
import { goToLogin } from "@/api/client";
import { t } from "@/i18n";
// As one classic script: a module would wait for the page, which is busy while it begins.
import SocketWorker from "./socket.worker?worker";
import { limitOf, type Ending, type Limit } from "./limits";
import { backOff, endOf, framesOf, isSendable, type LiveCommand, type LiveUpdate } from "./protocol";
import type { FromWorker, ToWorker } from "./wire";

export type Connection = "idle" | "live" | "reconnecting";

/** The wait after a limit was reached: others have to end something first. */
const LIMITED_MS = 60_000;
/** The same where this page has ended something meanwhile, as when another screen is opened. */
const RELIEVED_MS = 1_000;
/** A connection that lives so long is within the limits, milliseconds. */
const SETTLED_MS = 3_000;

interface Subscription {
  /** Makes the command anew for each connection, since what it asks for may depend on the time. */
  command: () => LiveCommand;
  onUpdate: (update: LiveUpdate) => void;
}

class LiveConnection {
  private worker: Worker | undefined;
  /** While a connection is made, the worker keeps what is sent; before it knows of it, the first frames will have all subscriptions. */
  private opening: "no" | "token" | "socket" = "no";
  private attempt = 0;
  private nextId = 1;
  private timer: number | undefined;
  private state: Connection = "idle";
  /** When the last connection ended: what is shown is at least so old. */
  lostAt = Date.now();
  /** The limit that the last connection ended for, until one lives again. */
  private limit: Limit | undefined;
  private settling: number | undefined;
  private readonly subscriptions = new Map<number, Subscription>();
  private readonly listeners = new Set<() => void>();

  /** Asks for something until the returned function is called. */
  subscribe(asked: LiveCommand | (() => LiveCommand), onUpdate: (update: LiveUpdate) => void): () => void {
    const id = this.nextId++;
    const command = typeof asked === "function" ? asked : () => asked;
    const first = command();
    if (!isSendable(first)) {
      const errorMsg = t("This asks for more at once than the server takes in one message. Take fewer entities or keys, or let the alias choose them by type or name.");
      queueMicrotask(() => onUpdate({ cmdId: id, errorCode: 2, errorMsg }));
      return () => undefined;
    }
    this.subscriptions.set(id, { command, onUpdate });
    this.send({ ...first, cmdId: id });
    if (this.state !== "live" && this.timer === undefined) {
      void this.open();
    }
    return () => {
      this.subscriptions.delete(id);
      this.send({ ...endOf(command()), cmdId: id });
      if (this.limit?.isOwn === true && this.timer !== undefined) {
        this.wait(RELIEVED_MS);
      }
    };
  }

  /** Connects before anybody asks for something, so that the first question need not wait for it. */
  prepare(): void {
    if (this.state === "idle" && this.opening === "no" && this.timer === undefined) {
      void this.open();
    }
  }

  readonly watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly current = (): Connection => this.state;

  /** The limit that the server has ended the connection for. */
  readonly reached = (): Limit | undefined => this.limit;

  /** Connects at once instead of waiting: the network is back, or somebody looks at the page again. */
  hurry(): void {
    if (this.state === "reconnecting" && this.opening === "no") {
      void this.open();
    } else if (this.state === "live" || this.opening === "socket") {
      // Whether a connection has outlived a sleep or a change of the network is not told: the server is asked.
      this.tell({ type: "check" });
    }
  }

  /** Ends a connection that can't be heard of any more, without waiting until it notices. Where there was none, the loss is told all the same. */
  drop(): void {
    const wasIdle = this.state === "idle";
    if (wasIdle) {
      this.lostAt = Date.now();
      this.change("reconnecting");
    }
    if (this.state === "live" || this.opening === "socket") {
      this.tell({ type: "close" });
    } else if (wasIdle && this.opening === "no") {
      // Not while the token is asked for: a connection is under way then, and the timer would begin a second one.
      this.lost();
    }
  }

  private send(command: LiveCommand): void {
    if (this.state === "live" || this.opening === "socket") {
      this.tell({ type: "send", frames: framesOf([command]) });
    }
  }

  private tell(message: ToWorker): void {
    if (this.worker === undefined) {
      this.worker = new SocketWorker();
      this.worker.onmessage = (event: MessageEvent<FromWorker>) => this.hear(event.data);
    }
    this.worker.postMessage(message);
  }

  private async open(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.opening !== "no") {
      return;
    }
    this.opening = "token";
    try {
      const token = await getToken();
      const commands = [...this.subscriptions].map(([cmdId, { command }]) => ({ ...command(), cmdId }));
      const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/ws`;
      this.tell({ type: "open", url, frames: framesOf(commands, token) });
      this.opening = "socket";
    } catch (error) {
      if (error instanceof SessionEnded) {
        goToLogin();
        return;
      }
      this.lost();
    }
  }

  private hear(message: FromWorker): void {
    if (message.type === "updates" || message.type === "text") {
      this.attempt = 0;
      const updates = message.type === "updates" ? message.updates : [JSON.parse(message.text) as LiveUpdate];
      updates.forEach((update) => this.subscriptions.get(update.cmdId ?? update.subscriptionId ?? 0)?.onUpdate(update));
    } else if (message.type === "lost") {
      this.lost(message.since, message.ending);
    } else {
      this.opening = "no";
      // A loss that was told while this connection was made has set it, and it would make another.
      clearTimeout(this.timer);
      this.timer = undefined;
      if (this.limit !== undefined) {
        // Whether it is still reached turns out when the server has read what is asked for.
        this.settling = window.setTimeout(() => this.settle(), SETTLED_MS);
      }
      this.change("live");
    }
  }

  private settle(): void {
    this.limit = undefined;
    this.change(this.state);
  }

  private lost(since = Date.now(), ending?: Ending): void {
    this.opening = "no";
    clearTimeout(this.settling);
    const wasLimited = this.limit !== undefined;
    this.limit = ending === undefined ? undefined : limitOf(ending);
    // Whoever has been connected is told of the loss on every screen, also where nothing is followed.
    if (this.state === "idle" && this.subscriptions.size === 0) {
      return;
    }
    this.lostAt = this.state === "reconnecting" || wasLimited ? this.lostAt : since;
    this.change("reconnecting");
    this.wait(this.limit === undefined ? backOff(this.attempt++) : LIMITED_MS);
  }

  private wait(ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.open(), ms);
  }

  private change(state: Connection): void {
    this.state = state;
    this.listeners.forEach((listener) => listener());
  }
}

export const live = new LiveConnection();

/** Connects again, or looks whether the connection still lives, as soon as the network is back or somebody looks at the page. */
export function watchNetwork(): void {
  addEventListener("offline", () => live.drop());
  addEventListener("online", () => live.hurry());
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && live.hurry());
}

export function useLimit(): Limit | undefined {
  return useSyncExternalStore(live.watch, live.reached);
}

export function useConnection(): Connection {
  return useSyncExternalStore(live.watch, live.current);
}
