// The state of a dashboard that is edited: its history, what is selected, its draft in this browser, and saving.

import { useMemo, useRef, useState } from "react";
import { api, ApiError } from "@/api/client";
import { editable, layoutAt, type LayoutAt } from "@/dashboard/edit/document";
import { exists } from "@/dashboard/edit/layouts";
import { merge } from "@/dashboard/edit/merge";
import { readDashboard, type Json } from "@/dashboard/model";
import type { OpenState } from "@/dashboard/state";
import { apply, begin, goesOn, redo, taken, undo, type History } from "@/editing/history";
import { useKeptDraft } from "@/editing/keptDraft";
import type { Merge } from "@/editing/merge";
import { useNewer } from "@/editing/newer";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { draftKey, draftOf, type Draft, type StoredDashboard } from "./draft";

/** Somebody else has saved: what they have, and what joining both gives. */
export interface Conflict extends Merge {
  theirs: StoredDashboard;
}

/** Narrower windows begin with the list of phones. */
const PHONE_PX = 700;

const NO_PARAMS: Json = {};

/** `opened` is the state that was looked at before editing, which is edited first, with its entities. */
export function useDashboardEditor(stored: StoredDashboard, user: string, onSaved: (dashboard: StoredDashboard) => void, opened: OpenState | undefined) {
  const id = stored.id.id;
  const [draft] = useState(() => draftOf(user, id));
  const [base, setBase] = useState(() => draft?.base ?? editable(stored.configuration));
  const version = useRef(draft?.version ?? stored.version);
  const [history, setHistory] = useState(() => (draft === undefined ? begin(base) : apply(begin(base), draft.configuration)));
  /** How often the history was walked: what forms hold of their own begins anew then. */
  const [turn, setTurn] = useState(0);
  const walk = (step: (history: History<Json>) => History<Json>): void => {
    setHistory(step);
    setTurn((before) => before + 1);
  };
  const document = history.present;
  const model = useMemo(() => readDashboard(document), [document]);
  const [wanted, setWanted] = useState(opened?.id);
  const state = model.states.find((one) => one.id === wanted) ?? model.states.find((one) => one.root) ?? model.states[0];
  const [place, setPlace] = useState<Omit<LayoutAt, "state">>({ layout: "main", breakpoint: undefined });
  // On a phone the list is what can be edited well.
  const [asList, setAsList] = useState(() => window.innerWidth < PHONE_PX);
  const stateId = state?.id ?? "";
  const wantedAt = { state: stateId, ...place };
  const at: LayoutAt = exists(document, wantedAt) ? wantedAt : { state: stateId, layout: "main", breakpoint: undefined };
  const layout = layoutAt(document, at);
  const [selected, select] = useState<ReadonlySet<string>>(new Set());
  const [conflict, setConflict] = useState<Conflict>();
  const [saving, setSaving] = useState(false);
  const dirty = document !== base;
  const newer = useNewer(`/api/dashboard/${id}/versions`, version.current, saving);
  const newest = useRef({ base, document });
  newest.current = { base, document };
  /** Tells what somebody else has saved, and what joining both gives. */
  const look = async (): Promise<void> => {
    try {
      const theirs = await api.get<StoredDashboard>(`/api/dashboard/${id}`);
      // What was changed while the server answered is joined as well.
      const now = newest.current;
      setConflict({ ...merge(now.base, now.document, editable(theirs.configuration)), theirs });
    } catch (error) {
      notify.error(error);
    }
  };

  useKeptDraft(
    draftKey(user, id),
    useMemo((): Draft | undefined => (dirty ? { version: version.current, base, configuration: document } : undefined), [document, base, dirty, version.current]),
  );

  /** `expected` is the version that this comes after; another one in its place is a conflict. */
  const store = async (configuration: Json, onto: StoredDashboard, expected: number): Promise<void> => {
    setSaving(true);
    try {
      const saved = await api.post<StoredDashboard>("/api/dashboard", { ...onto, configuration, version: expected });
      version.current = saved.version;
      setBase(configuration);
      setHistory((now) => taken(now, document, configuration, (...forms) => merge(...forms).merged));
      setConflict(undefined);
      onSaved(saved);
      notify.ok(t("Saved"));
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        await look();
      } else {
        notify.error(error);
      }
    } finally {
      setSaving(false);
    }
  };

  return {
    document,
    /** What the changes began with. */
    base,
    model,
    state,
    /** The parameters of the state, as far as it was opened with some. */
    params: opened !== undefined && opened.id === stateId ? opened.params : NO_PARAMS,
    /** The layout that is edited, and where it stands. */
    at,
    layout,
    /** Whether the list of phones is edited instead of the cells. */
    asList: asList || layout?.grid.isList === true,
    showState: (next: string): void => {
      setWanted(next);
      setPlace({ layout: "main", breakpoint: undefined });
      select(new Set());
    },
    showLayout: (next: Omit<LayoutAt, "state">, list: boolean): void => {
      setPlace(next);
      setAsList(list);
      select(new Set());
    },
    selected,
    select,
    dirty,
    restored: draft !== undefined,
    saving,
    /** What somebody else has saved since. */
    newer,
    look: () => void look(),
    conflict,
    closeConflict: () => setConflict(undefined),
    edit: (change: (document: Json) => Json) => {
      const same = goesOn();
      setHistory((now) => apply(now, change(now.present), same));
    },
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    undo: () => walk(undo),
    redo: () => walk(redo),
    turn,
    save: () => store(document, stored, version.current),
    /** Saves over what somebody else has saved, as both are joined or as mine is. */
    saveOver: async (configuration: Json): Promise<void> => {
      if (conflict !== undefined) {
        // The version that was begun with stays until this is stored: if it fails, saving again must meet the conflict again.
        await store(configuration, conflict.theirs, conflict.theirs.version);
      }
    },
    /** Gives up all changes: what is stored is shown. */
    drop: (): void => {
      localStorage.removeItem(draftKey(user, id));
      walk(() => begin(base));
    },
  };
}

export type DashboardEditor = ReturnType<typeof useDashboardEditor>;
