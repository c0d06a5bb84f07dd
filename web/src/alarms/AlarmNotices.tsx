// Tells of alarms that come while a page is open, if that was chosen. It draws nothing.

import { useEffect, useRef } from "react";
import { t } from "@/i18n";
import { newAlarms, originatorName, withAlarms, type Alarm, type KnownAlarms } from "./alarm";
import { beep } from "./beep";
import { useAlarms } from "./feed";
import { useNoticeSettings } from "./noticeSettings";

/** Of a burst of alarms these are told one by one; the rest only sound. */
const MOST_TOLD = 3;

function tell(alarm: Alarm): void {
  const notice = new Notification(`${t(alarm.severity)}: ${alarm.type}`, { body: originatorName(alarm), tag: alarm.id.id });
  notice.onclick = () => {
    focus();
    notice.close();
  };
}

export default function AlarmNotices(): null {
  const settings = useNoticeSettings();
  const { alarms, isLoaded } = useAlarms({ filters: undefined, conditions: { statusList: ["ACTIVE"] }, search: "", sort: { property: "createdTime", order: "DESC" }, size: 20 });
  const known = useRef<KnownAlarms>(undefined);
  useEffect(() => {
    if (!isLoaded) {
      return;
    }
    const added = newAlarms(known.current, alarms);
    known.current = withAlarms(known.current, alarms);
    if (added.length > 0 && settings.sound) {
      beep();
    }
    if (settings.browser && "Notification" in window && Notification.permission === "granted") {
      added.slice(0, MOST_TOLD).forEach(tell);
    }
  }, [alarms, isLoaded, settings]);
  return null;
}
