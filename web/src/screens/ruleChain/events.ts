// Debug events of the nodes of a chain, counted since the debug view was opened.

import { api } from "@/api/client";
import type { PageData } from "@/api/types";
import type { ChainDocument } from "@/ruleChain/model";
import { debugOf } from "./debug";
import type { Marks } from "./editor";

export interface EventBody {
  type?: "IN" | "OUT";
  entityId?: string;
  entityType?: string;
  msgId?: string;
  msgType?: string;
  relationType?: string;
  data?: string;
  metadata?: string;
  error?: string;
}

export interface DebugEvent {
  id: { id: string };
  createdTime: number;
  node: string;
  body: EventBody;
}

/** Returns the telemetry that an event is about, which is stored as it came: of which device, and when. */
export function telemetryOf({ entityType, entityId, msgType, metadata }: EventBody): { device: string; ts: number } | undefined {
  if (msgType !== "POST_TELEMETRY_REQUEST" || entityType !== "DEVICE" || entityId === undefined) {
    return undefined;
  }
  try {
    const ts = Number((JSON.parse(metadata ?? "{}") as { ts?: unknown }).ts);
    return Number.isSafeInteger(ts) && ts > 0 ? { device: entityId, ts } : undefined;
  } catch {
    return undefined;
  }
}

/** The most events that are asked for at once, and that are kept in the list. */
const PAGE = 100;
const KEPT = 200;

type Filter = Record<string, unknown>;

async function ask(key: string, node: string, tenant: string, filter: Filter, since?: number): Promise<DebugEvent[]> {
  const query = { tenantId: tenant, pageSize: PAGE, page: 0, sortProperty: "createdTime", sortOrder: since === undefined ? "DESC" : "ASC", startTime: since };
  const page = await api.post<PageData<Omit<DebugEvent, "node">>>(`/api/events/RULE_NODE/${node}`, { ...filter, eventType: "DEBUG_RULE_NODE" }, query);
  return page.data.map((event) => ({ ...event, node: key }));
}

/** What has been seen so far; a new one for each opening. */
export interface Watch {
  since: Map<string, number>;
  seen: Set<string>;
  marks: Marks;
  events: DebugEvent[];
}

export function newWatch(): Watch {
  return { since: new Map(), seen: new Set(), marks: { counts: new Map(), wires: new Map(), lit: undefined }, events: [] };
}

/** Counts events into a new watch; those that were counted before are left out. */
export function count(watch: Watch, fresh: DebugEvent[]): Watch {
  const [counts, wires, since] = [new Map(watch.marks.counts), new Map(watch.marks.wires), new Map(watch.since)];
  const news = fresh.filter(({ id }) => !watch.seen.has(id.id));
  for (const { id, node, createdTime, body } of news) {
    watch.seen.add(id.id);
    const before = counts.get(node) ?? { in: 0, out: 0, errors: 0 };
    const failed = body.error !== undefined && body.error !== "";
    counts.set(node, { in: before.in + Number(body.type === "IN"), out: before.out + Number(body.type === "OUT"), errors: before.errors + Number(failed) });
    if (body.type === "OUT" && body.relationType !== undefined) {
      const wire = `${node}>${body.relationType.toLowerCase()}`;
      wires.set(wire, (wires.get(wire) ?? 0) + 1);
    }
    since.set(node, Math.max(since.get(node) ?? 0, createdTime));
  }
  const events = [...news, ...watch.events].sort((a, b) => b.createdTime - a.createdTime || b.id.id.localeCompare(a.id.id)).slice(0, KEPT);
  return { seen: watch.seen, since, marks: { ...watch.marks, counts, wires }, events };
}

/** Asks for what is new at all nodes that keep messages, as far as it matches a filter. */
export async function lookAgain(watch: Watch, chain: ChainDocument, tenant: string, opened: number, filter: Filter = {}): Promise<Watch> {
  const nodes = chain.nodes.flatMap(({ key, stored }) => (stored.id?.id === undefined || debugOf(stored["debugSettings"]) === "off" ? [] : [[key, stored.id.id] as const]));
  const pages = await Promise.all(nodes.map(([key, id]) => ask(key, id, tenant, filter, watch.since.get(key) ?? opened)));
  return count(watch, pages.flat());
}

/** Returns what all nodes have noted about one message, in the order of its way. */
export async function follow(chain: ChainDocument, tenant: string, msgId: string): Promise<DebugEvent[]> {
  const pages = await Promise.all(chain.nodes.map(({ key, stored }) => (stored.id?.id === undefined ? [] : ask(key, stored.id.id, tenant, { msgId }))));
  return pages.flat().sort((a, b) => a.createdTime - b.createdTime || a.id.id.localeCompare(b.id.id));
}
