import { expect, test } from "vitest";
import type { FormField } from "@/ui/form/values";
import { filterForm, filtersSet, filterTexts, TIME_FILTERS, timesOf } from "@/ui/list/filterValues";
import { ACTION_FILTER, auditPath, fitting, WHOSE_FILTERS } from "./auditFilters";
import { EVENT_FILTERS, eventFields, eventFilter, isUnfinished, NODE_FILTERS } from "./eventFilters";

const ID = "01a221b3-986f-73ad-abb6-32a6b4d28b58";

test("filters are the same after their way through the address, and what is hidden filters nothing", () => {
  const fields: readonly FormField[] = [
    { name: "text", label: "", type: "text" }, { name: "flag", label: "", type: "boolean" }, { name: "n", label: "", type: "number" }, { name: "many", label: "", type: "several" },
    { name: "who", label: "", type: "entity" }, { name: "hidden", label: "", when: () => false },
  ];
  const form = { text: "a/b", flag: true, n: 0, many: ["ADDED", "LOGIN"], who: { entityType: "USER", id: ID }, hidden: "x" };
  const texts = filterTexts(fields, form);
  expect(texts).toEqual({ text: "a/b", flag: "true", n: "0", many: "ADDED,LOGIN", who: `USER/${ID}`, hidden: "" });
  expect(filterForm(fields, texts)).toEqual({ ...form, hidden: "" });
  expect(filtersSet(fields, texts)).toBe(5);
  expect(filterForm(fields, { n: "x", who: "USER" })).toMatchObject({ n: null, who: null, flag: false, many: [] });
});

test("moments go before the time up to now, whose last minute is whole", () => {
  expect(timesOf({}, undefined, 1_000)).toEqual({});
  expect(timesOf({}, 400, 1_000)).toEqual({ startTime: 600 });
  expect(timesOf({ last: "100" }, 400, 1_000)).toEqual({ startTime: 900 });
  expect(timesOf({ last: "100", to: "60000" }, 400, 1_000)).toEqual({ endTime: 119_999 });
  expect(timesOf({ from: "7", to: "nonsense" }, 400, 1_000)).toEqual({ startTime: 7 });
});

test("events are asked for with the filters of their type alone, each with its type of value", () => {
  const texts = { msgDirectionType: "IN", isError: "true", msgId: ID, entityId: "half an i", minErrorsOccurred: "3", event: "STARTED" };
  expect(eventFilter("DEBUG_RULE_NODE", eventFields("DEBUG_RULE_NODE"), texts)).toEqual({ eventType: "DEBUG_RULE_NODE", msgDirectionType: "IN", isError: true, msgId: ID });
  expect(eventFilter("STATS", eventFields("STATS"), texts)).toEqual({ eventType: "STATS", minErrorsOccurred: 3 });
  expect(eventFilter("LC_EVENT", eventFields("LC_EVENT"), { ...texts, status: "Failure" })).toEqual({ eventType: "LC_EVENT", event: "STARTED", status: "Failure" });
  expect(eventFilter("STATS", eventFields("STATS"), { minErrorsOccurred: "many" })).toEqual({ eventType: "STATS" });
  expect(isUnfinished(eventFields("DEBUG_RULE_NODE"), texts), "half an id").toBe(true);
  expect(isUnfinished(eventFields("DEBUG_RULE_NODE"), { ...texts, entityId: ID })).toBe(false);
  expect(isUnfinished(eventFields("LC_EVENT"), texts), "no filter of this type").toBe(false);
  expect(isUnfinished([...TIME_FILTERS, ...eventFields("STATS")], { from: "x" })).toBe(true);
  expect(isUnfinished(eventFields("STATS"), { minErrorsOccurred: "many" })).toBe(true);
  expect(EVENT_FILTERS).toEqual(expect.arrayContaining(["dataSearch", "metadataSearch", "arguments", "result", "message", "method", "maxMessagesProcessed", "relationType", "errorStr"]));
  expect(NODE_FILTERS.map(({ name }) => name)).not.toContain("msgDirectionType");
});

test("the audit log is asked for by one user, customer or entity", () => {
  expect(auditPath(undefined, {})).toBe("/api/audit/logs");
  expect(auditPath(undefined, { who: `USER/${ID}` })).toBe(`/api/audit/logs/user/${ID}`);
  expect(auditPath(undefined, { who: `CUSTOMER/${ID}` })).toBe(`/api/audit/logs/customer/${ID}`);
  expect(auditPath(undefined, { who: `DEVICE/${ID}` })).toBe(`/api/audit/logs/entity/DEVICE/${ID}`);
  expect(auditPath({ entityType: "USER", id: ID }, { who: "DEVICE/x" })).toBe(`/api/audit/logs/entity/USER/${ID}`);
  expect(fitting({ whose: "customer", who: `USER/${ID}`, actions: "LOGIN" })).toEqual({ whose: "customer", who: "", actions: "LOGIN" });
  expect(fitting({ whose: "DEVICE", who: `DEVICE/${ID}` })["who"]).toBe(`DEVICE/${ID}`);
  expect(WHOSE_FILTERS.filter(({ when }) => when?.({ whose: "user" }) === true)).toHaveLength(1);
  expect(ACTION_FILTER.options).toContain("LOGIN");
});
