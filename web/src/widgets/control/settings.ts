// How a control gets its value and what it does with a new one, read from its settings without trust.

import { list, number, object, text, type Json } from "@/dashboard/model";
import { bodyOf } from "@/dashboard/actions";

export const GET_ACTIONS = [
  "DO_NOTHING", "EXECUTE_RPC", "GET_ATTRIBUTE", "GET_TIME_SERIES", "GET_ALARM_STATUS", "GET_DASHBOARD_STATE", "GET_DASHBOARD_STATE_OBJECT",
] as const;
export const SET_ACTIONS = ["EXECUTE_RPC", "SET_ATTRIBUTE", "ADD_TIME_SERIES"] as const;
const DATA_TYPES = ["VALUE", "CONSTANT", "FUNCTION", "NONE"] as const;
const SCOPES = ["SERVER_SCOPE", "SHARED_SCOPE", "CLIENT_SCOPE"] as const;

export type AttributeScope = (typeof SCOPES)[number];

export interface RpcOptions {
  method: string;
  timeoutMs: number;
  persistent: boolean;
  /** How often the state of a stored command is asked for. */
  pollingMs: number;
}

export interface Getter {
  action: (typeof GET_ACTIONS)[number];
  defaultValue: unknown;
  rpc: RpcOptions;
  key: string;
  /** Which attributes are meant; all if there is none. */
  scope: AttributeScope | undefined;
  severities: string[];
  alarmTypes: string[];
  /** Function of what came, with the name of its parameter. */
  body: string | undefined;
  /** What the value must be for a state to be on; `truthy` takes anything that isn't empty. None for values that are no states. */
  on: { equals: unknown } | "truthy" | undefined;
}

export interface Setter {
  action: (typeof SET_ACTIONS)[number];
  rpc: RpcOptions;
  /** Whether the answer of the device is waited for. */
  twoWay: boolean;
  key: string;
  scope: AttributeScope;
  data: (typeof DATA_TYPES)[number];
  constant: unknown;
  body: string | undefined;
}

/** Times of polling below this would only burden the server. */
const LEAST_POLLING_MS = 1_000;

export function oneOf<T extends string>(values: readonly T[], value: unknown): T | undefined {
  return values.find((one) => one === value);
}

export function scopeOf(value: unknown): AttributeScope | undefined {
  return oneOf(SCOPES, value);
}

export function rpcOf(value: unknown, method: string): RpcOptions {
  const rpc = object(value);
  return {
    method: text(rpc["method"]) ?? method,
    timeoutMs: Math.max(0, number(rpc["requestTimeout"]) ?? 5_000),
    persistent: rpc["requestPersistent"] === true,
    pollingMs: Math.max(LEAST_POLLING_MS, number(rpc["persistentPollingInterval"]) ?? 0),
  };
}

/** Reads how a state (on or off) or another value is had; settings without it ask the device, as ThingsBoard does. */
export function getterOf(value: unknown, kind: "state" | "value", otherwise: Getter["action"] = "EXECUTE_RPC"): Getter {
  const settings = object(value);
  const action = oneOf(GET_ACTIONS, settings["action"]) ?? otherwise;
  const source = object(settings[action === "GET_TIME_SERIES" ? "getTimeSeries" : "getAttribute"]);
  const alarm = object(settings["getAlarmStatus"]);
  const convert = object(settings["dataToValue"]);
  return {
    action,
    defaultValue: settings["defaultValue"] ?? (kind === "state" ? false : undefined),
    rpc: rpcOf(settings["executeRpc"], "getState"),
    key: text(source["key"]) ?? "state",
    scope: scopeOf(source["scope"]),
    severities: list(alarm["severityList"]).map(String),
    alarmTypes: list(alarm["typeList"]).map(String),
    body: convert["type"] === "FUNCTION" ? bodyOf(convert["dataToValueFunction"]) : undefined,
    on: kind === "state" ? { equals: convert["compareToValue"] ?? true } : undefined,
  };
}

/** Reads what is done with a new value. */
export function setterOf(value: unknown, otherwise: { data: Setter["data"]; constant?: unknown } = { data: "VALUE" }): Setter {
  const settings = object(value);
  const action = oneOf(SET_ACTIONS, settings["action"]) ?? "EXECUTE_RPC";
  const target = object(settings[action === "ADD_TIME_SERIES" ? "putTimeSeries" : "setAttribute"]);
  const convert = object(settings["valueToData"]);
  return {
    action,
    rpc: rpcOf(settings["executeRpc"], "setState"),
    twoWay: false,
    key: text(target["key"]) ?? "state",
    scope: scopeOf(target["scope"]) ?? "SERVER_SCOPE",
    data: oneOf(DATA_TYPES, convert["type"]) ?? otherwise.data,
    constant: convert["type"] === undefined ? otherwise.constant : convert["constantValue"],
    body: bodyOf(convert["valueToDataFunction"]),
  };
}

/** Times and storing of the older controls, whose settings lie beside all others. */
function olderRpc(settings: Json, method: string): RpcOptions {
  return { ...rpcOf(settings, method), method, timeoutMs: number(settings["requestTimeout"]) ?? 500, pollingMs: Math.max(LEAST_POLLING_MS, number(settings["persistentPollingInterval"]) ?? 5_000) };
}

const OLDER_WAYS: Record<string, Getter["action"]> = { none: "DO_NOTHING", rpc: "EXECUTE_RPC", attribute: "GET_ATTRIBUTE", timeseries: "GET_TIME_SERIES" };

/** Reads how an older switch or lamp gets its state. */
export function olderGetter(settings: Json, otherwise: "rpc" | "attribute"): Getter {
  return {
    action: OLDER_WAYS[text(settings["retrieveValueMethod"]) ?? otherwise] ?? "DO_NOTHING",
    defaultValue: settings["initialValue"] === true,
    rpc: olderRpc(settings, text(settings["getValueMethod"]) ?? "getValue"),
    key: text(settings["valueKey"]) ?? text(settings["valueAttribute"]) ?? "value",
    scope: undefined,
    severities: [],
    alarmTypes: [],
    body: bodyOf(settings["parseValueFunction"]),
    on: "truthy",
  };
}

/** Reads what an older switch or knob does with a new value. */
export function olderSetter(settings: Json): Setter {
  const body = bodyOf(settings["convertValueFunction"]);
  return {
    action: "EXECUTE_RPC",
    rpc: olderRpc(settings, text(settings["setValueMethod"]) ?? "setValue"),
    twoWay: false,
    key: "",
    scope: "SERVER_SCOPE",
    data: body === undefined ? "VALUE" : "FUNCTION",
    constant: undefined,
    body,
  };
}

/** Reads what the older command button sends. */
export function olderCommand(settings: Json): Setter {
  const params = text(settings["methodParams"]) ?? "{}";
  let constant: unknown = params;
  try {
    constant = JSON.parse(params);
  } catch {
    // Parameters that are no JSON go as the text that they are.
  }
  return {
    ...olderSetter({ ...settings, setValueMethod: settings["methodName"] }),
    rpc: olderRpc({ requestTimeout: 5_000, ...settings }, text(settings["methodName"]) ?? "rpcCommand"),
    twoWay: settings["oneWayElseTwoWay"] !== true,
    data: "CONSTANT",
    constant,
    body: undefined,
  };
}
