// One replay at a time: what runs, how long already, and what came of it. Closing the connection ends it on the server.

import { useCallback, useEffect, useRef, useState } from "react";
import type { ReplayReport } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { problemOf, type ReplayRequest } from "./request";

const LOOK_MS = 500;

export interface ReplayRun {
  /** How long it runs already, milliseconds; nothing where none runs. */
  runningMs: number | undefined;
  report: ReplayReport | undefined;
  problem: string;
  isCancelled: boolean;
  /** The request is made when it begins: it may ask for something first, and what fails then is told as well. */
  start: (chain: string, request: () => Promise<ReplayRequest>) => Promise<void>;
  cancel: () => void;
}

export function useReplay(): ReplayRun {
  const [since, setSince] = useState<number>();
  const [now, setNow] = useState(0);
  const [ended, setEnded] = useState<{ report?: ReplayReport; problem: string; isCancelled: boolean }>({ problem: "", isCancelled: false });
  const connection = useRef<AbortController>(undefined);
  useEffect(() => {
    const timer = since === undefined ? undefined : setInterval(() => setNow(Date.now()), LOOK_MS);
    return () => clearInterval(timer);
  }, [since]);
  // Nobody waits for it any more.
  useEffect(() => () => connection.current?.abort(), []);
  const start = useCallback(async (chain: string, request: () => Promise<ReplayRequest>): Promise<void> => {
    connection.current?.abort();
    const controller = new AbortController();
    connection.current = controller;
    setSince(Date.now());
    setNow(Date.now());
    setEnded({ problem: "", isCancelled: false });
    try {
      const body = await request();
      controller.signal.throwIfAborted();
      const report = await ask("POST /api/ruleChain/{ruleChainId}/replay", { path: { ruleChainId: chain }, body, signal: controller.signal });
      setEnded({ report, problem: "", isCancelled: false });
    } catch (error) {
      if (connection.current === controller) {
        setEnded(controller.signal.aborted ? { problem: "", isCancelled: true } : { problem: problemOf(error), isCancelled: false });
      }
    } finally {
      if (connection.current === controller) {
        setSince(undefined);
      }
    }
  }, []);
  return { runningMs: since === undefined ? undefined : Math.max(0, now - since), report: ended.report, problem: ended.problem, isCancelled: ended.isCancelled, start, cancel: () => connection.current?.abort() };
}
