// The one WebSocket of a tab. Subscriptions outlive it: after a lost connection all of them are asked for again.

import { useSyncExternalStore } from "react";
import { getToken, SessionEnded } from "@/api/session";
import { goToLogin } from "@/api/client";
import { backOff, endOf, framesOf, type LiveCommand, type LiveUpdate } from "./protocol";

export type Connection = "idle" | "live" | "reconnecting";

interface Subscription {
  command: LiveCommand;
  onUpdate: (update: LiveUpdate) => void;
}

class LiveConnection {
  private socket: WebSocket | undefined;
  private opening = false;
  private attempt = 0;
  private nextId = 1;
  private timer: number | undefined;
  private state: Connection = "idle";
  private readonly subscriptions = new Map<number, Subscription>();
  private readonly listeners = new Set<() => void>();

  /** Asks for something until the returned function is called. */
  subscribe(command: LiveCommand, onUpdate: (update: LiveUpdate) => void): () => void {
    const id = this.nextId++;
    this.subscriptions.set(id, { command, onUpdate });
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.send([{ ...command, cmdId: id }]);
    } else {
      void this.open();
    }
    return () => {
      this.subscriptions.delete(id);
      this.send([{ ...endOf(command), cmdId: id }]);
    };
  }

  readonly watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly current = (): Connection => this.state;

  /** Connects at once instead of waiting: the network is back, or somebody looks at the page again. */
  hurry(): void {
    if (this.state === "reconnecting") {
      clearTimeout(this.timer);
      void this.open();
    }
  }

  private send(commands: LiveCommand[]): void {
    if (this.socket?.readyState === WebSocket.OPEN) {
      framesOf(commands).forEach((frame) => this.socket?.send(JSON.stringify(frame)));
    }
  }

  private async open(): Promise<void> {
    if (this.opening || this.socket !== undefined) {
      return;
    }
    this.opening = true;
    try {
      const token = await getToken();
      const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/ws`);
      this.socket = socket;
      socket.onopen = () => {
        const commands = [...this.subscriptions].map(([cmdId, { command }]) => ({ ...command, cmdId }));
        framesOf(commands, token).forEach((frame) => socket.send(JSON.stringify(frame)));
        this.change("live");
      };
      socket.onmessage = (event: MessageEvent<string>) => this.receive(event.data);
      socket.onclose = () => this.lost();
    } catch (error) {
      if (error instanceof SessionEnded) {
        goToLogin();
        return;
      }
      this.lost();
    } finally {
      this.opening = false;
    }
  }

  private receive(text: string): void {
    this.attempt = 0;
    const update = JSON.parse(text) as LiveUpdate;
    this.subscriptions.get(update.cmdId ?? update.subscriptionId ?? 0)?.onUpdate(update);
  }

  private lost(): void {
    this.socket = undefined;
    if (this.subscriptions.size === 0) {
      this.change("idle");
      return;
    }
    this.change("reconnecting");
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.open(), backOff(this.attempt++));
  }

  private change(state: Connection): void {
    this.state = state;
    this.listeners.forEach((listener) => listener());
  }
}

export const live = new LiveConnection();
/** Connects again as soon as the network is back or somebody looks at the page. */
export function watchNetwork(): void {
  addEventListener("online", () => live.hurry());
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && live.hurry());
}

export function useConnection(): Connection {
  return useSyncExternalStore(live.watch, live.current);
}
