import { expect, test, vi } from "vitest";
import { judged, parsed, toData, toValue } from "./convert";
import { pinParams, pinsOf } from "./Gpio";
import { shareAt } from "./Knob";
import { snapped, stepped } from "./numbers";
import { outcomeOf, reasonOf } from "./rpc";
import { getterOf, olderCommand, olderGetter, setterOf } from "./settings";
import { commandOf } from "./Terminal";
import { runShell } from "./shell";
import { ApiError } from "@/api/client";

vi.mock("@/sandbox/calls", () => ({
  SANDBOX_PAGE: "",
  callInSandbox: ({ body, names, calls }: { body: string; names: string[]; calls: unknown[][] }) =>
    Promise.resolve(
      calls.map((args) => {
        try {
          return { value: (new Function(...names, body) as (...args: unknown[]) => unknown)(...args) };
        } catch (error) {
          return { error: String(error) };
        }
      }),
    ),
}));

test("what comes becomes a state or a value as the settings say", async () => {
  const state = getterOf({ action: "GET_ATTRIBUTE", getAttribute: { key: "mode", scope: "SHARED_SCOPE" }, dataToValue: { type: "NONE", compareToValue: "on" } }, "state");
  expect(state).toMatchObject({ action: "GET_ATTRIBUTE", key: "mode", scope: "SHARED_SCOPE" });
  expect((await toValue(state, "on")).value).toBe(true);
  expect((await toValue(state, true)).value).toBe(false);
  const made = getterOf({ action: "EXECUTE_RPC", dataToValue: { type: "FUNCTION", dataToValueFunction: { body: "return data.level * 2;" } } }, "value");
  expect((await toValue(made, '{"level": 4}')).value).toBe(8);
  expect(await toValue(made, null)).toMatchObject({ value: null, problem: expect.stringContaining("failed") as string });
  expect((await toValue(getterOf({ action: "GET_ALARM_STATUS" }, "state"), true)).value).toBe(true);
  expect((await toValue(getterOf({ action: "DO_NOTHING", defaultValue: true }, "state"), true)).value).toBe(true);
  expect(getterOf(undefined, "state")).toMatchObject({ action: "EXECUTE_RPC", rpc: { method: "getState", timeoutMs: 5_000 } });
  expect((await toValue(olderGetter({ parseValueFunction: "return data ? 1 : 0;" }, "rpc"), "yes")).value).toBe(true);
  expect([judged(1, "truthy"), judged("x", undefined), judged(2, { equals: 2 })]).toEqual([true, "x", true]);
  expect([parsed("true"), parsed("12"), parsed("a b")]).toEqual([true, 12, "a b"]);
});

test("a new value is sent itself, as a constant, by a function or not at all", async () => {
  const by = (valueToData: object): Promise<unknown> => toData(setterOf({ action: "SET_ATTRIBUTE", valueToData }), 3);
  expect(await by({ type: "VALUE" })).toBe(3);
  expect(await by({ type: "CONSTANT", constantValue: { a: 1 } })).toEqual({ a: 1 });
  expect(await by({ type: "FUNCTION", valueToDataFunction: "return value + 1;" })).toBe(4);
  expect(await by({ type: "NONE" })).toBeNull();
  await expect(by({ type: "FUNCTION", valueToDataFunction: "throw new Error('no');" })).rejects.toThrow("no");
  expect(olderCommand({ methodName: "go", methodParams: '{"n": 1}', oneWayElseTwoWay: false })).toMatchObject({ constant: { n: 1 }, twoWay: true, rpc: { method: "go" } });
  expect(olderCommand({ methodParams: "plain" }).constant).toBe("plain");
});

test("a stored command ends with its answer, or with words of what became of it", () => {
  expect(outcomeOf({ status: "QUEUED" }, true, "Pump")).toEqual({ done: false });
  expect(outcomeOf({ status: "DELIVERED" }, true, "Pump").done).toBe(false);
  expect(outcomeOf({ status: "DELIVERED" }, false, "Pump").done).toBe(true);
  expect(outcomeOf({ status: "SUCCESSFUL", response: { a: 1 } }, true, "Pump").value).toEqual({ a: 1 });
  expect(() => outcomeOf({ status: "EXPIRED" }, true, "Pump")).toThrow("Not connected in time");
  expect(reasonOf(new ApiError(409, ""), "Pump")).toBe("Not connected: Pump");
  expect(reasonOf(new ApiError(408, ""), "Pump", 500)).toBe("No answer within 5 s from Pump");
  expect(reasonOf(new ApiError(403, ""), "Pump")).toBe("You may not change Pump.");
});

test("numbers stay on their steps and within their limits", () => {
  const limits = { low: 0, high: 1, step: 0.1 };
  expect(stepped(0.2, 1, limits)).toBe(0.3);
  expect(stepped(1, 1, limits)).toBeUndefined();
  expect(snapped(0.34, limits)).toBe(0.3);
  expect(snapped(9, limits)).toBe(1);
  expect([shareAt(0, -1), shareAt(-1, 1), shareAt(1, 1)].map((share) => Math.round(share * 100))).toEqual([50, 0, 100]);
});

test("pins, terminals and shells read what is written", async () => {
  expect(pinsOf({ gpioList: [{ pin: 3, label: "A", row: 1, col: 0 }] })).toMatchObject([[undefined, undefined], [{ pin: 3, label: "A" }, undefined]]);
  expect(pinParams('{"pin": "{$pin}", "enabled": "{$enabled}"}', 7, true)).toEqual({ pin: 7, enabled: true });
  expect(commandOf(' set {"a": 1} ')).toEqual({ method: "set", params: { a: 1 } });
  expect(commandOf("ping")).toEqual({ method: "ping", params: undefined });
  const printed: string[] = [];
  const answers: Record<string, unknown[]> = { sendCommand: [{ ok: true }], getCommandStatus: [{ data: [{ stdout: "one" }], done: false }, { data: [{ stderr: "bad" }], done: true, cwd: "/tmp" }] };
  let directory = "";
  const shell = { call: (method: string) => Promise.resolve(answers[method]?.shift()), print: (kind: string, text: string) => printed.push(`${kind} ${text}`), enter: (next: string) => (directory = next), stopping: () => false };
  await runShell(shell, "ls", "/");
  expect([printed, directory]).toEqual([["output one", "error bad"], "/tmp"]);
  await expect(runShell({ ...shell, call: () => Promise.resolve({ ok: false, error: "busy" }) }, "ls", "/")).rejects.toThrow("busy");
});
