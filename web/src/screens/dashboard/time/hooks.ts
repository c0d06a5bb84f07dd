// Windows of dashboards and widgets as React sees them: which one is shown, and its moments as they pass.

import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useSearchParams } from "wouter";
import type { Widget } from "@/dashboard/model";
import { readAddress, TIME_PARAMETERS, writeAddress } from "@/dashboard/time/address";
import { clockDifference, compareClocks, serverNow, watchClock } from "@/dashboard/time/clock";
import { zoomedIn, zoomedOut, type TimeControl } from "@/dashboard/time/control";
import { boundsOf, fixedWindow, readTimeWindow, type TimeWindow } from "@/dashboard/timeWindow";

const same = (one: TimeWindow | undefined, other: TimeWindow): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Adds zooming to a window that is kept somewhere. */
function useZoom(window: TimeWindow, show: (window: TimeWindow) => void): TimeControl {
  const [before, setBefore] = useState<TimeWindow>();
  const latest = useRef({ window, before, show });
  latest.current = { window, before, show };
  const choose = useCallback((next: TimeWindow) => {
    setBefore(undefined);
    latest.current.show(next);
  }, []);
  const zoom = useCallback((from: number, to: number) => {
    const { window: current, before: earlier } = latest.current;
    setBefore(earlier ?? current);
    latest.current.show(fixedWindow(current, from, to));
  }, []);
  const reset = useCallback(() => choose(latest.current.before ?? latest.current.window), [choose]);
  const zoomed = before !== undefined && !same(before, window);
  return useMemo(() => ({ window, choose, zoom, reset: zoomed ? reset : undefined }), [window, choose, zoom, reset, zoomed]);
}

/** The window of a dashboard: what the address says, else what is stored. */
export function useAddressWindow(storedWindow: unknown): TimeControl {
  const [search, setSearch] = useSearchParams();
  const stored = useMemo(() => readTimeWindow(storedWindow), [storedWindow]);
  const said = TIME_PARAMETERS.map((name) => `${name}=${encodeURIComponent(search.get(name) ?? "")}`).join("&");
  const window = useMemo(() => readAddress(new URLSearchParams(said.replace(/\w+=(?=&|$)/g, "")), stored), [said, stored]);
  const show = useCallback(
    (next: TimeWindow) =>
      setSearch((before) => {
        const after = new URLSearchParams(before);
        TIME_PARAMETERS.forEach((name) => after.delete(name));
        return new URLSearchParams([...after, ...writeAddress(next, stored)]);
      }),
    [setSearch, stored],
  );
  useEffect(compareClocks, []);
  return useZoom(window, show);
}

/** A window that begins as another one and goes its own way once somebody chooses. */
export function useOwnWindow(begin: TimeWindow): TimeControl {
  const [chosen, choose] = useState<TimeWindow>();
  return useZoom(chosen ?? begin, choose);
}

/** The window of a widget: its own, or that of its dashboard. */
export function useWidgetWindow(widget: Widget, shared: TimeControl | undefined, fallback: TimeWindow): TimeControl {
  const stored = JSON.stringify(widget.timeWindow ?? null);
  const [chosen, setChosen] = useState<{ of: string; window: TimeWindow }>();
  const own = useMemo(() => readTimeWindow(JSON.parse(stored)), [stored]);
  const show = useCallback((window: TimeWindow) => setChosen({ of: stored, window }), [stored]);
  const control = useZoom(chosen?.of === stored ? chosen.window : own, show);
  const still = useMemo<TimeControl>(() => ({ window: fallback, choose: () => undefined, zoom: () => undefined, reset: undefined }), [fallback]);
  return widget.timeWindow === undefined ? (shared ?? still) : control;
}

/** A moving window moves so many times over its width, but not more often than each second. */
const STEPS = 2_000;
const SLOWEST_MS = 30_000;

/** The present moment as far as a window shows it. One that nobody watches, or that shows the past, stands still. */
export function useNow(window: TimeWindow, watched: boolean): number {
  const difference = useSyncExternalStore(watchClock, clockDifference);
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    setNow(serverNow());
    if (!watched || !window.realtime) {
      return undefined;
    }
    const [from, to] = boundsOf(window, serverNow());
    const step = Math.min(SLOWEST_MS, Math.max(1_000, (to - from) / STEPS));
    const timer = setInterval(() => document.visibilityState === "visible" && setNow(serverNow()), step);
    return () => clearInterval(timer);
  }, [window, watched, difference]);
  return now;
}

const isOfField = (target: EventTarget | null): boolean => target instanceof Element && target.closest("input, textarea, select, [contenteditable=true], [role=dialog], [role=listbox], .cm-editor") !== null;

/** Keys that zoom the window of a dashboard: `-` out, `+` in, `0` back to what is stored or was chosen. */
export function useZoomKeys(control: TimeControl, enabled: boolean): void {
  const latest = useRef(control);
  latest.current = control;
  useEffect(() => {
    if (!enabled) {
      return undefined;
    }
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isOfField(event.target)) {
        return;
      }
      const { window, choose, reset } = latest.current;
      const actions: Record<string, (() => void) | undefined> = { "-": () => choose(zoomedOut(window)), "+": () => choose(zoomedIn(window)), "0": reset };
      const action = actions[event.key];
      if (action !== undefined) {
        event.preventDefault();
        action();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [enabled]);
}
