// The keys of the editor, and the clipboard: pieces of chains are JSON text there, so that they go between chains and tabs.

import { useEffect, useRef } from "react";
import { t } from "@/i18n";
import { cut, paste, pieceOf, remove } from "@/ruleChain/edits";
import { notify } from "@/ui/feedback";
import type { Editor } from "./editor";

export interface Actions {
  save: () => void;
  find: () => void;
  fit: () => void;
  palette: () => void;
}

/** Keys within fields and dialogs are theirs. */
function isOfField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable=true], [role=dialog], .cm-editor") !== null;
}

export function removeSelected(editor: Editor, reconnect: boolean): void {
  const { wire, selected, edit, select, setWire } = editor;
  edit((chain) => (selected.size === 0 && wire === undefined ? chain : remove(chain, selected, wire === undefined ? [] : [[wire.from, wire.to]], reconnect)));
  select(new Set());
  setWire(undefined);
}

export function duplicate({ chain, edit, select, selected }: Editor): void {
  const { chain: next, keys } = paste(chain, cut(chain, selected));
  if (keys.length > 0) {
    edit(() => next);
    select(new Set(keys));
  }
}

export function useShortcuts(editor: Editor, actions: Actions): void {
  const latest = useRef({ editor, actions });
  latest.current = { editor, actions };
  useEffect(() => {
    const keys = (event: KeyboardEvent): void => {
      const { editor: now, actions: act } = latest.current;
      const control = event.ctrlKey || event.metaKey;
      const key = `${control ? "Ctrl+" : ""}${event.shiftKey ? "Shift+" : ""}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
      const anywhere: Record<string, () => void> = { "Ctrl+s": act.save, "Ctrl+f": act.find };
      const canvas: Record<string, () => void> = {
        "Ctrl+z": now.undo,
        "Ctrl+Shift+z": now.redo,
        "Ctrl+y": now.redo,
        "Ctrl+a": () => now.select(new Set([...now.chain.nodes, ...now.chain.remarks].map((one) => one.key))),
        "Ctrl+d": () => duplicate(now),
        "Ctrl+1": act.fit,
        Delete: () => removeSelected(now, false),
        Backspace: () => removeSelected(now, false),
        "Shift+Delete": () => removeSelected(now, true),
        Escape: () => now.select(new Set()),
        "+": act.palette,
        "Shift++": act.palette,
      };
      const field = isOfField(event.target);
      const action = field ? (event.target instanceof Element && event.target.closest("[role=dialog], .cm-editor") !== null ? undefined : anywhere[key]) : (anywhere[key] ?? canvas[key]);
      if (action !== undefined) {
        event.preventDefault();
        action();
      }
    };
    const copy = (event: ClipboardEvent): void => {
      const { editor: now } = latest.current;
      if (!isOfField(event.target) && now.selected.size > 0) {
        event.preventDefault();
        event.clipboardData?.setData("text/plain", JSON.stringify(cut(now.chain, now.selected)));
        if (event.type === "cut") {
          removeSelected(now, false);
        }
        notify.ok(t("{n} copied", { n: now.selected.size }));
      }
    };
    const pasted = (event: ClipboardEvent): void => {
      const { editor: now } = latest.current;
      const piece = isOfField(event.target) ? undefined : pieceOf(event.clipboardData?.getData("text/plain") ?? "");
      if (piece !== undefined) {
        event.preventDefault();
        const { chain, keys: added } = paste(now.chain, piece);
        now.edit(() => chain);
        now.select(new Set(added));
      }
    };
    document.addEventListener("keydown", keys);
    document.addEventListener("copy", copy);
    document.addEventListener("cut", copy);
    document.addEventListener("paste", pasted);
    return () => {
      document.removeEventListener("keydown", keys);
      document.removeEventListener("copy", copy);
      document.removeEventListener("cut", copy);
      document.removeEventListener("paste", pasted);
    };
  }, []);
}
