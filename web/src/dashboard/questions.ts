// What widgets that ask page by page are asking at present, so that it can be looked at beside them.

import { useSyncExternalStore } from "react";
import { t } from "@/i18n";
import type { LiveCommand, LiveUpdate } from "@/live/protocol";
import { live } from "@/live/socket";
import { list, number, object, text, type Json } from "./json";
import type { Trace } from "./sharedSource";

type Subscribe = typeof live.subscribe;

/** One question that has not ended, with what its answer has in it now. */
export class Question {
  readonly trace: Trace;
  total = 0;
  problem: string | undefined;
  private readonly rows = new Map<string, Json>();

  constructor(asked: LiveCommand) {
    this.trace = { asked, askedAt: Date.now(), answeredAt: undefined, answers: 0, lastAt: undefined };
  }

  /** Takes an answer or a change of one; both are kept as they come, since somebody looks at few of them. */
  take(update: LiveUpdate & { data?: unknown; update?: unknown }): void {
    this.trace.answers++;
    this.trace.lastAt = Date.now();
    this.trace.answeredAt ??= this.trace.lastAt;
    this.problem = (update.errorCode ?? 0) === 0 ? undefined : (text(update.errorMsg) ?? "");
    const page = object(update.data);
    if (Array.isArray(page["data"])) {
      this.rows.clear();
      this.total = number(page["totalElements"]) ?? page["data"].length;
    }
    for (const one of [...list(page["data"]), ...list(update.update)].map(object)) {
      // Several alarms are of one entity.
      const id = object(this.isOfAlarms ? (one["id"] ?? one["entityId"]) : (one["entityId"] ?? one["id"]));
      const key = `${String(id["entityType"])}/${String(id["id"])}`;
      const before = this.rows.get(key);
      this.rows.set(key, this.isOfAlarms || before === undefined ? one : { ...before, latest: merged(object(before["latest"]), object(one["latest"])) });
    }
  }

  get isOfAlarms(): boolean {
    return this.trace.asked.type === "ALARM_DATA";
  }

  /** The entities or alarms of the answer, as the server sends them. */
  answer(): Json[] {
    return [...this.rows.values()];
  }
}

/** Changes name what has changed alone. */
function merged(before: Json, change: Json): Json {
  return { ...before, ...Object.fromEntries(Object.entries(change).map(([type, keys]) => [type, { ...object(before[type]), ...object(keys) }])) };
}

class Questions {
  private readonly all = new Set<Question>();
  private readonly listeners = new Set<() => void>();
  private shown: readonly Question[] = [];

  private changed(): void {
    if (this.listeners.size > 0) {
      this.shown = [...this.all];
      this.listeners.forEach((listener) => listener());
    }
  }

  subscribe(asked: LiveCommand, onUpdate: (update: LiveUpdate) => void, subscribe: Subscribe): () => void {
    const question = new Question(asked);
    this.all.add(question);
    const end = subscribe(asked, (update) => {
      question.take(update);
      onUpdate(update);
      this.changed();
    });
    this.changed();
    return () => {
      this.all.delete(question);
      end();
      this.changed();
    };
  }

  readonly watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    this.changed();
    return () => this.listeners.delete(listener);
  };
  readonly current = (): readonly Question[] => this.shown;
}

const byWidget = new Map<string, Questions>();

function questionsOf(widget: string): Questions {
  const questions = byWidget.get(widget) ?? new Questions();
  byWidget.set(widget, questions);
  return questions;
}

/** Returns how a widget subscribes, so that what it asks can be looked at. */
export function askedBy(widget: string, subscribe: Subscribe = (command, onUpdate) => live.subscribe(command, onUpdate)): (command: LiveCommand, onUpdate: (update: LiveUpdate) => void) => () => void {
  return (command, onUpdate) => questionsOf(widget).subscribe(command, onUpdate, subscribe);
}

/** Follows what a widget is asking. */
export function useQuestions(widget: string): readonly Question[] {
  const questions = questionsOf(widget);
  return useSyncExternalStore(questions.watch, questions.current);
}

function keysWithout(question: Question): string[] {
  const { asked } = question.trace;
  const entities = question.answer();
  const keys = list(object(asked["latestCmd"])["keys"]).map(object);
  const has = (entity: Json, type: string, key: string): boolean => {
    const { ts, value } = object(object(object(entity["latest"])[type])[key]);
    return (number(ts) ?? 0) > 0 || (value ?? "") !== "";
  };
  return keys.filter(({ type, key }) => !entities.some((entity) => has(entity, String(type), String(key)))).map(({ key }) => String(key));
}

/** Returns why a question has nothing to show; nothing if it has. */
export function whyNothing(question: Question): string | undefined {
  const { trace, problem, isOfAlarms } = question;
  const query = object(trace.asked["query"]);
  const link = object(query["pageLink"]);
  if (problem !== undefined) {
    return t("The server refused this: {problem}", { problem });
  }
  if (trace.answeredAt === undefined) {
    return t("The server has not answered yet.");
  }
  if (question.answer().length > 0) {
    const keys = isOfAlarms ? [] : keysWithout(question);
    return keys.length === 0 ? undefined : t("No entity has a value of: {keys}", { keys: keys.join(", ") });
  }
  const search = text(link["textSearch"]) ?? "";
  if (search !== "") {
    return t("Nothing fits the search “{search}” together with the alias and the filters.", { search });
  }
  if (!isOfAlarms) {
    return list(query["keyFilters"]).length > 0 ? t("No entity fits the alias and the filter together.") : t("The alias finds no entity that you may see.");
  }
  const narrows = ["statusList", "severityList", "typeList"].some((name) => list(link[name]).length > 0) || link["assigneeId"] !== undefined;
  const isTimed = ["startTs", "endTs", "timeWindow"].some((name) => link[name] !== undefined);
  return narrows
    ? t("No alarm of these entities has one of the states, severities, types or assignees that are chosen.")
    : isTimed
      ? t("These entities have no alarm of this time. A longer one may have some.")
      : t("These entities have no alarm, or there are none that you may see.");
}
