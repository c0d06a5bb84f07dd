// One request for each of many rows, a few at a time, until all are done or somebody cancels.

/** Requests that are under way at once: more would be taken for an overload. */
const AT_ONCE = 4;
/** Rows that are named for a reason of failure. */
const NAMED = 5;

export interface BulkOutcome {
  done: number;
  failed: number;
  /** Rows that were not begun, since somebody cancelled. */
  left: number;
  /** Why some failed, the most frequent reason first, with the names of the first rows. */
  reasons: { reason: string; count: number; names: string[] }[];
}

interface Running<T> {
  act: (row: T) => Promise<unknown>;
  nameOf: (row: T) => string;
  reasonOf: (error: unknown) => string;
  /** Told after each row how many are over. */
  tell: (over: number) => void;
  signal: AbortSignal;
}

export async function runEach<T>(rows: readonly T[], { act, nameOf, reasonOf, tell, signal }: Running<T>): Promise<BulkOutcome> {
  const reasons = new Map<string, { count: number; names: string[] }>();
  let [next, over, failed] = [0, 0, 0];
  const work = async (): Promise<void> => {
    while (!signal.aborted) {
      const row = rows[next++];
      if (row === undefined) {
        return;
      }
      try {
        await act(row);
      } catch (error) {
        failed++;
        const reason = reasonOf(error);
        const known = reasons.get(reason) ?? { count: 0, names: [] };
        reasons.set(reason, { count: known.count + 1, names: [...known.names, nameOf(row)].slice(0, NAMED) });
      }
      tell(++over);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return {
    done: over - failed,
    failed,
    left: rows.length - over,
    reasons: [...reasons].map(([reason, { count, names }]) => ({ reason, count, names })).sort((a, b) => b.count - a.count),
  };
}
