// Functions of dashboards, run where they can reach neither the page nor the network: in a worker of a sandboxed frame.

import { t } from "@/i18n";
import { forgetModules, modulesIn, tellMissing, type CodeModule } from "./modules";

/** A function body with the names of its parameters, and the arguments of each call. */
export interface SandboxCalls {
  body: string;
  names: string[];
  calls: unknown[][];
  /** The parameter that gets the result of the call before; in the first call it is what that one names. */
  chained?: number;
}

export interface SandboxResult {
  value?: unknown;
  error?: string;
}

export const SANDBOX_PAGE = "/sandbox.html";

/** What the frame says of a function that it ended. */
const TOO_LONG = "took too long";
/** Functions that took too long once; asked again they would hold up all others. */
const endless = new Set<string>();
let frame: Promise<HTMLIFrameElement> | undefined;
let close: (() => void) | undefined;
let nextId = 1;
/** How many sandboxes have been ended. What waited meanwhile belongs to one of before, and opens none. */
let ended = 0;
const waiting = new Map<number, (results: SandboxResult[]) => void>();

function openFrame(): Promise<HTMLIFrameElement> {
  const element = document.createElement("iframe");
  element.setAttribute("sandbox", "allow-scripts");
  element.src = SANDBOX_PAGE;
  element.hidden = true;
  element.title = "Functions";
  const hear = (event: MessageEvent<{ id?: number; results?: SandboxResult[] }>): void => {
    const { id, results } = event.source === element.contentWindow ? event.data : {};
    if (id !== undefined && Array.isArray(results)) {
      waiting.get(id)?.(results);
      waiting.delete(id);
    }
  };
  addEventListener("message", hear);
  document.body.append(element);
  return new Promise((resolve) => {
    element.addEventListener("load", () => resolve(element), { once: true });
    close = () => {
      removeEventListener("message", hear);
      element.remove();
      resolve(element);
    };
  });
}

/** Ends the sandbox of a dashboard, so that its code has nothing to do with the functions of the next one. */
export function forgetSandbox(): void {
  ended++;
  close?.();
  close = undefined;
  frame = undefined;
  forgetModules();
  waiting.forEach((resolve) => resolve([]));
  waiting.clear();
}

/** Runs a function for each list of arguments. One that takes too long or throws has an error instead of a value. */
export async function callInSandbox(calls: SandboxCalls): Promise<SandboxResult[]> {
  if (calls.calls.length === 0 || endless.has(calls.body)) {
    return [];
  }
  const before = ended;
  let modules: CodeModule[];
  try {
    modules = await modulesIn(calls.body);
  } catch (error) {
    tellMissing(error);
    return calls.calls.map(() => ({ error: error instanceof Error ? error.message : String(error) }));
  }
  if (ended !== before) {
    return [];
  }
  frame ??= openFrame();
  const element = await frame;
  if (!element.isConnected) {
    return [];
  }
  const id = nextId++;
  return new Promise((resolve) => {
    waiting.set(id, (results) => {
      if (results[0]?.error === TOO_LONG) {
        endless.add(calls.body);
      }
      resolve(results.map((one) => (one.error === TOO_LONG ? { error: t("it took too long") } : one)));
    });
    // The frame has no origin, so no narrower target than all can be named; it is the one that is addressed.
    element.contentWindow?.postMessage({ id, kind: "call", ...calls, modules }, "*");
  });
}
