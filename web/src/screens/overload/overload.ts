// What people can do about each kind of overload, and the order in which it is told.

import { ratesOf } from "@/ui/form/values";
import type { OverloadEntry } from "./useOverload";

interface KindText {
  label: string;
  /** What whoever runs the installation can do, and what a tenant can. */
  operator: string;
  tenant: string;
}

const KINDS: Record<string, KindText> = {
  QUEUE_LAG: {
    label: "A queue lags behind",
    operator: "Find the slow rule chain by the debug of its nodes. More partitions for the queue, or a queue of its own for what is slow, help as well.",
    tenant: "Look for slow nodes in your rule chains, such as calls of other services; send less often, or ask whoever runs the installation for a queue of your own.",
  },
  RATE_LIMIT: {
    label: "A rate limit holds messages back",
    operator: "If the tenant may send that much, raise the rate limit in its tenant profile.",
    tenant: "Let the devices send less often or several values at once, or ask whoever runs the installation to raise the limit.",
  },
  COUNT_LIMIT: {
    label: "A limit of the tenant profile is reached",
    operator: "If the tenant may have that many, raise the limit in its tenant profile.",
    tenant: "Close what is not needed, such as pages that stay open, or ask whoever runs the installation to raise the limit.",
  },
  SLOW_LANE: {
    label: "Work waits in the slow lane",
    operator: "The tenant's rule chains take long, and so make no others wait. Its nodes that call other services are the first to look at.",
    tenant: "Your rule chains take long for each message. Look for nodes that call other services, and for long scripts.",
  },
  JOURNAL: {
    label: "The journal is slow to write",
    operator: "The disk doesn't keep up. A faster disk, or a data directory without other work on it, helps.",
    tenant: "Messages are confirmed late. Whoever runs the installation can see why.",
  },
  DISK: {
    label: "The disk is nearly full",
    operator: "Free space or give the volume more. Shorter times that data is kept (in tenant profiles) take effect within a day.",
    tenant: "New data may be refused soon. Whoever runs the installation can give more room.",
  },
  SCRIPTS: {
    label: "Scripts take too long",
    operator: "Scripts of the tenant end at their time limit. Its rule chains name them in their debug events.",
    tenant: "Scripts end at their time limit. Try them with real messages in the rule chain, and shorten loops.",
  },
  MEMORY: {
    label: "Memory is short",
    operator: "Requests are refused until others have ended. More memory for the program, or smaller limits for what waits, helps.",
    tenant: "Some requests are refused for a while. They may be sent again.",
  },
  API_LIMIT: {
    label: "A monthly limit is reached",
    operator: "If the tenant may do more this month, raise the limit in its tenant profile.",
    tenant: "See the API usage for what was used. Whoever runs the installation can raise the limit.",
  },
};

/** Returns the name of a kind and what to do about it; kinds that are not known yet are told by their name. */
export function textsOf(kind: string, isOperator: boolean): { label: string; advice: string } {
  const known = KINDS[kind];
  return known === undefined ? { label: kind, advice: "" } : { label: known.label, advice: isOperator ? known.operator : known.tenant };
}

/** Words of the server that subjects are made of. */
const SUBJECTS: ReadonlySet<string> = new Set([
  "evaluations", "waiting calls", "waiting messages", "messages given up", "time series", "journal",
  "tenant", "customer", "regular user", "public user", "device", "gateway", "WebSocket session", "messages", "requests", "telemetry messages", "telemetry data points", "sessions", "subscriptions", "updates",
  "Device API", "Telemetry persistence", "Rule Engine execution", "JavaScript functions execution", "Tbel functions execution", "Email messages", "SMS messages", "Alarms",
]);

/** Writes what an entry is about, with its words as `word` has them; a queue has the name that somebody gave it. */
export function subjectText({ kind, subject }: Pick<OverloadEntry, "kind" | "subject">, word: (text: string) => string): string {
  return kind === "QUEUE_LAG" ? subject : subject.split(": ").map((part) => (SUBJECTS.has(part) ? word(part) : part)).join(": ");
}

/** Groups entries by tenant, active ones first, the newest first; what concerns the whole installation stands before all. */
export function grouped(entries: readonly OverloadEntry[]): { tenant: string | null; name: string | null; entries: OverloadEntry[] }[] {
  const groups = new Map<string, { tenant: string | null; name: string | null; entries: OverloadEntry[] }>();
  const sorted = [...entries].sort((a, b) => Number(b.active) - Number(a.active) || b.last - a.last);
  for (const entry of sorted) {
    const id = entry.tenantId?.["id"];
    const tenant = typeof id === "string" ? id : null;
    const group = groups.get(tenant ?? "") ?? { tenant, name: entry.tenantName ?? null, entries: [] };
    group.entries.push(entry);
    groups.set(tenant ?? "", group);
  }
  return [...groups.values()].sort((a, b) => Number(b.tenant === null) - Number(a.tenant === null));
}

/** Writes a limit as people read it: `100:1` is a number of messages in a time. */
export function limitText(limit: string, rate: (count: number, seconds: number) => string, amount: (n: number) => string): string {
  const rates = ratesOf(limit);
  if (rates.length > 0) {
    return rates.map(({ count, seconds }) => rate(count, seconds)).join(", ");
  }
  const n = Number(limit);
  return Number.isFinite(n) ? amount(n) : limit;
}
