import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FromWorker, ToWorker } from "./wire";

/** What the page has told its worker, by type. */
let told: ToWorker["type"][];
let hear: (message: FromWorker) => void;
let giveToken: () => void;

vi.mock("@/api/session", () => ({ getToken: () => new Promise((resolve) => (giveToken = () => resolve("token"))), SessionEnded: class extends Error {} }));
vi.mock("@/api/client", () => ({ goToLogin: () => undefined }));
vi.mock("./socket.worker?worker", () => ({
  default: class {
    onmessage: (event: { data: FromWorker }) => void = () => undefined;
    constructor() {
      hear = (data) => this.onmessage({ data });
    }
    postMessage({ type }: ToWorker): void {
      told.push(type);
    }
  },
}));

const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

async function connection(): Promise<typeof import("./socket").live> {
  vi.resetModules();
  return (await import("./socket")).live;
}

beforeEach(() => {
  told = [];
  vi.useFakeTimers();
  vi.stubGlobal("window", globalThis);
  vi.stubGlobal("location", { protocol: "http:", host: "here" });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a network that goes while a connection is made ends that, and leaves the next to one timer", async () => {
  const live = await connection();
  live.prepare();
  giveToken();
  await settle();
  live.drop();
  expect([told, live.current()]).toEqual([["open", "close"], "reconnecting"]);
  hear({ type: "lost", since: Date.now() });
  await vi.advanceTimersByTimeAsync(60_000);
  giveToken();
  await settle();
  expect(told).toEqual(["open", "close", "open"]);
});

test("a network that goes while the token is asked for begins no second connection", async () => {
  const live = await connection();
  live.prepare();
  const first = giveToken;
  live.drop();
  expect(live.current()).toBe("reconnecting");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(giveToken).toBe(first);
  first();
  await settle();
  expect(told).toEqual(["open"]);
});

test("a connection that is there ends the wait for the next", async () => {
  const live = await connection();
  live.subscribe({ type: "NOTIFICATIONS_COUNT" }, () => undefined);
  giveToken();
  await settle();
  hear({ type: "lost", since: Date.now() });
  hear({ type: "live" });
  const first = giveToken;
  await vi.advanceTimersByTimeAsync(60_000);
  expect([live.current(), giveToken === first, told]).toEqual(["live", true, ["open"]]);
});

const FULL = { type: "lost", since: 0, ending: { code: 1008, reason: "Max tenant subscriptions limit reached!" } } as const;

test("a limit is told, and asked about each minute until a connection lives", async () => {
  const live = await connection();
  live.subscribe({ type: "NOTIFICATIONS_COUNT" }, () => undefined);
  giveToken();
  await settle();
  for (let n = 0; n < 3; n++) {
    const before = giveToken;
    hear({ type: "live" });
    hear(FULL);
    await vi.advanceTimersByTimeAsync(59_000);
    expect([live.reached()?.setting, giveToken === before]).toEqual(["Subscriptions of the tenant", true]);
    await vi.advanceTimersByTimeAsync(1_000);
    giveToken();
    await settle();
  }
  hear({ type: "live" });
  expect(live.reached()).toBeDefined();
  await vi.advanceTimersByTimeAsync(5_000);
  expect([live.reached(), live.current()]).toEqual([undefined, "live"]);
});

test("a page that follows less after a limit tries again soon", async () => {
  const live = await connection();
  const end = live.subscribe({ type: "NOTIFICATIONS_COUNT" }, () => undefined);
  giveToken();
  await settle();
  hear({ type: "live" });
  hear(FULL);
  const before = giveToken;
  end();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(giveToken).not.toBe(before);
});

test("a command that is too long for the server fails alone", async () => {
  const live = await connection();
  const codes: (number | undefined)[] = [];
  live.subscribe({ type: "ENTITY_DATA", ids: Array.from({ length: 1_000 }, (_, n) => `${n}`.padStart(36, "0")) }, ({ errorCode }) => codes.push(errorCode));
  await settle();
  expect([codes, told]).toEqual([[2], []]);
});

test("the worker has one socket at a time", async () => {
  const sockets: { url: string; isClosed: boolean }[] = [];
  class Opened {
    isClosed = false;
    constructor(readonly url: string) {
      sockets.push(this);
    }
    close(): void {
      this.isClosed = true;
    }
  }
  const said: FromWorker[] = [];
  const self: { postMessage: (message: FromWorker) => void; onmessage?: (event: { data: ToWorker }) => void } = { postMessage: (message) => said.push(message) };
  vi.stubGlobal("self", self);
  vi.stubGlobal("WebSocket", Opened);
  await import("./socket.worker");
  ["ws://1", "ws://2"].forEach((url) => self.onmessage?.({ data: { type: "open", url, frames: [] } }));
  expect(sockets.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  // Whatever becomes of the former one is no loss.
  expect(said).toEqual([]);
});
