// The window that a dashboard or one of its widgets shows, and how it is changed: chosen, zoomed by dragging in a chart, and brought back.

import { createContext } from "react";
import { boundsOf, fixedWindow, intervalFor, type TimeWindow } from "../timeWindow";
import { serverNow } from "./clock";

export interface TimeControl {
  window: TimeWindow;
  /** Shows another window. */
  choose: (window: TimeWindow) => void;
  /** Shows what is between two moments. */
  zoom: (from: number, to: number) => void;
  /** Shows again what was shown before zooming; nothing if nobody has zoomed. */
  reset: (() => void) | undefined;
}

/** The window of the widget that something is drawn in; none where it can't be changed. */
export const TimeContext = createContext<TimeControl | undefined>(undefined);

/** The shortest stretch of time that can be zoomed to, milliseconds. */
export const SHORTEST = 1_000;

/** Returns a window that shows twice as much around the same middle; live ones stay live and reach back further. */
export function zoomedOut(window: TimeWindow): TimeWindow {
  const now = serverNow();
  const [from, to] = boundsOf(window, now);
  if (window.all) {
    return window;
  }
  if (window.realtime && window.quick === undefined) {
    return { ...window, length: window.length * 2, interval: intervalFor(window.length * 2) };
  }
  const half = (to - from) / 2;
  return fixedWindow(window, from - half, Math.max(to, Math.min(now, to + half)));
}

/** Returns a window that shows the middle half, or the newest half of a live one. */
export function zoomedIn(window: TimeWindow): TimeWindow {
  const [from, to] = boundsOf(window, serverNow());
  if (window.all || to - from < 2 * SHORTEST) {
    return window;
  }
  if (window.realtime && window.quick === undefined) {
    return { ...window, length: window.length / 2, interval: intervalFor(window.length / 2) };
  }
  const quarter = (to - from) / 4;
  return fixedWindow(window, from + quarter, to - quarter);
}
