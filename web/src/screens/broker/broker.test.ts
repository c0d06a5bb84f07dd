import { expect, test } from "vitest";
import type { MqttClientCredentials } from "@/api/schema.gen";
import { menuFor } from "@/app/menu";
import { initialValues, type FormValues } from "@/ui/form/values";
import { blockKey, blockOf, byQos, credentialsFields, credentialsForm, credentialsOf, expiryText, hasPassword, inOrder, linesOf, movedUp, orderOf, payloadText, periodOf, providerForm, providerOf, sessionQuery, subscriptionRows, subscriptionsOf } from "./model";

const paths = (hasBroker: boolean): string[] => menuFor("SYS_ADMIN", hasBroker).flatMap(({ items }) => items.map(({ path }) => path));

test("the menu has the broker only where one runs, and one entry for it", () => {
  expect(paths(false).filter((path) => path.startsWith("/broker"))).toEqual([]);
  expect(paths(true).filter((path) => path.startsWith("/broker"))).toEqual(["/broker"]);
  expect(paths(true).filter((path) => path !== "/broker")).toEqual(paths(false));
  expect(menuFor("TENANT_ADMIN", true)).toEqual(menuFor("TENANT_ADMIN"));
});

test("filters become what the list of sessions is asked for, with both ends of a period", () => {
  expect(sessionQuery({ state: "CONNECTED", type: "", subscriptions: "2" })).toEqual({ connectedStatusList: "CONNECTED", clientTypeList: "", subscriptions: 2, subscriptionOperation: "GREATER_OR_EQUAL" });
  expect(periodOf({})).toEqual({});
  expect(periodOf({ from: "60000" })).toEqual({ startTime: 60_000, endTime: 253_402_300_799_000 });
  expect(periodOf({ to: "60000" })).toEqual({ startTime: 0, endTime: 119_999 });
});

const stored = (credentialsType: MqttClientCredentials["credentialsType"], value: unknown, additionalInfo: unknown = {}): MqttClientCredentials => ({
  id: "1", createdTime: 5, credentialsId: "x", name: "Pump", clientType: "DEVICE", credentialsType, credentialsValue: JSON.stringify(value), additionalInfo,
});
const valueOf = (saved: FormValues): unknown => JSON.parse(String(saved["credentialsValue"]));

test("credentials go through their form unchanged, whatever their type", () => {
  const rules = { pubAuthRulePatterns: ["a{1,2}/.*", "b"], subAuthRulePatterns: [] };
  const values = {
    MQTT_BASIC: { clientId: "pump-7", userName: "pumps", authRules: rules },
    SCRAM: { userName: "pumps", algorithm: "SHA_512", authRules: rules },
    X_509: { certCnPattern: "pump-.*", certCnIsRegex: true, authRulesMapping: { ".*": rules } },
  } as const;
  for (const [type, value] of Object.entries(values)) {
    const before = stored(type as keyof typeof values, value, { description: "in the cellar", other: 1 });
    const saved = credentialsOf(credentialsForm(before), before);
    expect(valueOf(saved), type).toEqual(value);
    expect(saved).toMatchObject({ id: "1", name: "Pump", clientType: "DEVICE", credentialsType: type, additionalInfo: { description: "in the cellar", other: 1 } });
  }
});

test("new credentials permit all topics, and what is left empty is not sent", () => {
  const begun = initialValues(credentialsFields(true), {});
  expect(begun).toMatchObject({ credentialsType: "MQTT_BASIC", clientType: "DEVICE", publish: ".*", subscribe: ".*" });
  const saved = credentialsOf({ ...begun, name: "New", userName: "me", clientId: "", password: "secret" });
  expect(valueOf(saved)).toEqual({ userName: "me", password: "secret", authRules: { pubAuthRulePatterns: [".*"], subAuthRulePatterns: [".*"] } });
  expect(saved).not.toHaveProperty("id");
  // An empty field permits nothing: it must not be filled in again when the form is opened.
  const opened = initialValues(credentialsFields(false), credentialsForm(stored("MQTT_BASIC", { userName: "me", authRules: { pubAuthRulePatterns: [], subAuthRulePatterns: null } })));
  expect(opened).toMatchObject({ publish: "", subscribe: "" });
});

