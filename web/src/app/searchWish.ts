// Ctrl+K that is pressed before there is a search to open: the wish is kept until the search has come, with what is typed after it.

import { BARE } from "./begin";

/** What was typed since the search was wished for. */
let wish: string | undefined;

function keep(event: KeyboardEvent): void {
  const { key } = event;
  // What is composed of several keys is not what the keys say.
  if (event.isComposing || event.altKey || ((event.ctrlKey || event.metaKey) && (event.shiftKey || key.toLowerCase() !== "k"))) {
    return;
  }
  if (event.ctrlKey || event.metaKey) {
    // A dashboard alone has no search, and the key is left to the browser there.
    if (!BARE.test(location.pathname)) {
      event.preventDefault();
      wish ??= "";
    }
  } else if (wish !== undefined) {
    if (key === "Escape") {
      wish = undefined;
    } else if (key === "Backspace") {
      wish = wish.slice(0, -1);
    } else if ([...key].length === 1) {
      event.preventDefault();
      wish += key;
    }
  }
}

/** Listens for the key until the wish is taken. Doing so twice is the same as once. */
export function keepSearchWish(): void {
  addEventListener("keydown", keep);
}

export const isSearchWished = (): boolean => wish !== undefined;

/** Returns what was typed until now. The keys are up to whoever asks from now on. */
export function takeSearchWish(): string {
  removeEventListener("keydown", keep);
  const typed = wish ?? "";
  wish = undefined;
  return typed;
}
