// The state of an open rule chain: its history, what is selected, its draft in this browser, and saving.

import { createContext, useContext, useEffect, useMemo, useRef, useState } from "react";
import { api, ApiError } from "@/api/client";
import type { Entity } from "@/api/types";
import { t } from "@/i18n";
import type { Component } from "@/ruleChain/components";
import { apply, begin, goesOn, redo, undo, type History } from "@/editing/history";
import { infoWith, readChain, writeChain, type ChainDocument, type ChainMetadata, type Json } from "@/ruleChain/model";
import { validate, type Finding } from "@/ruleChain/validate";
import { notify } from "@/ui/feedback";
import { useLiveCounts } from "./live";

export interface RuleChainEntity extends Entity {
  root: boolean;
  version: number;
  additionalInfo?: Json | null;
}

export interface Loaded {
  entity: RuleChainEntity;
  metadata: ChainMetadata;
  components: Component[];
}

interface Draft {
  version: unknown;
  chain: ChainDocument;
}

/** What nodes and wires show beside themselves. */
export interface Marks {
  /** By node: messages in, out, errors. */
  counts: ReadonlyMap<string, { in: number; out: number; errors: number }>;
  /** By `from>label`. */
  wires: ReadonlyMap<string, number>;
  /** Keys that are told apart from the others, if any. */
  lit: ReadonlySet<string> | undefined;
}

export const NO_MARKS: Marks = { counts: new Map(), wires: new Map(), lit: undefined };

export async function loadChain(id: string): Promise<Loaded> {
  const [entity, metadata, components] = await Promise.all([
    api.get<RuleChainEntity>(`/api/ruleChain/${id}`),
    api.get<ChainMetadata>(`/api/ruleChain/${id}/metadata`),
    api.get<Component[]>("/api/components", { componentTypes: "FILTER,ENRICHMENT,TRANSFORMATION,ACTION,EXTERNAL,FLOW", ruleChainType: "CORE" }),
  ]);
  return { entity, metadata, components };
}

const draftKey = (user: string, chain: string): string => `fieldline_chain_draft:${user}:${chain}`;

function draftOf(key: string): Draft | undefined {
  try {
    const draft = JSON.parse(localStorage.getItem(key) ?? "null") as Draft | null;
    return draft !== null && Array.isArray(draft.chain.nodes) && Array.isArray(draft.chain.wires) && Array.isArray(draft.chain.remarks) ? draft : undefined;
  } catch {
    return undefined;
  }
}

/** Gives nodes of a history what the server made of them, so that undoing after saving keeps their ids. */
function adopt(history: History<ChainDocument>, sent: ChainDocument, saved: ChainMetadata): { history: History<ChainDocument>; present: ChainDocument } {
  const known = new Map(sent.nodes.map(({ key }, at) => [key, saved.nodes[at]]));
  const withIds = (chain: ChainDocument): ChainDocument => ({
    ...chain,
    nodes: chain.nodes.map((node) => {
      const id = known.get(node.key)?.id;
      return id === undefined ? node : { ...node, stored: { ...node.stored, id } };
    }),
  });
  const present = { ...sent, nodes: sent.nodes.map((node, at) => ({ ...node, stored: saved.nodes[at] ?? node.stored })) };
  const now = history.present === sent ? present : withIds(history.present);
  return { history: { past: history.past.map(withIds), present: now, future: history.future.map(withIds) }, present };
}

export function useNewEditor({ entity, metadata, components }: Loaded, user: string, reload: () => Promise<void>) {
  const id = entity.id.id;
  const stored = useRef<ChainDocument>(undefined);
  stored.current ??= readChain(metadata, entity.additionalInfo);
  const [saved, setSaved] = useState(stored.current);
  const [draft] = useState(() => draftOf(draftKey(user, id)));
  const [history, setHistory] = useState(() => (draft === undefined ? begin(saved) : apply(begin(saved), draft.chain)));
  const version = useRef<unknown>(draft?.version ?? metadata["version"]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [wire, setWire] = useState<{ from: string; to: string }>();
  const [marks, setMarks] = useState<Marks>(NO_MARKS);
  const live = useLiveCounts(id);
  const [conflict, setConflict] = useState(false);
  const [saving, setSaving] = useState(false);
  const chain = history.present;
  const dirty = chain !== saved;
  const classes = useMemo(() => new Map(components.map((one) => [one.clazz, one])), [components]);
  const findings = useMemo<Finding[]>(() => validate(chain, classes), [chain, classes]);

  useEffect(() => {
    const key = draftKey(user, id);
    if (!dirty) {
      localStorage.removeItem(key);
      return undefined;
    }
    const keep = (): void => localStorage.setItem(key, JSON.stringify({ version: version.current, chain } satisfies Draft));
    const timer = setTimeout(keep, 300);
    window.addEventListener("pagehide", keep);
    return () => {
      clearTimeout(timer);
      window.removeEventListener("pagehide", keep);
    };
  }, [chain, dirty, user, id]);

  const rest = (): Json => {
    const { nodes: _nodes, connections: _connections, firstNodeIndex: _first, ruleChainConnections: _older, ...others } = metadata;
    return { ...others, version: version.current };
  };
  const save = async (over = false): Promise<void> => {
    setSaving(true);
    try {
      if (over) {
        version.current = (await api.get<ChainMetadata>(`/api/ruleChain/${id}/metadata`))["version"];
      }
      const answer = await api.post<ChainMetadata>("/api/ruleChain/metadata", writeChain(chain, rest()), { updateRelated: true });
      version.current = answer["version"];
      if (JSON.stringify(infoWith({}, chain.remarks)) !== JSON.stringify(infoWith({}, saved.remarks))) {
        const newest = await api.get<RuleChainEntity>(`/api/ruleChain/${id}`);
        const after = await api.post<RuleChainEntity>("/api/ruleChain", { ...newest, additionalInfo: infoWith(newest.additionalInfo, chain.remarks) });
        version.current = after.version;
      }
      const adopted = adopt(history, chain, answer);
      setSaved(adopted.present);
      // What was changed while the server saved stays a change.
      setHistory((now) => (now.present === chain ? adopted.history : adopt(now, chain, answer).history));
      setConflict(false);
      notify.ok(t("Saved"));
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        setConflict(true);
      } else {
        notify.error(error);
      }
    } finally {
      setSaving(false);
    }
  };
  return {
    entity,
    id,
    chain,
    components,
    classes,
    findings,
    dirty,
    saving,
    conflict,
    setConflict,
    restored: draft !== undefined && dirty,
    save,
    metadata: () => writeChain(chain, rest()),
    drop: async () => {
      localStorage.removeItem(draftKey(user, id));
      setHistory(begin(saved));
      await reload();
    },
    edit: (change: (chain: ChainDocument) => ChainDocument) => {
      const same = goesOn();
      setHistory((now) => apply(now, change(now.present), same));
    },
    undo: () => setHistory(undo),
    redo: () => setHistory(redo),
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    selected,
    select: setSelected,
    wire,
    setWire,
    marks,
    setMarks,
    /** By node and wire, as they are saved. */
    live,
  };
}

export type Editor = ReturnType<typeof useNewEditor>;
export const EditorContext = createContext<Editor | undefined>(undefined);

export function useEditor(): Editor {
  const editor = useContext(EditorContext);
  if (editor === undefined) {
    throw new Error("There is no open rule chain.");
  }
  return editor;
}
