// What the broker's administration says and takes, as people read and write it.

import type { Answers, BlockedClientInfo, MqttAuthProvider, MqttClientCredentials, SubscriptionInfo } from "@/api/schema.gen";
import type { Query } from "@/api/client";
import { formatNumber, t } from "@/i18n";
import { isObject, type FormField, type FormValues } from "@/ui/form/values";

/** A session with its subscriptions. */
export type SessionDetails = Extract<Answers["GET /api/client-session"], { keepAliveSeconds: number }>;
export type SharedSubscription = Extract<Answers["GET /api/subscription"], { data: unknown[] }>["data"][number];

/** What queries of the broker are kept under, besides those of lists. */
export const BROKER_DATA = "broker data";
/** How often lists of what changes by itself are asked for anew, milliseconds. */
export const LIST_EVERY_MS = 10_000;

export const CLIENT_TYPES = [
  { value: "DEVICE", label: "Device" },
  { value: "APPLICATION", label: "Application" },
];
export const CREDENTIALS_TYPES = [
  { value: "MQTT_BASIC", label: "Name and password (MQTT)" },
  { value: "X_509", label: "Certificate (X.509)" },
  { value: "SCRAM", label: "SCRAM (MQTT 5)" },
];
export const STATES = [
  { value: "CONNECTED", label: "Connected" },
  { value: "DISCONNECTED", label: "Disconnected" },
];
export const BLOCK_TYPES = [
  { value: "CLIENT_ID", label: "Client ID" },
  { value: "USERNAME", label: "User name" },
  { value: "IP_ADDRESS", label: "IP address" },
  { value: "REGEX", label: "Regular expression" },
];
export const BLOCK_TARGETS = [
  { value: "BY_CLIENT_ID", label: "Client ID" },
  { value: "BY_USERNAME", label: "User name" },
  { value: "BY_IP_ADDRESS", label: "IP address" },
];
export const BLOCK_STATUS = [
  { value: "ACTIVE", label: "Active" },
  { value: "EXPIRED", label: "Expired" },
  { value: "DELETING_SOON", label: "Expired, deleted soon" },
];
export const QOS = [
  { value: "0", label: "0: at most once" },
  { value: "1", label: "1: at least once" },
  { value: "2", label: "2: exactly once" },
];
export const RETAIN_HANDLING = [
  { value: "0", label: "Sent at each subscribing" },
  { value: "1", label: "Sent if the subscription is new" },
  { value: "2", label: "Not sent" },
];
export const YES_NO = [
  { value: "true", label: "Yes" },
  { value: "false", label: "No" },
];

interface Choice {
  value: string;
  label: string;
}

/** Returns the words for a value; what isn't known stands for itself. */
export const wordFor = (choices: readonly Choice[], value: string | null | undefined): string => t(choices.find((choice) => choice.value === value)?.label ?? value ?? "");

export const yesNo = (value: boolean): string => t(value ? "Yes" : "No");

const QOS_NAMES: readonly string[] = ["AT_MOST_ONCE", "AT_LEAST_ONCE", "EXACTLY_ONCE"];
export const qosOf = (name: string): number => QOS_NAMES.indexOf(name);

/** Seconds that mean that a session has no end. */
const FOR_EVER_S = 0xffff_ffff;

/** Says for how long a session outlives its connection. */
export function expiryText(seconds: number): string {
  return seconds === 0 ? t("none: it ends with the connection") : seconds >= FOR_EVER_S ? t("without end") : t("{n} s", { n: seconds });
}

/** Writes a payload: JSON in lines, all else as it is. */
export function payloadText(payload: string): string {
  try {
    const value: unknown = JSON.parse(payload);
    return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : payload;
  } catch {
    return payload;
  }
}

/** The last moment that lists with an open end are asked for. */
const LATEST = 253_402_300_799_000;

/** Returns a period, of which the server wants both ends. */
export function periodOf({ from, to }: Readonly<Record<string, string>>): Query {
  const [start, end] = [Number(from), Number(to)];
  return start > 0 || end > 0 ? { startTime: start > 0 ? start : 0, endTime: end > 0 ? end + 59_999 : LATEST } : {};
}

/** Returns what the list of sessions is asked for. */
export function sessionQuery(filters: Readonly<Record<string, string>>): Query {
  const least = filters["subscriptions"] ?? "";
  return {
    connectedStatusList: filters["state"],
    clientTypeList: filters["type"],
    cleanStartList: filters["clean"],
    clientIpAddress: filters["ip"],
    ...(least === "" ? {} : { subscriptions: Number(least), subscriptionOperation: "GREATER_OR_EQUAL" }),
    ...periodOf(filters),
  };
}

