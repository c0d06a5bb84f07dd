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
/** The server takes 32 KiB; the rest is for what is around the commands. */
const FRAME_BYTES = 31 << 10;

const encoder = new TextEncoder();
const bytesOf = (value: unknown): number => encoder.encode(JSON.stringify(value)).length;

/** Whether the server takes a command: a longer one would end the connection, and with it what all others follow. */
export function isSendable(command: LiveCommand): boolean {
  return bytesOf(command) < FRAME_BYTES;
}

/** Groups commands into frames that the server takes. */
export function framesOf(commands: LiveCommand[], token?: string): object[] {
  const frames: { authCmd?: object; cmds: LiveCommand[] }[] = token === undefined ? [] : [{ authCmd: { cmdId: 0, token }, cmds: [] }];
  let bytes = token?.length ?? 0;
  for (const command of commands) {
    const own = bytesOf(command);
    const last = frames.at(-1);
    if (last === undefined || last.cmds.length === FRAME || bytes + own > FRAME_BYTES) {
      frames.push({ cmds: [command] });
      bytes = own;
    } else {
      last.cmds.push(command);
      bytes += own;
    }
  }
  return frames;
}

/**
 * Returns the wait before the n-th attempt to connect again, milliseconds: doubled up to a minute, and of that half to all by chance, so that pages which
 * have lost a server together don't come back together.
 */
export function backOff(attempt: number, chance = Math.random()): number {
  return Math.min(60_000, 1_000 * 2 ** Math.min(attempt, 6)) * (0.5 + chance / 2);
}

export function latestTelemetry(id: EntityId): LiveCommand {
  return { type: "TIMESERIES", entityType: id.entityType, entityId: id.id, scope: "LATEST_TELEMETRY" };
}

export function attributesOf(id: EntityId, scope: string): LiveCommand {
  return { type: "ATTRIBUTES", entityType: id.entityType, entityId: id.id, scope };
}
