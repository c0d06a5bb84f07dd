// Lets a part of the page fill the screen, with its menus and dialogs, which stand outside of it in the document.

import { useEffect, useState } from "react";

export interface Fill {
  filled: boolean;
  toggle: () => void;
}

/** Whether a part fills the screen; the part itself has to lie over the page then. Escape ends it. */
export function useFill(): Fill {
  const [filled, setFilled] = useState(false);
  useEffect(() => {
    if (!filled) {
      return undefined;
    }
    const changed = (): void => setFilled(document.fullscreenElement !== null);
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && !event.defaultPrevented) {
        setFilled(false);
      }
    };
    document.addEventListener("fullscreenchange", changed);
    document.addEventListener("keydown", pressed);
    // Frames of other pages may not have the whole screen; then it is the whole frame.
    document.documentElement.requestFullscreen().catch(() => undefined);
    return () => {
      document.removeEventListener("fullscreenchange", changed);
      document.removeEventListener("keydown", pressed);
      if (document.fullscreenElement !== null) {
        void document.exitFullscreen().catch(() => undefined);
      }
    };
  }, [filled]);
  return { filled, toggle: () => setFilled((before) => !before) };
}