/** Reads one expression of each line. */
export const linesOf = (text: unknown): string[] =>
  String(text ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

const textOf = (lines: unknown): string => (Array.isArray(lines) ? lines.map(String).join("\n") : "");

interface Rules {
  pubAuthRulePatterns: string[];
  subAuthRulePatterns: string[];
}

export const rulesOf = ({ publish, subscribe }: FormValues): Rules => ({ pubAuthRulePatterns: linesOf(publish), subAuthRulePatterns: linesOf(subscribe) });

export function ruleTexts(rules: unknown): { publish: string; subscribe: string } {
  const lists = isObject(rules) ? rules : {};
  return { publish: textOf(lists["pubAuthRulePatterns"] ?? lists["pub"]), subscribe: textOf(lists["subAuthRulePatterns"] ?? lists["sub"]) };
}

const ALL_TOPICS = ".*";
export const RULE_FIELDS: readonly FormField[] = [
  { name: "publish", label: "Topics to publish on", type: "long", initial: ALL_TOPICS, help: "Regular expressions, one a line. “.*” permits all topics; an empty field permits none." },
  { name: "subscribe", label: "Filters to subscribe to", type: "long", initial: ALL_TOPICS, help: "Regular expressions that have to match the filter, one a line." },
];

const is = (...types: string[]) => (values: FormValues): boolean => types.includes(String(values["credentialsType"]));

/** The form of credentials; their type is chosen once. */
export function credentialsFields(isNew: boolean): FormField[] {
  const fields: (FormField & { once?: boolean })[] = [
    { name: "name", label: "Name", required: true },
    { name: "clientType", label: "Client type", type: "select", required: true, initial: "DEVICE", options: CLIENT_TYPES, help: "Messages for applications wait in longer queues." },
    { name: "credentialsType", label: "Kind of credentials", type: "select", required: true, initial: "MQTT_BASIC", options: CREDENTIALS_TYPES, once: true },
    { name: "clientId", label: "Client ID", when: is("MQTT_BASIC"), help: "One of client ID and user name is needed." },
    { name: "userName", label: "User name", when: is("MQTT_BASIC", "SCRAM") },
    { name: "password", label: "Password", type: "password", when: is("MQTT_BASIC"), once: true, help: "Without one, every password is right." },
    { name: "algorithm", label: "Algorithm", type: "select", required: true, initial: "SHA_256", options: [{ value: "SHA_256", label: "SHA-256" }, { value: "SHA_512", label: "SHA-512" }], when: is("SCRAM") },
    { name: "password", label: "Password", type: "password", when: is("SCRAM"), ...(isNew ? {} : { help: "Stays as it is when empty" }) },
    { name: "certCnPattern", label: "Common name of the certificate", required: true, when: is("X_509") },
    { name: "certCnIsRegex", label: "The common name is a regular expression", type: "boolean", when: is("X_509") },
    ...RULE_FIELDS.map((field) => ({ ...field, when: is("MQTT_BASIC", "SCRAM") })),
    {
      name: "groups", label: "Rules by common name", type: "rows", when: is("X_509"), help: "An expression that is looked for in the common name chooses the rules. “${cn}” in a rule stands for the common name.",
      fields: [{ name: "match", label: "Expression for the common name", required: true, initial: ALL_TOPICS }, ...RULE_FIELDS], initial: [{ match: ALL_TOPICS, publish: ALL_TOPICS, subscribe: ALL_TOPICS }],
    },
    { name: "description", label: "Description", type: "long" },
  ];
  return fields.filter((field) => isNew || field.once !== true);
}

function valueOf(text: string): FormValues {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Returns the form of stored credentials. */
export function credentialsForm(stored: MqttClientCredentials): FormValues {
  const { authRules, authRulesMapping, ...value } = valueOf(stored.credentialsValue);
  const info = isObject(stored.additionalInfo) ? stored.additionalInfo : {};
  const own = stored.credentialsType === "X_509"
    ? { groups: Object.entries(isObject(authRulesMapping) ? authRulesMapping : {}).map(([match, rules]) => ({ match, ...ruleTexts(rules) })) }
    : ruleTexts(authRules);
  return { ...value, ...own, name: stored.name, clientType: stored.clientType, credentialsType: stored.credentialsType, description: info["description"] ?? "" };
}

/** Whether credentials have a password, which is never shown. */
export const hasPassword = ({ additionalInfo }: MqttClientCredentials): boolean => isObject(additionalInfo) && additionalInfo["mqttBasicPasswordIsSet"] === true;

const given = (values: FormValues): FormValues => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== ""));

