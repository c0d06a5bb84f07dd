// The frames of the WebSocket API that this client sends and reads.

import type { EntityId } from "@/api/types";

/** A command without its id, which the connection gives. */
export type LiveCommand = { type: string } & Record<string, unknown>;

/** An update of a subscription of latest values: by key a list of `[ts, value]`. */
export interface LatestUpdate {
  subscriptionId: number;
  errorCode: number;
  errorMsg: string | null;
  data: Record<string, [number, unknown][]>;
}

export interface LiveUpdate extends Partial<LatestUpdate> {
  cmdId?: number;
}

/** Commands that end by a command of another name; the others are sent again with `unsubscribe`. */
const ENDED_BY_NAME = new Set(["ENTITY_DATA", "ENTITY_COUNT", "ALARM_DATA", "ALARM_COUNT", "ALARM_STATUS", "NOTIFICATIONS"]);

/** Returns the command that ends what a command began. */
export function endOf(command: LiveCommand): LiveCommand {
  return ENDED_BY_NAME.has(command.type) ? { type: `${command.type}_UNSUBSCRIBE` } : { ...command, unsubscribe: true };
}

/** Asks for a sign of life, since pages don't see the server's pings: it is answered at once, leaves nothing, and no subscription has its id. */
export const SIGN: object = { cmds: [{ type: "NOTIFICATIONS_COUNT", cmdId: 0 }, { type: "NOTIFICATIONS_UNSUBSCRIBE", cmdId: 0 }] };

/** The most commands in one frame, as ThingsBoard's own client sends them. */
const FRAME = 10;

/** Groups commands into frames. */
export function framesOf(commands: LiveCommand[], token?: string): object[] {
  const frames: object[] = [];
  if (token !== undefined) {
    frames.push({ authCmd: { cmdId: 0, token }, cmds: commands.slice(0, FRAME) });
  }
  for (let at = token === undefined ? 0 : FRAME; at < commands.length; at += FRAME) {
    frames.push({ cmds: commands.slice(at, at + FRAME) });
  }
  return frames;
}

/** Returns the wait before the n-th attempt to connect again, milliseconds: doubled up to a minute. */
export function backOff(attempt: number): number {
  return Math.min(60_000, 1_000 * 2 ** Math.min(attempt, 6));
}

export function latestTelemetry(id: EntityId): LiveCommand {
  return { type: "TIMESERIES", entityType: id.entityType, entityId: id.id, scope: "LATEST_TELEMETRY" };
}

export function attributesOf(id: EntityId, scope: string): LiveCommand {
  return { type: "ATTRIBUTES", entityType: id.entityType, entityId: id.id, scope };
}
