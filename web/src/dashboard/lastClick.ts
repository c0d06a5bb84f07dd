// Where somebody has just clicked, for what opens beside it.

export interface ClickPlace {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** What opens later than this, milliseconds, was not opened by the click. */
const RECENT_MS = 1_000;
/** Side of what is a button rather than a ground, pixels: on a ground, the point counts. */
const BUTTON_SIZE = 160;

let last: { place: ClickPlace; at: number } | undefined;

/** Returns what a click was on: a thing of some size, or the point where the pointer was on a larger one. Keys have no pointer. */
export function placeOf(bounds: ClickPlace, pointer: { x: number; y: number } | undefined): ClickPlace {
  const isGround = bounds.width > BUTTON_SIZE || bounds.height > BUTTON_SIZE;
  return isGround && pointer !== undefined ? { left: pointer.x, top: pointer.y, width: 0, height: 0 } : bounds;
}

/** Begins to note clicks; returns what ends it. */
export function noteClicks(): () => void {
  const note = (event: MouseEvent): void => {
    if (event.target instanceof Element) {
      const { left, top, width, height } = event.target.getBoundingClientRect();
      last = { place: placeOf({ left, top, width, height }, event.detail > 0 ? { x: event.clientX, y: event.clientY } : undefined), at: performance.now() };
    }
  };
  addEventListener("click", note, true);
  return () => removeEventListener("click", note, true);
}

/** Returns where the last click was, if it was just now. */
export function recentClick(now = performance.now()): ClickPlace | undefined {
  return last !== undefined && now - last.at <= RECENT_MS ? last.place : undefined;
}
