// Puts a tenant's code together with what it finds in the sandbox.

import context from "./context.js?raw";
import type { CodeModule } from "./modules";
import prelude from "./prelude.js?raw";

/** What a widget of a tenant has before its own code: the services of its context. */
export const WIDGET_PRELUDE = `${prelude}\n${context}\nfieldlineServices(ctx);\n`;

const NAMES = ["$event", "widgetContext", "entityId", "entityName", "additionalParams", "entityLabel"];
/** An action with a template gets that too, as ThingsBoard hands it over. */
const PRETTY_NAMES = ["$event", "widgetContext", "entityId", "entityName", "htmlTemplate", "additionalParams", "entityLabel"];

/** The most time that an action's own code may take before it gives others a turn, milliseconds. */
export const LIMIT_MS = 2_000;

/** How code is called. */
export interface Signature {
  /** Names of its parameters; beyond those of actions, what stands for them is given, too. */
  names: readonly string[];
  /** Whether the page wants to know what it returns. */
  returns: boolean;
}

/** Code of an action, to be run where `ctx` and `given` are what it gets to know. */
function call(body: string, { names, returns }: Signature, aliases: readonly string[], say: string): string {
  const args = names.map((name) => (name === "widgetContext" ? "ctx" : name === "$event" ? "({ stopPropagation() {}, preventDefault() {} })" : `given.${name}`));
  const tell = `.then((value) => ${say}({ kind: "result", value: value === undefined ? null : JSON.parse(JSON.stringify(value)) }), (problem) => ${say}({ kind: "failure", message: String(problem?.message ?? problem) }))`;
  return `const result = new Function(${[...names, "ctx", ...aliases].map((name) => JSON.stringify(name)).join(", ")}, ${JSON.stringify(body)}).call({ ctx }, ${[...args, "ctx"].join(", ")}, ...modules);${returns ? ` new Promise((yes, no) => (typeof result?.subscribe === "function" ? result.subscribe(yes, no) : yes(result)))${tell};` : ""}`;
}

/**
 * Returns the code of a frame that runs an action. One with a template runs in the frame, where its dialog is drawn; another one
 * in a worker of it, which is ended if it doesn't answer for a while. Modules of the first are there by their aliases already.
 */
export function actionProgram(body: string, isPretty: boolean, modules: readonly CodeModule[] = [], signature: Signature = { names: isPretty ? PRETTY_NAMES : NAMES, returns: false }): string {
  const aliases = modules.map(({ alias }) => alias);
  const say = `(message) => parent.postMessage(message, "*")`;
  if (isPretty) {
    return `${prelude}\n${context}\nconst given = ctx.given; fieldlineServices(ctx);\nconst modules = [${aliases.join(", ")}];\ntry { ${call(body, signature, aliases, `(${say})`)} (${say})({ kind: "done" }); } catch (problem) { (${say})({ kind: "failure", message: String(problem) }); (${say})({ kind: "done" }); }`;
  }
  const worker = `${prelude}\n${context}\nconst sources = ${JSON.stringify(modules.map(({ source }) => source))};\nonmessage = async ({ data }) => { if (data.kind === "ping") { postMessage({ kind: "pong" }); } if (data.kind === "begin") { const given = data.ctx.given; const ctx = fieldlineServices(data.ctx); try { const modules = await Promise.all(sources.map((source) => import(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))))); ${call(body, signature, aliases, "postMessage")} } catch (problem) { postMessage({ kind: "failure", message: String(problem) }); } postMessage({ kind: "done" }); } };`;
  return `const say = ${say};
    const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(worker)}], { type: "text/javascript" })));
    let pinged;
    worker.onmessage = ({ data }) => { if (data?.kind === "pong") { pinged = undefined; } else { say(data); } };
    worker.onerror = ({ message }) => say({ kind: "failure", message: String(message) });
    addEventListener("message", ({ source, data }) => { if (source === parent && data?.kind === "answer") { worker.postMessage(data); } });
    worker.postMessage({ kind: "begin", ctx: { ...ctx, $container: undefined, detectChanges: undefined, actionsApi: undefined } });
    const watch = setInterval(() => {
      if (pinged !== undefined && Date.now() - pinged > ${LIMIT_MS}) { worker.terminate(); clearInterval(watch); say({ kind: "failure", message: "took too long" }); say({ kind: "done" }); return; }
      if (pinged === undefined) { pinged = Date.now(); worker.postMessage({ kind: "ping" }); }
    }, 250);`;
}
