// What the events of each type can be narrowed by, under the names that the API and ThingsBoard have for it.

import type { FormField } from "@/ui/form/values";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const idProblem = (text: string): string | undefined => (UUID.test(text) ? undefined : "This is no id.");

const SERVER: FormField = { name: "server", label: "Server" };
const ERROR_TEXT: FormField = { name: "errorStr", label: "Text of the error" };
const ONLY_ERRORS: FormField = { name: "isError", label: "Only errors", type: "boolean" };
/** Whom a message or an evaluation was about. */
const ABOUT: FormField[] = [
  {
    name: "entityType", label: "Kind of entity", type: "select",
    options: ["DEVICE", "ASSET", "ENTITY_VIEW", "CUSTOMER", "TENANT", "USER", "DASHBOARD", "RULE_CHAIN", "DEVICE_PROFILE", "ASSET_PROFILE"],
  },
  { name: "entityId", label: "Id of the entity", problem: idProblem },
  { name: "msgId", label: "Id of the message", problem: idProblem },
  { name: "msgType", label: "Type of the message" },
];

const RULE_NODE: FormField[] = [
  { name: "msgDirectionType", label: "Direction", type: "select", options: [{ value: "IN", label: "in" }, { value: "OUT", label: "out" }] },
  ...ABOUT,
  { name: "relationType", label: "Relation type" },
  { name: "dataSearch", label: "Data contain" },
  { name: "metadataSearch", label: "Metadata contain" },
];

const FIELDS: Record<string, readonly FormField[]> = {
  DEBUG_RULE_NODE: [SERVER, ...RULE_NODE, ERROR_TEXT, ONLY_ERRORS],
  DEBUG_CALCULATED_FIELD: [SERVER, ...ABOUT, { name: "arguments", label: "Arguments contain" }, { name: "result", label: "Result contains" }, ERROR_TEXT, ONLY_ERRORS],
  DEBUG_RULE_CHAIN: [SERVER, { name: "message", label: "Message contains" }, ERROR_TEXT, ONLY_ERRORS],
  LC_EVENT: [SERVER, { name: "event", label: "Event" }, { name: "status", label: "Status", type: "select", options: [{ value: "Success", label: "Success" }, { value: "Failure", label: "Failure" }] }, ERROR_TEXT],
  ERROR: [SERVER, { name: "method", label: "Method" }, ERROR_TEXT],
  STATS: [
    SERVER,
    { name: "minMessagesProcessed", label: "Messages, at least", type: "number" },
    { name: "maxMessagesProcessed", label: "Messages, fewer than", type: "number" },
    { name: "minErrorsOccurred", label: "Errors, at least", type: "number" },
    { name: "maxErrorsOccurred", label: "Errors, fewer than", type: "number" },
  ],
};

/** The filters of what rule nodes keep, where the view of nodes says the direction and the errors. */
export const NODE_FILTERS: readonly FormField[] = [...RULE_NODE.slice(1), ERROR_TEXT];

export const eventFields = (type: string): readonly FormField[] => FIELDS[type] ?? [SERVER];

/** The names of all filters, which a list of events keeps in its address. */
export const EVENT_FILTERS: readonly string[] = [...new Set(Object.values(FIELDS).flatMap((fields) => fields.map(({ name }) => name)))];

function isUnusable({ type, problem }: FormField, text: string): boolean {
  const isNumber = type === "number" || type === "time";
  return text !== "" && (problem?.(text) !== undefined || (isNumber && !Number.isFinite(Number(text))));
}

/** Whether a text can't be what it should be: what was asked for without it would be more than what is meant. */
export const isUnfinished = (fields: readonly FormField[], texts: Readonly<Record<string, string>>): boolean => fields.some((field) => isUnusable(field, texts[field.name] ?? ""));

/** Makes the filter that the API takes. Texts that can't be what they should be are left out, as they are still being typed. */
export function eventFilter(type: string, fields: readonly FormField[], texts: Readonly<Record<string, string>>): Record<string, unknown> {
  const set = fields.flatMap((field): [string, unknown][] => {
    const { name, type: kind } = field;
    const text = texts[name] ?? "";
    if (text === "" || isUnusable(field, text)) {
      return [];
    }
    return [[name, kind === "boolean" ? text === "true" : kind === "number" ? Number(text) : text]];
  });
  return { eventType: type, ...Object.fromEntries(set) };
}
