// Latest values of one entity, kept outside React: a row renders only when its own value has changed.

import { useEffect, useMemo, useSyncExternalStore } from "react";
import { live } from "./socket";
import type { LiveCommand, LiveUpdate } from "./protocol";

export interface LatestValue {
  ts: number;
  value: unknown;
}

/** The most points that a sparkline shows. */
export const RECENT = 60;
/** Nobody reads a value that changes more often than this, milliseconds. */
const REDRAW_MS = 250;

export class LatestValues {
  private readonly values = new Map<string, LatestValue>();
  private readonly recent = new Map<string, LatestValue[]>();
  private readonly listeners = new Map<string, Set<() => void>>();
  private names: readonly string[] = [];
  private readonly changed = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private hasAnswer = false;

  /**
   * Takes an update in, and wakes whoever looks at one of its keys: at once, or in a flood a few times a second. A value older
   * than the known one changes nothing.
   */
  take(update: LiveUpdate): void {
    let added = !this.hasAnswer;
    this.hasAnswer = true;
    for (const [key, points] of Object.entries(update.data ?? {})) {
      for (const [ts, value] of [...points].reverse()) {
        const known = this.values.get(key);
        if (known !== undefined && known.ts >= ts) {
          continue;
        }
        added ||= known === undefined;
        this.values.set(key, { ts, value });
        this.recent.set(key, [...(this.recent.get(key) ?? []), { ts, value }].slice(-RECENT));
        this.changed.add(key);
      }
    }
    if (added) {
      this.names = [...this.values.keys()].sort((a, b) => a.localeCompare(b));
      this.changed.add("");
    }
    if (this.timer === undefined) {
      this.wake();
    }
  }

  private wake(): void {
    this.timer = undefined;
    if (this.changed.size > 0) {
      const keys = [...this.changed];
      this.changed.clear();
      keys.forEach((key) => this.listeners.get(key)?.forEach((listener) => listener()));
      this.timer = setTimeout(() => this.wake(), REDRAW_MS);
    }
  }

  /** Puts what is stored of a key, the newest first, before what has come of it. */
  precede(key: string, stored: readonly LatestValue[]): void {
    const known = this.recent.get(key) ?? [];
    const first = known[0]?.ts ?? Infinity;
    this.recent.set(key, [...stored.filter(({ ts }) => ts < first).reverse(), ...known].slice(-RECENT));
    this.changed.add(key);
    if (this.timer === undefined) {
      this.wake();
    }
  }

  readonly keys = (): readonly string[] => this.names;
  /** Whether the server has answered. */
  readonly answered = (): boolean => this.hasAnswer;
  value(key: string): LatestValue | undefined {
    return this.values.get(key);
  }
  history(key: string): readonly LatestValue[] {
    return this.recent.get(key) ?? [];
  }

  /** Calls a listener when a key's value changes; when keys are added if the key is empty. */
  watch(key: string, listener: () => void): () => void {
    const listeners = this.listeners.get(key) ?? new Set();
    this.listeners.set(key, listeners.add(listener));
    return () => listeners.delete(listener);
  }
}

/** Subscribes to the values that a command asks for, as long as the component is shown. */
export function useLatestValues(command: LiveCommand): LatestValues {
  const text = JSON.stringify(command);
  const values = useMemo(() => ({ text, values: new LatestValues() }), [text]).values;
  useEffect(() => live.subscribe(JSON.parse(text) as LiveCommand, (update) => values.take(update)), [text, values]);
  return values;
}

export function useKeys(values: LatestValues): readonly string[] {
  return useSyncExternalStore((listener) => values.watch("", listener), values.keys);
}

export function useAnswered(values: LatestValues): boolean {
  return useSyncExternalStore((listener) => values.watch("", listener), values.answered);
}

export function useValue(values: LatestValues, key: string): LatestValue | undefined {
  return useSyncExternalStore(
    (listener) => values.watch(key, listener),
    () => values.value(key),
  );
}
