// What is done with alarms, one or many.

import { api } from "@/api/client";
import { currentClaims } from "@/api/session";
import type { Session } from "@/app/session";
import { t } from "@/i18n";
import { messageOf, notify } from "@/ui/feedback";
import type { Alarm } from "./alarm";

/** What a person may do with the alarms that they see. */
export interface AlarmRights {
  acknowledge: boolean;
  clear: boolean;
  assign: boolean;
  remove: boolean;
  comment: boolean;
}

/** Whoever came by a public link only reads; the others may do everything with the alarms that they see. */
export function rightsOf({ authority }: Session): AlarmRights {
  const may = authority !== "SYS_ADMIN" && currentClaims()?.isPublic !== true;
  return { acknowledge: may, clear: may, assign: may, remove: may, comment: may };
}

export type AlarmAct = (alarm: Alarm) => Promise<unknown>;

export const acknowledge: AlarmAct = (alarm) => (alarm.acknowledged ? Promise.resolve() : api.post(`/api/alarm/${alarm.id.id}/ack`));
export const clear: AlarmAct = (alarm) => (alarm.cleared ? Promise.resolve() : api.post(`/api/alarm/${alarm.id.id}/clear`));
export const remove: AlarmAct = (alarm) => api.delete(`/api/alarm/${alarm.id.id}`);
/** Assigns to a user; without one, takes it back. */
export function assignTo(user: string | undefined): AlarmAct {
  return (alarm) => {
    if (user !== undefined) {
      return api.post(`/api/alarm/${alarm.id.id}/assign/${user}`);
    }
    return alarm.assigneeId === undefined || alarm.assigneeId === null ? Promise.resolve() : api.delete(`/api/alarm/${alarm.id.id}/assign`);
  };
}

/** Does something with each alarm, and says what came of it. Returns whether all went well. */
export async function withEach(alarms: readonly Alarm[], act: AlarmAct, done: string, progress: (n: number) => void = () => undefined): Promise<boolean> {
  const failed: string[] = [];
  for (const [n, alarm] of alarms.entries()) {
    progress(n);
    await act(alarm).catch((error: unknown) => failed.push(`${alarm.type}: ${messageOf(error)}`));
  }
  if (failed.length > 0) {
    notify.error(failed.slice(0, 5).join("\n"));
  } else {
    notify.ok(t(done, { n: alarms.length }));
  }
  return failed.length === 0;
}
