import { expect, test } from "vitest";
import { requestOf, beginning } from "@/replay/request";
import { telemetryOf } from "./events";
import { readWish, wishedValues, writeWish } from "./replayWish";

test("a message is replayed by what its device sent in its millisecond, and a link leads to it", () => {
  const event = { msgType: "POST_TELEMETRY_REQUEST", entityType: "DEVICE", entityId: "d1", metadata: '{"ts":"1760000000123","deviceName":"Pump"}' };
  expect(telemetryOf(event)).toEqual({ device: "d1", ts: 1_760_000_000_123 });
  const wish = { device: "d1", ts: 1_760_000_000_123, node: "n1" };
  const address = writeWish(new URLSearchParams("panel=debug&only=IN"), wish);
  expect(address.get("panel")).toBe("replay");
  expect(readWish(address)).toEqual(wish);
  expect(requestOf(beginning(0, wishedValues(wish)), {})).toMatchObject({ startTs: 1_760_000_000_123, endTs: 1_760_000_000_124, deviceIds: ["d1"] });
  expect(writeWish(address, undefined).toString()).toBe("panel=replay&only=IN");
});

test("what is not stored as it came can't be replayed", () => {
  expect(telemetryOf({ msgType: "POST_ATTRIBUTES_REQUEST", entityType: "DEVICE", entityId: "d1", metadata: '{"ts":"1760000000123"}' })).toBeUndefined();
  expect(telemetryOf({ msgType: "POST_TELEMETRY_REQUEST", entityType: "ASSET", entityId: "a1", metadata: '{"ts":"1760000000123"}' })).toBeUndefined();
  expect(telemetryOf({ msgType: "POST_TELEMETRY_REQUEST", entityType: "DEVICE", entityId: "d1", metadata: "{}" })).toBeUndefined();
  expect(telemetryOf({ msgType: "POST_TELEMETRY_REQUEST", entityType: "DEVICE", entityId: "d1", metadata: "no JSON" })).toBeUndefined();
  expect(readWish(new URLSearchParams("replayDevice=d1&replayTs=soon"))).toBeUndefined();
});
