// Functions of settings that make texts, such as those of ticks. They run in the sandbox, so their texts come a moment later.

import { callInSandbox } from "@/sandbox/calls";

/** So many texts are kept; ticks of a moving axis are new ones again and again. */
const MOST = 500;

export class SandboxedTexts {
  private readonly known = new Map<string, unknown>();
  private readonly asked = new Set<string>();

  constructor(private readonly onKnown: () => void) {}

  /** Returns what a function makes of its arguments; nothing as long as it isn't known, or if the function fails. */
  result(body: string, names: string[], args: unknown[]): unknown {
    const place = `${body}\n${JSON.stringify(args)}`;
    if (!this.asked.has(place)) {
      if (this.asked.size > MOST) {
        this.asked.clear();
        this.known.clear();
      }
      this.asked.add(place);
      void callInSandbox({ body, names, calls: [args] }).then(([result]) => {
        if (result !== undefined && result.error === undefined) {
          this.known.set(place, result.value);
          this.onKnown();
        }
      });
    }
    return this.known.get(place);
  }

  text(body: string, names: string[], args: unknown[]): string | undefined {
    const result = this.result(body, names, args);
    return typeof result === "string" || typeof result === "number" ? String(result) : undefined;
  }
}