function credentialsValue(values: FormValues): FormValues {
  const { clientId, userName, password, algorithm, certCnPattern, certCnIsRegex, groups } = values;
  switch (values["credentialsType"]) {
    case "X_509": {
      const rows = Array.isArray(groups) ? groups.filter(isObject) : [];
      return { certCnPattern, certCnIsRegex: certCnIsRegex === true, authRulesMapping: Object.fromEntries(rows.map((row) => [String(row["match"] ?? ""), rulesOf(row)])) };
    }
    case "SCRAM":
      return { ...given({ userName, algorithm, password }), authRules: rulesOf(values) };
    default:
      return { ...given({ clientId, userName, password }), authRules: rulesOf(values) };
  }
}

/** Returns what is saved of a form of credentials; `stored` is what it began with. */
export function credentialsOf(values: FormValues, stored?: MqttClientCredentials): FormValues {
  const info = isObject(stored?.additionalInfo) ? stored.additionalInfo : {};
  return {
    ...(stored === undefined ? {} : { id: stored.id, createdTime: stored.createdTime, credentialsId: stored.credentialsId }),
    name: values["name"],
    clientType: values["clientType"],
    credentialsType: values["credentialsType"],
    credentialsValue: JSON.stringify(credentialsValue(values)),
    additionalInfo: { ...info, description: values["description"] ?? "" },
  };
}

export const BLOCK_FIELDS: readonly FormField[] = [
  { name: "type", label: "Blocked by", type: "select", required: true, initial: "CLIENT_ID", options: BLOCK_TYPES },
  { name: "value", label: "Value", required: true, help: "The client ID, user name or address; or a regular expression that has to match as a whole." },
  { name: "regexMatchTarget", label: "The expression looks at", type: "select", required: true, initial: "BY_CLIENT_ID", options: BLOCK_TARGETS, when: ({ type }) => type === "REGEX" },
  { name: "expirationTime", label: "Until", type: "time", help: "For ever when empty" },
  { name: "description", label: "Description" },
];

/** Returns what is asked for to block clients. */
export function blockOf(values: FormValues): FormValues {
  const { type, value, regexMatchTarget, expirationTime, description } = values;
  return given({ type, value, description, expirationTime: expirationTime ?? 0, regexMatchTarget: type === "REGEX" ? regexMatchTarget : null });
}

/** What names a block, also for its end. */
export const blockKey = ({ type, value, regexMatchTarget }: BlockedClientInfo): Query => ({ type, value, ...(regexMatchTarget == null ? {} : { regexMatchTarget }) });

/** Subscriptions as their form has them, and the other way round. */
export const subscriptionRows = (subscriptions: readonly SubscriptionInfo[]): FormValues[] =>
  subscriptions.map(({ topicFilter, qos, options, subscriptionId }) => ({
    topicFilter, qos: String(qosOf(qos)), noLocal: options?.noLocal === true, retainAsPublish: options?.retainAsPublish === true, retainHandling: String(options?.retainHandling ?? 0), subscriptionId: subscriptionId ?? null,
  }));

export function subscriptionsOf(rows: unknown): FormValues[] {
  return (Array.isArray(rows) ? rows.filter(isObject) : []).map(({ topicFilter, qos, noLocal, retainAsPublish, retainHandling, subscriptionId }) => ({
    topicFilter: String(topicFilter ?? ""), qos: QOS_NAMES[Number(qos)] ?? QOS_NAMES[0], subscriptionId: subscriptionId ?? null,
    options: { noLocal: noLocal === true, retainAsPublish: retainAsPublish === true, retainHandling: Number(retainHandling ?? 0) },
  }));
}

export const PROVIDERS: readonly (Choice & { hint: string })[] = [
  { value: "MQTT_BASIC", label: "Name and password (MQTT)", hint: "By client ID, user name and password, with the client credentials." },
  { value: "X_509", label: "Certificate (X.509)", hint: "By the certificates that clients present, with the client credentials." },
  { value: "JWT", label: "Token (JWT)", hint: "By a signed token that the client sends as its password." },
  { value: "HTTP", label: "Other server (HTTP)", hint: "By the answer of a server, which gets what the client says." },
  { value: "SCRAM", label: "SCRAM (MQTT 5)", hint: "By a proof that the client knows its password, whenever it offers one." },
];

const METHODS = ["POST", "PUT", "PATCH", "GET"].map((value) => ({ value, label: value }));

