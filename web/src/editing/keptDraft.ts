// Keeps what is edited and not saved in this browser: a moment after each change, and when the page is left.

import { useEffect } from "react";

const AFTER_MS = 300;

/** Keeps a draft. Where the storage is full none is left: an older one would be taken for all that was changed. */
export function keepDraft(key: string, draft: object): void {
  try {
    localStorage.setItem(key, JSON.stringify(draft));
  } catch {
    localStorage.removeItem(key);
  }
}

/** Keeps a draft as long as there is one; it has to be the same object until something is changed. */
export function useKeptDraft(key: string, draft: object | undefined): void {
  useEffect(() => {
    if (draft === undefined) {
      localStorage.removeItem(key);
      return undefined;
    }
    const keep = (): void => keepDraft(key, draft);
    const timer = setTimeout(keep, AFTER_MS);
    window.addEventListener("pagehide", keep);
    return () => {
      clearTimeout(timer);
      window.removeEventListener("pagehide", keep);
    };
  }, [key, draft]);
}
