// One subscription for all widgets that ask for the same, however many they are.

import type { LiveCommand } from "@/live/protocol";
import { live } from "@/live/socket";
import { commandOf, type SourceRequest, type SourceValues } from "./source";
import { SourceData } from "./sourceData";
import { serverNow } from "./time/clock";

/** How a question went: what was asked and when, how many answers came, the first one when. */
export interface Trace {
  asked: LiveCommand;
  askedAt: number;
  answeredAt: number | undefined;
  answers: number;
  lastAt: number | undefined;
}

interface Shared {
  trace: Trace;
  data: SourceData;
  users: number;
  end: () => void;
  /** Whether functions of the dashboard make it up. */
  isMade: boolean;
}

/** Begins what functions make up; they are loaded where a dashboard has some. */
function made(request: SourceRequest, take: Parameters<typeof live.subscribe>[1]): () => void {
  let isOver = false;
  let end: (() => void) | undefined;
  import("./generated").then(
    ({ generate }) => {
      end = isOver ? undefined : generate(request, take);
    },
    (error: unknown) => take({ errorCode: 1, errorMsg: String(error) }),
  );
  return () => {
    isOver = true;
    end?.();
  };
}

/** An answer stays this long after its last user, so that a change of the state asks for nothing twice, milliseconds. */
const GRACE_MS = 2_000;
/** An answer that was asked for ahead stays this long for widgets that are still being loaded, milliseconds. */
const AHEAD_MS = 30_000;
const shared = new Map<string, Shared>();

function begin(identity: string): Shared {
  const request = JSON.parse(identity) as SourceRequest;
  const data = new SourceData(request);
  // After a lost connection the window is that of the moment, so that nothing is missing in between.
  const ask = (): LiveCommand => commandOf(request, serverNow());
  const trace: Trace = { asked: ask(), askedAt: Date.now(), answeredAt: undefined, answers: 0, lastAt: undefined };
  const took = (update: Parameters<SourceData["take"]>[0]): void => {
    trace.answers++;
    trace.lastAt = Date.now();
    trace.answeredAt ??= trace.lastAt;
    data.take(update);
  };
  const isMade = request.source.type === "function";
  const one: Shared = { data, trace, users: 0, isMade, end: isMade ? made(request, took) : live.subscribe(ask, took) };
  shared.set(identity, one);
  return one;
}

function join(identity: string, listener: () => void): () => void {
  const one = shared.get(identity) ?? begin(identity);
  one.users++;
  const leave = one.data.watch(listener);
  return () => {
    leave();
    one.users--;
    endUnused(identity, one, GRACE_MS);
  };
}

function endUnused(identity: string, one: Shared, grace: number): void {
  setTimeout(() => {
    if (one.users === 0 && shared.get(identity) === one) {
      shared.delete(identity);
      one.end();
    }
  }, grace);
}

/** Ends all that functions of a dashboard make up, as it has to be before its sandbox ends: they would open another one. */
export function endMade(): void {
  for (const [identity, one] of shared) {
    if (one.isMade) {
      shared.delete(identity);
      one.end();
    }
  }
}

/** Begins to follow what a widget is about to ask for. */
export function beginAhead(identity: string): void {
  if (!shared.has(identity)) {
    endUnused(identity, begin(identity), AHEAD_MS);
  }
}

/** Returns how the question of a widget that is shown went. */
export function traceOf(identity: string): Trace | undefined {
  return shared.get(identity)?.trace;
}

/** The sources of one widget; an empty identity stands for one that can't be asked for. */
export class JoinedSources {
  private shown: Omit<SourceValues, "source">[] = [];

  constructor(private readonly identities: string[]) {}

  private refresh(): void {
    this.shown = this.identities.map((identity) => {
      const data = shared.get(identity)?.data;
      const shown = { entities: data?.entities() ?? [], problem: data?.problem(), total: data?.total() ?? 0 };
      return data?.answered() === false ? { ...shown, waiting: true as const } : shown;
    });
  }

  readonly watch = (listener: () => void): (() => void) => {
    const changed = (): void => {
      this.refresh();
      listener();
    };
    const leaves = this.identities.filter((identity) => identity !== "").map((identity) => join(identity, changed));
    changed();
    return () => leaves.forEach((leave) => leave());
  };

  readonly current = (): Omit<SourceValues, "source">[] => this.shown;
}
