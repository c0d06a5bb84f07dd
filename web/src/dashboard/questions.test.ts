import { expect, test } from "vitest";
import type { LiveCommand, LiveUpdate } from "@/live/protocol";
import { askedBy, Question, whyNothing } from "./questions";

const entities = (more: object = {}): LiveCommand => ({ type: "ENTITY_DATA", query: { keyFilters: [], pageLink: { textSearch: null }, ...more }, latestCmd: { keys: [{ type: "TIME_SERIES", key: "level" }] } });
const pump = (latest: object): object => ({ entityId: { entityType: "DEVICE", id: "1" }, latest });

test("a question keeps its answer as changes come", () => {
  const question = new Question(entities());
  question.take({ data: { data: [pump({ ENTITY_FIELD: { name: { ts: 0, value: "Pump" } } })], totalElements: 7 } } as unknown as LiveUpdate);
  expect([question.total, question.trace.answers]).toEqual([7, 1]);
  expect(whyNothing(question)).toBe("No entity has a value of: level");
  question.take({ update: [pump({ TIME_SERIES: { level: { ts: 5, value: "3" } } })] } as unknown as LiveUpdate);
  expect(question.answer()).toEqual([pump({ ENTITY_FIELD: { name: { ts: 0, value: "Pump" } }, TIME_SERIES: { level: { ts: 5, value: "3" } } })]);
  expect(whyNothing(question)).toBeUndefined();
});

test("alarms of one entity are several", () => {
  const question = new Question({ type: "ALARM_DATA", query: {} });
  const alarm = (id: string, severity = "MINOR"): object => ({ id: { entityType: "ALARM", id }, entityId: { entityType: "DEVICE", id: "1" }, severity });
  question.take({ data: { data: [alarm("a"), alarm("b")], totalElements: 2 } } as unknown as LiveUpdate);
  question.take({ update: [alarm("b", "MAJOR")] } as unknown as LiveUpdate);
  expect(question.answer()).toEqual([alarm("a"), alarm("b", "MAJOR")]);
});

test("why there is nothing depends on what was asked", () => {
  const empty = (asked: LiveCommand): string | undefined => {
    const question = new Question(asked);
    question.take({ data: { data: [], totalElements: 0 } } as unknown as LiveUpdate);
    return whyNothing(question);
  };
  const alarms = (pageLink: object): LiveCommand => ({ type: "ALARM_DATA", query: { pageLink: { textSearch: null, ...pageLink } } });
  expect(whyNothing(new Question(entities()))).toBe("The server has not answered yet.");
  expect(empty(entities())).toBe("The alias finds no entity that you may see.");
  expect(empty(entities({ keyFilters: [{}] }))).toBe("No entity fits the alias and the filter together.");
  expect(empty(entities({ pageLink: { textSearch: "x" } }))).toContain("“x”");
  expect(empty(alarms({ severityList: ["CRITICAL"], timeWindow: 1 }))).toContain("severities");
  expect(empty(alarms({ timeWindow: 1 }))).toContain("A longer one");
  expect(empty(alarms({}))).toContain("no alarm");
  const refused = new Question(entities());
  refused.take({ errorCode: 2, errorMsg: "Bad" });
  expect(whyNothing(refused)).toBe("The server refused this: Bad");
});

test("a widget still hears what it asked for, and leaves", () => {
  const heard: LiveUpdate[] = [];
  let tell: (update: LiveUpdate) => void = () => undefined;
  let ended = 0;
  const subscribe = askedBy("w", (_command, onUpdate) => ((tell = onUpdate), () => void (ended += 1)));
  const end = subscribe(entities(), (update) => heard.push(update));
  tell({ cmdId: 1 });
  end();
  expect([heard, ended]).toEqual([[{ cmdId: 1 }], 1]);
});
