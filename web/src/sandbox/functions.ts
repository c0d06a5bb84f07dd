// Functions of dashboards that many cells ask for: what is asked in one frame goes to the sandbox together, and what is known is kept.

import { useEffect, useMemo, useState } from "react";
import type { Json } from "@/dashboard/json";
import { callInSandbox, type SandboxResult } from "./calls";
import prelude from "./prelude.js?raw";

/** Returns what a function makes of its arguments; nothing as long as that is not known. */
export type Ask = (body: string, names: readonly string[], args: unknown[]) => SandboxResult | undefined;

/** The most results that are kept; the oldest go. */
const KEPT = 20_000;
/** About the most characters of results and what they were made of. */
const KEPT_SIZE = 8 * 1024 * 1024;

/** Gives a function its context as a further parameter, without sending that with each call. */
export function withContext(body: string, names: readonly string[], context: string): string {
  const list = names.join(", ");
  const given = list === "" ? "" : `${list}, `;
  return `${prelude}\nconst context = Object.assign(JSON.parse(${JSON.stringify(context)}), globalThis.fieldlineBasics);\nreturn (function (${given}ctx, widgetContext) { ${body}\n}).call(undefined, ${given}context, context);`;
}

interface Waiting {
  body: string;
  names: readonly string[];
  args: unknown[];
  key: string;
}

/** Results of functions, and what is still to be asked for. */
export class FunctionResults {
  private readonly known = new Map<string, SandboxResult>();
  private readonly sizes = new Map<string, number>();
  private size = 0;
  private readonly asked = new Set<string>();
  private waiting: Waiting[] = [];
  private scheduled = false;

  constructor(
    private readonly context: string,
    private readonly onResults: () => void,
    private readonly call: typeof callInSandbox = callInSandbox,
    private readonly later: (run: () => void) => void = (run) => void requestAnimationFrame(run),
    private readonly keptSize = KEPT_SIZE,
  ) {}

  readonly ask: Ask = (body, names, args) => {
    const key = `${body}\u0000${JSON.stringify(args)}`;
    const result = this.known.get(key);
    if (result === undefined && !this.asked.has(key)) {
      this.asked.add(key);
      this.waiting.push({ body, names, args, key });
      if (!this.scheduled) {
        this.scheduled = true;
        this.later(() => void this.flush());
      }
    }
    return result;
  };

  private async flush(): Promise<void> {
    this.scheduled = false;
    const all = this.waiting;
    this.waiting = [];
    const byBody = new Map<string, Waiting[]>();
    all.forEach((one) => byBody.set(one.body, [...(byBody.get(one.body) ?? []), one]));
    await Promise.all([...byBody.values()].map((calls) => this.run(calls)));
    this.onResults();
  }

  private async run(calls: Waiting[]): Promise<void> {
    const [first] = calls;
    if (first === undefined) {
      return;
    }
    const results = await this.call({ body: withContext(first.body, first.names, this.context), names: [...first.names], calls: calls.map(({ args }) => args) });
    let size = 0;
    calls.forEach(({ key }, n) => {
      const result = results[n] ?? { error: "not run" };
      size += JSON.stringify(result).length;
      this.keep(key, size > this.keptSize ? { error: "too large" } : result);
      this.asked.delete(key);
    });
    for (const key of this.known.keys()) {
      // What has just come stays: it would be asked for again and again.
      if ((this.known.size <= KEPT && this.size <= this.keptSize) || this.known.size <= calls.length) {
        break;
      }
      this.drop(key);
    }
  }

  private keep(key: string, result: SandboxResult): void {
    this.drop(key);
    const size = key.length + JSON.stringify(result).length;
    this.known.set(key, result);
    this.sizes.set(key, size);
    this.size += size;
  }

  private drop(key: string): void {
    this.known.delete(key);
    this.size -= this.sizes.get(key) ?? 0;
    this.sizes.delete(key);
  }
}

/** Runs functions with a context, and draws again when results have come: `version` is another one then. */
export function useFunctions(context: Json): { ask: Ask; version: number } {
  const text = JSON.stringify(context);
  const [version, setVersion] = useState(0);
  const [alive] = useState(() => ({ current: true }));
  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
    };
  }, [alive]);
  const results = useMemo(() => new FunctionResults(text, () => alive.current && setVersion((before) => before + 1)), [text, alive]);
  return { ask: results.ask, version };
}
