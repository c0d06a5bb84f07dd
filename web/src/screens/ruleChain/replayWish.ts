// One message that is to be replayed: what a device sent at a time, as it is stored. The address keeps it, so that a link leads to it.

import type { FormValues } from "@/ui/form/values";

export interface ReplayWish {
  device: string;
  ts: number;
  /** The node where it was seen; the replay can begin there. */
  node: string;
}

const [DEVICE, TS, NODE] = ["replayDevice", "replayTs", "replayNode"] as const;

export function readWish(params: URLSearchParams): ReplayWish | undefined {
  const [device, ts] = [params.get(DEVICE) ?? "", Number(params.get(TS))];
  return device !== "" && Number.isSafeInteger(ts) && ts > 0 ? { device, ts, node: params.get(NODE) ?? "" } : undefined;
}

/** Opens the replay with a wish, or takes the wish away. */
export function writeWish(params: URLSearchParams, wish: ReplayWish | undefined): URLSearchParams {
  const after = new URLSearchParams(params);
  after.set("panel", "replay");
  for (const [name, value] of [[DEVICE, wish?.device], [TS, wish?.ts], [NODE, wish?.node]] as const) {
    if (value === undefined || value === "") {
      after.delete(name);
    } else {
      after.set(name, String(value));
    }
  }
  return after;
}

/** What the form of a replay begins with: all that the device sent in that millisecond. */
export function wishedValues({ device, ts }: ReplayWish): FormValues {
  return { startTs: ts, endTs: ts + 1, which: "devices", deviceIds: [device] };
}
