// What is done with the chosen widgets of a dashboard, by menu, by buttons and by keys. The clipboard has JSON text, so that it goes between dashboards and tabs.

import { useEffect, useRef } from "react";
import { aligned, type Alignment } from "@/dashboard/edit/align";
import { cut, movePlaces, paste, pasteReferences, placesOf, reference, removeWidgets } from "@/dashboard/edit/document";
import { copyStyle, pasteStyle } from "@/dashboard/edit/style";
import { exportWidget, importWidget } from "@/dashboard/edit/widgetFile";
import { t } from "@/i18n";
import { copiedText, copyText } from "@/ui/clipboard";
import { download } from "@/ui/csv";
import { notify } from "@/ui/feedback";
import type { DashboardEditor } from "./editor";

export interface WidgetCommands {
  /** Goes to the settings of the chosen widget. */
  open: () => void;
  remove: () => void;
  duplicate: () => void;
  copy: () => void;
  cutOut: () => void;
  copyReference: () => void;
  insert: () => void;
  copyLook: () => void;
  insertLook: () => void;
  /** Saves the chosen widget as a file. */
  takeOut: () => void;
  /** Adds the widget of a file. */
  bringIn: (text: string) => Promise<void>;
  align: (how: Alignment) => void;
}

export function useWidgetCommands(editor: DashboardEditor, dashboard: string, open: () => void): WidgetCommands {
  const { at, document, edit, model, select, selected } = editor;
  const [only = ""] = selected.size === 1 ? selected : [];
  const isNone = selected.size === 0;
  const newest = useRef(editor);
  newest.current = editor;
  const toClipboard = async (text: string, told: string): Promise<void> => {
    const isShared = await copyText(text);
    notify.ok(isShared ? told : `${told}. ${t("It can be pasted in this tab alone, which has no clipboard of the browser.")}`);
  };
  const copied = (text: string): Promise<void> => (isNone ? Promise.resolve() : toClipboard(text, t("{n} copied", { n: selected.size })));
  const fromClipboard = (take: (text: string) => void): void => void copiedText().then(take).catch(notify.error);
  const insertText = (clipboard: string): void => {
    // While the clipboard was asked for, something may have been changed.
    const { document, at, edit, select } = newest.current;
    const pasted = paste(document, at, clipboard);
    const { document: next, ids } = pasted.ids.length > 0 ? pasted : pasteReferences(document, at, dashboard, clipboard);
    if (ids.length > 0) {
      edit(() => next);
      select(new Set(ids));
    } else {
      notify.error(t("There is nothing to paste: widgets copied here or in another dashboard, or references to widgets of this one that are not here yet."));
    }
  };
  const remove = (): void => {
    if (isNone) {
      return;
    }
    edit((before) => removeWidgets(before, at, selected));
    select(new Set());
  };
  return {
    open,
    remove,
    duplicate: () => {
      if (!isNone) {
        insertText(cut(document, at, selected));
      }
    },
    copy: () => void copied(cut(document, at, selected)).catch(notify.error),
    // What the clipboard doesn't take is not removed either.
    cutOut: () => void copied(cut(document, at, selected)).then(remove, notify.error),
    copyReference: () => void copied(reference(document, at, dashboard, selected)).catch(notify.error),
    insert: () => fromClipboard(insertText),
    copyLook: () => {
      if (only !== "") {
        void toClipboard(copyStyle(document, only), t("Style copied")).catch(notify.error);
      }
    },
    insertLook: () =>
      fromClipboard((clipboard) => {
        const now = newest.current;
        if (now.selected.size === 0) {
          return;
        }
        const next = pasteStyle(now.document, now.selected, clipboard);
        if (next === now.document) {
          notify.error(t("There is no style to paste: copy that of a widget first."));
        }
        now.edit(() => next);
      }),
    takeOut: () => only !== "" && download(`${model.widgets.get(only)?.title || "widget"}.json`, JSON.stringify(exportWidget(document, at, only), null, 2)),
    bringIn: (text) => {
      const { document: next, id } = importWidget(document, at, JSON.parse(text));
      edit(() => next);
      select(new Set([id]));
      return Promise.resolve();
    },
    align: (how) => {
      const { places } = placesOf(document, at);
      const chosen = new Map([...selected].flatMap((id) => {
        const place = places.get(id);
        return place === undefined ? [] : [[id, place]];
      }));
      const next = movePlaces(document, at, aligned(chosen, how));
      if (next === document) {
        notify.error(t("There is no room: they would lie on other widgets."));
      }
      edit(() => next);
    },
  };
}

/** Keys within fields and dialogs are theirs. */
const isOfField = (target: EventTarget | null): boolean => target instanceof Element && target.closest("input:not([type=radio], [type=checkbox]), textarea, [contenteditable=true], [role=dialog], .cm-editor") !== null;

export function useKeys(editor: DashboardEditor, commands: WidgetCommands): void {
  const latest = useRef({ editor, commands });
  latest.current = { editor, commands };
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const { editor, commands: { remove, duplicate, copy, cutOut, copyReference, insert } } = latest.current;
      const control = event.ctrlKey || event.metaKey;
      const key = `${control ? "Ctrl+" : ""}${event.shiftKey ? "Shift+" : ""}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
      const all = new Set(editor.layout?.places.map(({ id }) => id));
      const actions: Record<string, () => void> = {
        "Ctrl+z": editor.undo,
        "Ctrl+Shift+z": editor.redo,
        "Ctrl+y": editor.redo,
        "Ctrl+a": () => editor.select(all),
        "Ctrl+c": copy,
        "Ctrl+x": cutOut,
        "Ctrl+Shift+c": copyReference,
        "Ctrl+v": insert,
        "Ctrl+d": duplicate,
        Delete: remove,
        Backspace: remove,
        Escape: () => editor.select(new Set()),
      };
      const action = key === "Ctrl+s" ? () => void editor.save() : isOfField(event.target) ? undefined : actions[key];
      if (action !== undefined) {
        event.preventDefault();
        action();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
