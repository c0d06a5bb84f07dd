// How large the letters of the page are beside the usual 16 pixels: more on very large screens, or where the browser was told so.
// What is drawn by pixels, such as the rows of a table, grows by it with what is drawn by letters.

import { useSyncExternalStore } from "react";

const USUAL_PX = 16;
let known: number | undefined;

function measured(): number {
  const size = typeof document === "undefined" ? USUAL_PX : Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  return Number.isFinite(size) && size > 0 ? size / USUAL_PX : 1;
}

if (typeof window !== "undefined") {
  // Before whoever draws by it is told of the same.
  addEventListener("resize", () => {
    known = undefined;
  });
}

/** Returns the factor of the moment, which changes with the window alone. */
export function rootScale(): number {
  known ??= measured();
  return known;
}

function watch(listener: () => void): () => void {
  addEventListener("resize", listener);
  return () => removeEventListener("resize", listener);
}

export const useRootScale = (): number => useSyncExternalStore(watch, rootScale, () => 1);
