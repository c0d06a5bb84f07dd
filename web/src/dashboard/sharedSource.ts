// One subscription for all widgets that ask for the same, however many they are.

import { live } from "@/live/socket";
import { commandOf, SourceData, type SourceRequest, type SourceValues } from "./source";

interface Shared {
  data: SourceData;
  users: number;
  end: () => void;
}

/** An answer stays this long after its last user, so that a change of the state asks for nothing twice, milliseconds. */
const GRACE_MS = 2_000;
const shared = new Map<string, Shared>();

function begin(identity: string): Shared {
  const request = JSON.parse(identity) as SourceRequest;
  const data = new SourceData(request.window);
  const one: Shared = { data, users: 0, end: live.subscribe(commandOf(request, Date.now()), (update) => data.take(update)) };
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
    setTimeout(() => {
      if (one.users === 0 && shared.get(identity) === one) {
        shared.delete(identity);
        one.end();
      }
    }, GRACE_MS);
  };
}

/** The sources of one widget; an empty identity stands for one that can't be asked for. */
export class JoinedSources {
  private shown: Omit<SourceValues, "source">[] = [];

  constructor(private readonly identities: string[]) {}

  private refresh(): void {
    this.shown = this.identities.map((identity) => {
      const data = shared.get(identity)?.data;
      return { entities: data?.entities() ?? [], problem: data?.problem(), total: data?.total() ?? 0 };
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
