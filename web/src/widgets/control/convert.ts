// From what a device or the server says to the value of a control, and back. Functions run in the sandbox.

import { callInSandbox } from "@/sandbox/calls";
import { t } from "@/i18n";
import type { Getter, Setter } from "./settings";

/** A value, and why it is not what a function should have made of it. */
export interface Converted {
  value: unknown;
  problem?: string;
}

/** Reads a stored value, which comes as text. */
export function parsed(value: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

/** Runs a function with one parameter. Where it fails, the value stays and the reason is told. */
export async function applied(body: string, names: readonly string[], ...args: unknown[]): Promise<Converted> {
  const [result] = await callInSandbox({ body, names: [...names], calls: [args] });
  const problem = result === undefined ? t("it took too long") : result.error;
  return problem === undefined ? { value: result?.value } : { value: args[0], problem: t("A function of this widget failed: {problem}", { problem }) };
}

/** Returns the state or value that a control has by what came. */
export function judged(value: unknown, on: Getter["on"]): unknown {
  return on === undefined ? value : on === "truthy" ? Boolean(value) : value === on.equals;
}

/** Makes the value of a control of what came. */
export async function toValue(getter: Getter, data: unknown): Promise<Converted> {
  if (getter.action === "DO_NOTHING") {
    return { value: data };
  }
  if (getter.action === "GET_ALARM_STATUS") {
    return { value: data === true };
  }
  if (getter.body === undefined) {
    return { value: judged(data, getter.on) };
  }
  const made = await applied(getter.body, ["data"], typeof data === "string" ? parsed(data) : data);
  return { ...made, value: judged(made.value, getter.on) };
}

/** Makes what is sent of a new value. A function that fails sends nothing. */
export async function toData(setter: Setter, value: unknown): Promise<unknown> {
  switch (setter.data) {
    case "VALUE":
      return value;
    case "CONSTANT":
      return setter.constant ?? null;
    case "NONE":
      return null;
    case "FUNCTION": {
      const made = setter.body === undefined ? { value } : await applied(setter.body, ["value"], value);
      if (made.problem !== undefined) {
        throw new Error(made.problem);
      }
      return made.value;
    }
  }
}
