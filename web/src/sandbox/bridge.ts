// The way out of the sandbox: calls of code come as messages, and are done by the page if they are on the list and allowed.

import { api, ApiError, withQuery } from "@/api/client";
import type { Board } from "@/dashboard/board";
import { list, object, text, type Json } from "@/dashboard/json";
import { fill, t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { allow, isAllowed, placeOfCode, type ConsentSubject } from "./consent";
import { question, type Question } from "./questions";
import { refreshData } from "./refresh";
import { serverCall, type Right, type ServerCall } from "./services";

/** Longer texts of code are cut. */
const MOST_TEXT = 1_000;
/** The most calls that one frame makes in a minute, and that wait at once. */
const MOST_CALLS = 300;
const MOST_WAITING = 20;
/** The most questions of one frame in a minute, so that nobody is held up by them. */
const MOST_QUESTIONS = 10;
/** The longest path of states that code makes. */
const MOST_STATES = 30;
const MINUTE_MS = 60_000;

export interface BridgeOptions {
  board: Board;
  userId: string;
  /** What else than the dashboard itself the code is made of. */
  code?: () => string;
  onDialog?: (open: boolean, unknown: string[]) => void;
  onFailure?: (message: string) => void;
}

const cut = (value: unknown): string => (typeof value === "string" ? value : value === undefined || value === null ? "" : String(value)).slice(0, MOST_TEXT);

/** Turns markup of messages into plain text. */
function plain(value: unknown): string {
  return cut(value).replace(/<br\s*\/?>/gi, "\n").replace(/<[^>]*>/g, "");
}

async function send(call: ServerCall): Promise<unknown> {
  const path = withQuery(call.path, call.query);
  const made = { GET: () => api.get(path), POST: () => api.post(path, call.body), PUT: () => api.put(path, call.body), DELETE: () => api.delete(path) };
  return made[call.method]();
}

export class Bridge {
  private denied = new Set<Right>();
  /** Questions that are open, by what they ask for: an answer about reading is none about changing. */
  private readonly asking = new Map<Right, Promise<boolean>>();
  private recent: number[] = [];
  private questions: number[] = [];
  private waiting = 0;

  constructor(private readonly options: BridgeOptions) {}

  /** How many calls have no answer yet. */
  pending(): number {
    return this.waiting;
  }

  private subject(): ConsentSubject {
    const { board, userId, code } = this.options;
    const own = code?.() ?? "";
    return { userId, dashboardId: own === "" ? board.id : `${board.id} ${placeOfCode(own)}`, code: `${board.code()}\n${own}` };
  }

  private async consent(right: Right, service: string, method: string): Promise<boolean> {
    const subject = this.subject();
    if (await isAllowed(subject, right)) {
      return true;
    }
    if (this.denied.has(right)) {
      return false;
    }
    // Several calls of one moment ask once.
    const open = this.asking.get(right);
    const asking = open ?? question({
      kind: "consent",
      title: t("May this dashboard act with your rights?"),
      text: fill(
        t(
          right === "change"
            ? "The code of the dashboard “{title}” wants to read and change devices, assets, entity views, customers, their values, relations and alarms, and send commands to devices, with your rights ({call}). It can see neither your password nor your session, and asks for nothing else. Allow it only if you trust whoever made this dashboard."
            : "The code of the dashboard “{title}” wants to read devices, assets, entity views, customers, their values, relations and alarms with your rights ({call}). It can see neither your password nor your session, and asks for nothing else. Allow it only if you trust whoever made this dashboard.",
        ),
        { title: this.options.board.title, call: `${service}.${method}`.slice(0, 80) },
      ),
      yes: t("Allow for this dashboard"),
      no: t("Don't allow"),
    });
    this.asking.set(right, asking);
    const yes = await asking;
    this.asking.delete(right);
    if (yes) {
      await allow(subject, right);
    } else {
      this.denied.add(right);
    }
    return yes;
  }

  private ask(one: Question): Promise<boolean> {
    const now = Date.now();
    this.questions = [...this.questions.filter((ts) => ts > now - MINUTE_MS), now];
    if (this.questions.length > MOST_QUESTIONS) {
      throw new Error(t("The code of this dashboard asks for too much at once."));
    }
    return question(one);
  }

  private page(method: string, args: unknown[]): unknown {
    const { board } = this.options;
    const path = board.path();
    const state = (): { id: string; params: Json } => ({ id: text(args[0]) ?? path.at(-1)?.id ?? "default", params: object(args[1]) });
    const actions: Record<string, () => unknown> = {
      openState: () => board.go([...path, state()].slice(-MOST_STATES)),
      updateState: () => board.go([...path.slice(0, -1), state()]),
      navigatePrevState: () => board.go(path.slice(0, Math.max(1, Number(args[0]) + 1 || path.length - 1))),
      updateAliases: () => refreshData(),
      toast: () => (args[0] === "error" || args[0] === "warn" ? notify.error(new Error(plain(args[1]))) : notify.ok(plain(args[1]))),
      confirm: () => this.ask({ kind: "confirm", title: plain(args[0]), text: plain(args[1]), yes: plain(args[3]) || t("Yes"), no: plain(args[2]) || t("No") }),
      alert: async () => (await this.ask({ kind: "alert", title: plain(args[0]), text: plain(args[1]), yes: plain(args[2]) || t("OK"), no: undefined }), true),
      openDialog: () => this.options.onDialog?.(true, list(args[0]).map((one) => cut(one).slice(0, 60))),
      closeDialog: () => this.options.onDialog?.(false, []),
    };
    const action = Object.hasOwn(actions, method) ? actions[method] : undefined;
    if (action === undefined) {
      throw new Error(`${method} is not available here.`);
    }
    return action();
  }

  private withinLimits(): boolean {
    const now = Date.now();
    this.recent = this.recent.filter((ts) => ts > now - MINUTE_MS);
    this.recent.push(now);
    return this.recent.length <= MOST_CALLS && this.waiting < MOST_WAITING;
  }

  private async run(service: string, method: string, args: unknown[]): Promise<unknown> {
    if (!this.withinLimits()) {
      throw new Error(t("The code of this dashboard asks for too much at once."));
    }
    if (service === "page") {
      return this.page(method, args);
    }
    const call = serverCall(service, method, args);
    if (!(await this.consent(call.right, service, method))) {
      throw new Error(t("This was not allowed to the code of the dashboard."));
    }
    const answer = await send(call);
    if (call.right === "change") {
      refreshData();
    }
    return answer;
  }

  /** Does what a message of the frame asks for, and returns the answer for it; none for other messages. */
  async hear(message: unknown): Promise<Json | undefined> {
    const { kind, call, service, method, args } = object(message);
    if (kind === "failure") {
      this.options.onFailure?.(cut(object(message)["message"]));
      return undefined;
    }
    if (kind !== "call" || typeof call !== "number") {
      return undefined;
    }
    this.waiting++;
    try {
      const value = await this.run(text(service) ?? "", text(method) ?? "", list(args));
      return { kind: "answer", call, value: value ?? null };
    } catch (error) {
      return { kind: "answer", call, error: { message: error instanceof Error ? t(error.message) : String(error), status: error instanceof ApiError ? error.status : 0 } };
    } finally {
      this.waiting--;
    }
  }
}
