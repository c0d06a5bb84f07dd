// How a chart is moved: a drag zooms, a drag with Shift pans, Ctrl and the wheel zoom about the cursor, a finger shows values.

import type uPlot from "uplot";

export interface Gestures {
  /** The moments that are shown, milliseconds. */
  range: () => [number, number];
  /** Shows others for as long as the gesture lasts. */
  preview: (range: [number, number]) => void;
  /** The gesture has ended there. */
  settle: (range: [number, number]) => void;
}

/** The wheel has stopped when it didn't turn for so long, milliseconds. */
const WHEEL_END_MS = 350;
/** A drag over fewer pixels is a click. */
export const LEAST_DRAG = 5;

/** Lets people move a chart; returns what ends that. */
export function watchGestures(plot: uPlot, gestures: Gestures): () => void {
  const { over } = plot;
  const controller = new AbortController();
  const { signal } = controller;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let current: [number, number] | undefined;
  const finish = (): void => {
    timer = undefined;
    if (current !== undefined) {
      gestures.settle(current);
      current = undefined;
    }
  };

  const pan = (down: MouseEvent): void => {
    if (!down.shiftKey || down.button !== 0) {
      return;
    }
    down.stopImmediatePropagation();
    down.preventDefault();
    const [from, to] = gestures.range();
    const perPixel = (to - from) / over.clientWidth;
    const moved = (event: MouseEvent): void => {
      const by = (down.clientX - event.clientX) * perPixel;
      current = [from + by, to + by];
      gestures.preview(current);
    };
    const released = (): void => {
      document.removeEventListener("mousemove", moved);
      finish();
    };
    document.addEventListener("mousemove", moved);
    document.addEventListener("mouseup", released, { once: true });
  };

  const zoom = (event: WheelEvent): void => {
    if (!event.ctrlKey && !event.metaKey) {
      return;
    }
    event.preventDefault();
    const [from, to] = current ?? gestures.range();
    const share = (event.clientX - over.getBoundingClientRect().left) / over.clientWidth;
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    const at = from + (to - from) * share;
    current = [at - (at - from) * factor, at + (to - at) * factor];
    gestures.preview(current);
    clearTimeout(timer);
    timer = setTimeout(finish, WHEEL_END_MS);
  };

  const touch = (event: TouchEvent): void => {
    const [finger] = event.touches;
    if (finger !== undefined && event.touches.length === 1) {
      const box = over.getBoundingClientRect();
      plot.setCursor({ left: finger.clientX - box.left, top: finger.clientY - box.top });
    }
  };

  over.addEventListener("mousedown", pan, { capture: true, signal });
  over.addEventListener("wheel", zoom, { passive: false, signal });
  over.addEventListener("touchstart", touch, { passive: true, signal });
  over.addEventListener("touchmove", touch, { passive: true, signal });
  return () => {
    clearTimeout(timer);
    controller.abort();
  };
}