const PROVIDER_FIELDS: Readonly<Record<string, readonly FormField[]>> = {
  MQTT_BASIC: [
    {
      name: "authStrategy", label: "Clients are looked up by", type: "select", required: true,
      options: [{ value: "CLIENT_ID", label: "Client ID" }, { value: "USERNAME", label: "User name" }, { value: "CLIENT_ID_AND_USERNAME", label: "Each alone, and both together" }],
    },
  ],
  X_509: [
    {
      name: "clientAuthType", label: "Certificates of clients", type: "select", required: true,
      options: [{ value: "CLIENT_AUTH_NONE", label: "Not looked at" }, { value: "CLIENT_AUTH_REQUESTED", label: "Looked at where there is one" }, { value: "CLIENT_AUTH_REQUIRED", label: "Demanded of clients that use TLS" }],
    },
    { name: "skipValidityCheckForClientCert", label: "Take certificates out of their time, too", type: "boolean" },
  ],
  JWT: [
    { name: "defaultClientType", label: "Client type", type: "select", required: true, options: CLIENT_TYPES },
    { name: "jwtVerifierConfiguration", label: "Key that tokens are checked with", type: "json", help: "A stored secret is not shown, and stays when it is left out." },
    { name: "authClaims", label: "Claims that a token must have", type: "json" },
    { name: "clientTypeClaims", label: "Claims that make the client one of the other type", type: "json" },
    ...RULE_FIELDS,
    { name: "pubAuthRuleClaim", label: "Claim with topics to publish on" },
    { name: "subAuthRuleClaim", label: "Claim with filters to subscribe to" },
  ],
  HTTP: [
    { name: "restEndpointUrl", label: "Address of the server", required: true },
    { name: "requestMethod", label: "Method", type: "suggest", options: METHODS },
    { name: "requestBody", label: "Body of the request", type: "long", help: "${clientId}, ${username}, ${password} and ${commonName} stand for what the client says." },
    { name: "headers", label: "Headers", type: "json" },
    { name: "credentials", label: "Credentials for the server", type: "json", help: "A stored secret is not shown, and stays when it is left out." },
    { name: "readTimeoutMs", label: "Longest time for an answer, ms", type: "number", least: 0 },
    { name: "maxParallelRequestsCount", label: "Requests at once", type: "number", least: 1, most: 256 },
    { name: "defaultClientType", label: "Client type", type: "select", required: true, options: CLIENT_TYPES },
    ...RULE_FIELDS,
  ],
};

/** The settings of a provider; SCRAM has none. What a provider has of no topics permits none, so that nothing is filled in. */
export const providerFields = (type: string): FormField[] => (PROVIDER_FIELDS[type] ?? []).map(({ initial: _, ...field }) => field);

const hasRules = (type: string): boolean => (PROVIDER_FIELDS[type] ?? []).some(({ name }) => name === "publish");

export function providerForm({ type, configuration }: MqttAuthProvider): FormValues {
  const { authRules, ...rest } = isObject(configuration) ? configuration : {};
  return hasRules(type) ? { ...rest, ...ruleTexts(authRules) } : rest;
}

/** Returns a provider with other settings. */
export function providerOf(stored: MqttAuthProvider, values: FormValues): MqttAuthProvider {
  const { publish, subscribe, ...rest } = values;
  return { ...stored, configuration: hasRules(stored.type) ? { ...rest, authRules: rulesOf({ publish, subscribe }) } : rest };
}

/** Returns providers in the order in which they are asked; those that aren't asked come last. */
export function inOrder<T extends { type: string }>(providers: readonly T[], order: readonly string[]): T[] {
  const place = ({ type }: T): number => (order.includes(type) ? order.indexOf(type) : order.length);
  return [...providers].sort((a, b) => place(a) - place(b));
}

/** Returns the order with one provider a place further to the front; one that was not asked comes last. */
export function movedUp(order: readonly string[], type: string): string[] {
  const at = order.indexOf(type);
  return at < 0 ? [...order, type] : at === 0 ? [...order] : [...order.slice(0, at - 1), type, ...order.slice(at - 1, at), ...order.slice(at + 1)];
}

/** Returns the order of the setting. */
export function orderOf(setting: unknown): string[] {
  const list = isObject(setting) ? setting["priorities"] : undefined;
  return Array.isArray(list) ? list.map(String) : [];
}

/** The latest value of a statistic. */
export function latestOf(statistics: Record<string, { value?: unknown }[]> | undefined, key: string): number | undefined {
  const value = statistics?.[key]?.[0]?.value;
  return value === undefined ? undefined : Number(value);
}

/** Writes counts by quality of service. */
export function byQos(statistics: Record<string, { value?: unknown }[]> | undefined, what: "ReceivedPubMsgs" | "SentPubMsgs"): string {
  const counts = [0, 1, 2].map((qos) => latestOf(statistics, `qos${qos}${what}`) ?? 0);
  return t("{n} (QoS 0: {a}, 1: {b}, 2: {c})", { n: formatNumber(counts.reduce((sum, count) => sum + count, 0)), a: counts[0] ?? 0, b: counts[1] ?? 0, c: counts[2] ?? 0 });
}
