// The state of a dashboard that is edited: its history, what is selected, its draft in this browser, and saving.

import { useEffect, useMemo, useRef, useState } from "react";
import { api, ApiError } from "@/api/client";
import type { Entity } from "@/api/types";
import { editable } from "@/dashboard/edit/document";
import { merge, type Merge } from "@/dashboard/edit/merge";
import { readDashboard, type Json } from "@/dashboard/model";
import { apply, begin, redo, undo } from "@/editing/history";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";

export interface StoredDashboard extends Entity {
  configuration: unknown;
  version: number;
}

interface Draft {
  /** What the draft began with, and its version. */
  version: number;
  base: Json;
  configuration: Json;
}

/** Somebody else has saved: what they have, and what joining both gives. */
export interface Conflict extends Merge {
  theirs: StoredDashboard;
}

const draftKey = (user: string, id: string): string => `fieldline_dashboard_draft:${user}:${id}`;

export function draftOf(user: string, id: string): Draft | undefined {
  try {
    const draft = JSON.parse(localStorage.getItem(draftKey(user, id)) ?? "null") as Draft | null;
    return typeof draft?.configuration === "object" && typeof draft.base === "object" && typeof draft.version === "number" ? draft : undefined;
  } catch {
    return undefined;
  }
}

export function useDashboardEditor(stored: StoredDashboard, user: string, onSaved: (dashboard: StoredDashboard) => void) {
  const id = stored.id.id;
  const [draft] = useState(() => draftOf(user, id));
  const [base, setBase] = useState(() => draft?.base ?? editable(stored.configuration));
  const version = useRef(draft?.version ?? stored.version);
  const [history, setHistory] = useState(() => (draft === undefined ? begin(base) : apply(begin(base), draft.configuration)));
  const document = history.present;
  const model = useMemo(() => readDashboard(document), [document]);
  const [wanted, setWanted] = useState<string>();
  const state = model.states.find((one) => one.id === wanted) ?? model.states.find((one) => one.root) ?? model.states[0];
  const [selected, select] = useState<ReadonlySet<string>>(new Set());
  const [conflict, setConflict] = useState<Conflict>();
  const [saving, setSaving] = useState(false);
  const dirty = document !== base;

  useEffect(() => {
    const key = draftKey(user, id);
    if (!dirty) {
      localStorage.removeItem(key);
      return undefined;
    }
    const keep = (): void => {
      try {
        localStorage.setItem(key, JSON.stringify({ version: version.current, base, configuration: document } satisfies Draft));
      } catch {
        // The browser keeps no more; what is on the screen can still be saved.
        localStorage.removeItem(key);
      }
    };
    const timer = setTimeout(keep, 300);
    window.addEventListener("pagehide", keep);
    return () => {
      clearTimeout(timer);
      window.removeEventListener("pagehide", keep);
    };
  }, [document, base, dirty, user, id]);

  const store = async (configuration: Json, onto: StoredDashboard): Promise<void> => {
    setSaving(true);
    try {
      const saved = await api.post<StoredDashboard>("/api/dashboard", { ...onto, configuration, version: version.current });
      version.current = saved.version;
      setBase(configuration);
      setHistory((now) => (now.present === document ? (configuration === document ? now : apply(now, configuration)) : now));
      setConflict(undefined);
      onSaved(saved);
      notify.ok(t("Saved"));
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) {
        notify.error(error);
        return;
      }
      const theirs = await api.get<StoredDashboard>(`/api/dashboard/${id}`);
      setConflict({ ...merge(base, document, editable(theirs.configuration)), theirs });
    } finally {
      setSaving(false);
    }
  };

  return {
    document,
    model,
    state,
    showState: (next: string): void => {
      setWanted(next);
      select(new Set());
    },
    selected,
    select,
    dirty,
    restored: draft !== undefined,
    saving,
    conflict,
    closeConflict: () => setConflict(undefined),
    edit: (change: (document: Json) => Json) => setHistory((now) => apply(now, change(now.present))),
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    undo: () => setHistory(undo),
    redo: () => setHistory(redo),
    save: () => store(document, stored),
    /** Saves over what somebody else has saved, as both are joined or as mine is. */
    saveOver: async (configuration: Json): Promise<void> => {
      if (conflict !== undefined) {
        version.current = conflict.theirs.version;
        await store(configuration, conflict.theirs);
      }
    },
    /** Gives up all changes: what is stored is shown. */
    drop: (): void => {
      localStorage.removeItem(draftKey(user, id));
      setHistory(begin(base));
    },
  };
}

export type DashboardEditor = ReturnType<typeof useDashboardEditor>;