test("a stored password is told, but has no field in the form of MQTT basic credentials", () => {
  expect(hasPassword(stored("MQTT_BASIC", {}, { mqttBasicPasswordIsSet: true }))).toBe(true);
  expect(hasPassword(stored("MQTT_BASIC", {}))).toBe(false);
  const shown = (type: string): string[] => credentialsFields(false).flatMap(({ name, when }) => (when?.({ credentialsType: type }) ?? true ? [name] : []));
  expect(shown("MQTT_BASIC")).not.toContain("password");
  expect(shown("SCRAM")).toContain("password");
});

test("rules are lines, so that commas stay in them", () => {
  expect(linesOf(" a{1,2} \n\nb\n")).toEqual(["a{1,2}", "b"]);
  expect(linesOf(null)).toEqual([]);
});

test("a block has a target only as an expression, and is named by what ends it", () => {
  expect(blockOf({ type: "CLIENT_ID", value: "a", regexMatchTarget: "BY_USERNAME", expirationTime: null })).toEqual({ type: "CLIENT_ID", value: "a", expirationTime: 0 });
  expect(blockOf({ type: "REGEX", value: "a.*", regexMatchTarget: "BY_USERNAME", expirationTime: 7, description: "" })).toEqual({ type: "REGEX", value: "a.*", regexMatchTarget: "BY_USERNAME", expirationTime: 7 });
  const block = { type: "CLIENT_ID", value: "a", status: "ACTIVE", expirationTime: 0 } as const;
  expect(blockKey({ ...block, regexMatchTarget: null })).toEqual({ type: "CLIENT_ID", value: "a" });
});

test("subscriptions go through their form unchanged", () => {
  const own = [{ topicFilter: "a/#", qos: "EXACTLY_ONCE", subscriptionId: 4, options: { noLocal: true, retainAsPublish: false, retainHandling: 2 } }] as const;
  expect(subscriptionsOf(subscriptionRows(own))).toEqual(own);
  expect(subscriptionsOf(undefined)).toEqual([]);
});

test("settings of a provider keep what the form does not know", () => {
  const jwt = { type: "JWT", enabled: true, id: "2", additionalInfo: { description: "d" }, configuration: { type: "JWT", authRules: { pubAuthRulePatterns: ["a"], subAuthRulePatterns: [] }, later: 1 } };
  expect(providerOf(jwt, providerForm(jwt))).toEqual(jwt);
  const basic = { type: "MQTT_BASIC", configuration: { type: "MQTT_BASIC", authStrategy: "USERNAME" } };
  expect(providerOf(basic, providerForm(basic))).toEqual(basic);
});

test("providers stand in the order in which they are asked", () => {
  const order = orderOf({ priorities: ["JWT", "MQTT_BASIC"] });
  expect(inOrder([{ type: "HTTP" }, { type: "MQTT_BASIC" }, { type: "JWT" }], order).map(({ type }) => type)).toEqual(["JWT", "MQTT_BASIC", "HTTP"]);
  expect([movedUp(order, "MQTT_BASIC"), movedUp(order, "JWT"), movedUp(order, "HTTP")]).toEqual([["MQTT_BASIC", "JWT"], ["JWT", "MQTT_BASIC"], ["JWT", "MQTT_BASIC", "HTTP"]]);
  expect(orderOf(null)).toEqual([]);
});

test("payloads of JSON are written in lines, and numbers as people read them", () => {
  expect(payloadText('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(["21.50", "on", "{"].map(payloadText)).toEqual(["21.50", "on", "{"]);
  expect([expiryText(0), expiryText(60), expiryText(0xffff_ffff)]).toEqual(["none: it ends with the connection", "60 s", "without end"]);
  expect(byQos({ qos0SentPubMsgs: [{ value: 1 }], qos2SentPubMsgs: [{ value: 2 }] }, "SentPubMsgs")).toBe("3 (QoS 0: 1, 1: 0, 2: 2)");
});
