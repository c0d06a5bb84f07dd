// The state of an open rule chain: its history, what is selected, its draft in this browser, and saving.

import { createContext, useContext, useMemo, useRef, useState } from "react";
import { api, ApiError } from "@/api/client";
import type { Entity } from "@/api/types";
import { t } from "@/i18n";
import type { Component } from "@/ruleChain/components";
import { apply, begin, goesOn, redo, taken, undo, type History } from "@/editing/history";
import { useKeptDraft } from "@/editing/keptDraft";
import type { Merge } from "@/editing/merge";
import { useNewer } from "@/editing/newer";
import { infoWith, readChain, writeChain, type ChainDocument, type ChainMetadata, type Json } from "@/ruleChain/model";
import { mergeChains, onto } from "@/ruleChain/merge";
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
  /** What the draft began with, and its version. */
  version: unknown;
  base?: ChainDocument;
  chain: ChainDocument;
}

/** Somebody else has saved: what they have, and what joining both gives. */
export interface Conflict extends Merge<ChainDocument> {
  theirs: ChainDocument;
  version: unknown;
}

/** What a draft began with that doesn't say so: whatever differs then is a conflict. */
const UNKNOWN: ChainDocument = { nodes: [], wires: [], first: undefined, remarks: [] };

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

/** Gives nodes of a history what the server made of them, so that undoing after saving keeps their ids. `made` is the chain that was sent, as it is saved. */
function adopt(history: History<ChainDocument>, sent: ChainDocument, saved: ChainMetadata, made?: ChainDocument): { history: History<ChainDocument>; present: ChainDocument } {
  const known = new Map(sent.nodes.map(({ key }, at) => [key, saved.nodes[at]]));
  const withIds = (chain: ChainDocument): ChainDocument => ({
    ...chain,
    nodes: chain.nodes.map((node) => {
      const id = known.get(node.key)?.id;
      return id === undefined ? node : { ...node, stored: { ...node.stored, id } };
    }),
  });
  const present = made ?? { ...sent, nodes: sent.nodes.map((node, at) => ({ ...node, stored: saved.nodes[at] ?? node.stored })) };
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
  /** What the changes began with. */
  const [base, setBase] = useState(() => draft?.base ?? (draft === undefined || draft.version === metadata["version"] ? saved : UNKNOWN));
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [wire, setWire] = useState<{ from: string; to: string }>();
  const [marks, setMarks] = useState<Marks>(NO_MARKS);
  const live = useLiveCounts(id);
  const [conflict, setConflict] = useState<Conflict>();
  const [saving, setSaving] = useState(false);
  const newer = useNewer(`/api/ruleChain/${id}/versions`, Number(version.current), saving);
  const chain = history.present;
  const dirty = chain !== saved;
  const classes = useMemo(() => new Map(components.map((one) => [one.clazz, one])), [components]);
  const findings = useMemo<Finding[]>(() => validate(chain, classes), [chain, classes]);

  useKeptDraft(
    draftKey(user, id),
    useMemo((): Draft | undefined => (dirty ? { version: version.current, base, chain } : undefined), [chain, base, dirty, version.current]),
  );

  const rest = (): Json => {
    const { nodes: _nodes, connections: _connections, firstNodeIndex: _first, ruleChainConnections: _older, ...others } = metadata;
    return { ...others, version: version.current };
  };
  const newestChain = useRef({ base, chain });
  newestChain.current = { base, chain };
  /** Tells what somebody else has saved, and what joining both gives. */
  const look = async (): Promise<void> => {
    try {
      const [others, nodes] = await Promise.all([api.get<RuleChainEntity>(`/api/ruleChain/${id}`), api.get<ChainMetadata>(`/api/ruleChain/${id}/metadata`)]);
      const theirs = readChain(nodes, others.additionalInfo);
      // What was changed while the server answered is joined as well.
      const now = newestChain.current;
      setConflict({ ...mergeChains(now.base, now.chain, theirs), theirs, version: nodes["version"] });
    } catch (error) {
      notify.error(error);
    }
  };
  /** `before` is what this comes after, in the version that is expected; another one in its place is a conflict. */
  const store = async (wanted: ChainDocument, before: ChainDocument, expected: unknown): Promise<void> => {
    setSaving(true);
    try {
      const answer = await api.post<ChainMetadata>("/api/ruleChain/metadata", { ...writeChain(wanted, rest()), version: expected }, { updateRelated: true });
      version.current = answer["version"];
      if (JSON.stringify(infoWith({}, wanted.remarks)) !== JSON.stringify(infoWith({}, before.remarks))) {
        const newest = await api.get<RuleChainEntity>(`/api/ruleChain/${id}`);
        const after = await api.post<RuleChainEntity>("/api/ruleChain", { ...newest, additionalInfo: infoWith(newest.additionalInfo, wanted.remarks) });
        version.current = after.version;
      }
      const { present } = adopt(begin(wanted), wanted, answer);
      setSaved(present);
      setBase(present);
      setHistory((now) => adopt(taken(now, chain, wanted, (...forms) => mergeChains(...forms).merged), wanted, answer, present).history);
      setConflict(undefined);
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
    entity,
    id,
    chain,
    components,
    classes,
    findings,
    dirty,
    saving,
    /** What the changes began with. */
    base,
    /** What somebody else has saved since. */
    newer,
    look: () => void look(),
    conflict,
    closeConflict: () => setConflict(undefined),
    restored: draft !== undefined && dirty,
    save: () => store(chain, saved, version.current),
    /** Saves over what somebody else has saved, as both are joined or as mine is. */
    saveOver: async (wanted: ChainDocument): Promise<void> => {
      if (conflict !== undefined) {
        await store(onto(wanted, conflict.theirs), conflict.theirs, conflict.version);
      }
    },
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
