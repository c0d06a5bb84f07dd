import { beforeEach, expect, test, vi } from "vitest";
import type { Board } from "@/dashboard/board";
import { api } from "@/api/client";
import { Bridge } from "./bridge";
import { question } from "./questions";

vi.mock("./questions", () => ({ question: vi.fn() }));
vi.mock("@/api/client", async (original) => ({ ...(await original<typeof import("@/api/client")>()), api: { get: vi.fn(async () => ({})), post: vi.fn(async () => ({})), put: vi.fn(), delete: vi.fn() } }));

const DEVICE = { entityType: "DEVICE", id: "784f394c-42b6-435a-983c-b7beff2784f9" };
const bridge = (title: string): Bridge => new Bridge({ userId: "u", board: { id: title, title, code: () => "code", path: () => [], go: () => undefined } as unknown as Board });
const call = (service: string, method: string, ...args: unknown[]) => ({ kind: "call", call: 1, service, method, args });

const stored = new Map<string, string>();
vi.stubGlobal("localStorage", { getItem: (key: string) => stored.get(key) ?? null, setItem: (key: string, value: string) => stored.set(key, value) });

beforeEach(() => vi.clearAllMocks());

test("leave to read is none to change, though both are asked for at once", async () => {
  const answers = new Map<string, (yes: boolean) => void>();
  vi.mocked(question).mockImplementation(async ({ text }) => new Promise((resolve) => answers.set(text.includes("read and change") ? "change" : "read", resolve)));
  const one = bridge("a");
  const read = one.hear(call("attributeService", "getEntityAttributes", DEVICE, "SERVER_SCOPE"));
  const change = one.hear(call("attributeService", "saveEntityAttributes", DEVICE, "SERVER_SCOPE", [{ key: "a", value: 1 }]));
  await vi.waitFor(() => expect(answers.size).toBe(2));
  answers.get("read")?.(true);
  expect(await read).toMatchObject({ value: {} });
  answers.get("change")?.(false);
  expect(await change).toMatchObject({ error: {} });
  expect(vi.mocked(api.post)).not.toHaveBeenCalled();
});

test("who refuses once is not asked again, and other dashboards are asked by themselves", async () => {
  vi.mocked(question).mockResolvedValue(false);
  const one = bridge("b");
  for (let round = 0; round < 2; round++) {
    await one.hear(call("deviceService", "getDevice", DEVICE.id));
  }
  expect(vi.mocked(question)).toHaveBeenCalledTimes(1);
  await bridge("c").hear(call("deviceService", "getDevice", DEVICE.id));
  expect(vi.mocked(question)).toHaveBeenCalledTimes(2);
  expect(vi.mocked(api.get)).not.toHaveBeenCalled();
});
