// Tells of clicks outside of what lies over the page. Lists, menus and dialogs that are among its components are within it, though they stand elsewhere in
// the document.

import { useEffect, useRef } from "react";

/** Calls back for each click elsewhere; what it returns belongs on the element around all that is not elsewhere. */
export function useClickElsewhere(enabled: boolean, onElsewhere: () => void): { onPointerDownCapture: () => void } {
  const latest = useRef(onElsewhere);
  latest.current = onElsewhere;
  const isInside = useRef(false);
  useEffect(() => {
    if (!enabled) {
      return undefined;
    }
    const begin = (): void => {
      isInside.current = false;
    };
    const end = (): void => {
      if (!isInside.current) {
        latest.current();
      }
    };
    // React passes events up through the components, so that its own handler says whether a click came from within.
    document.addEventListener("pointerdown", begin, true);
    document.addEventListener("pointerdown", end);
    return () => {
      document.removeEventListener("pointerdown", begin, true);
      document.removeEventListener("pointerdown", end);
    };
  }, [enabled]);
  return {
    onPointerDownCapture: () => {
      isInside.current = true;
    },
  };
}
