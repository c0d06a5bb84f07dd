// Alarms of a chart's entities over its lines: how long each was active, what it is, and the way to it.

import { useContext, useMemo, useState, type CSSProperties, type ReactElement } from "react";
import { createPortal } from "react-dom";
import type uPlot from "uplot";
import { rightsOf } from "@/alarms/actions";
import { originatorName, SEVERITY_COLORS, statusText, type Alarm } from "@/alarms/alarm";
import { useAlarms, type AlarmFeedQuery } from "@/alarms/feed";
import { SessionContext } from "@/app/session";
import type { EntityId } from "@/api/types";
import { formatTime, t } from "@/i18n";
import { loadable } from "@/ui/loadable";
import classes from "./timeChart.module.css";

const AlarmDrawer = loadable(() => import("@/alarms/AlarmDrawer"));

/** The newest so many alarms are shown; more could not be told apart. */
const MOST = 200;
/** The end of a window that is fixed is asked for, to the minute, so that the question stays the same for a while. */
const MINUTE = 60_000;

/** Returns one filter for each kind of entity. */
function filtersOf(entities: readonly EntityId[]): AlarmFeedQuery["filters"] {
  const kinds = [...new Set(entities.map(({ entityType }) => entityType))];
  return kinds.map((entityType) => ({ type: "entityList", entityType, entityList: entities.filter((one) => one.entityType === entityType).map(({ id }) => id) }));
}

/** Returns what is asked for: alarms that came before the end of the window, the newest first. */
export function alarmsAsked(entities: readonly EntityId[], end: number | undefined): AlarmFeedQuery {
  return {
    filters: filtersOf(entities),
    conditions: end === undefined ? {} : { endTs: Math.ceil(end / MINUTE) * MINUTE },
    search: "",
    sort: { property: "startTs", order: "DESC" },
    size: MOST,
  };
}

/** Returns the alarms that were active at some time within a window. */
export function alarmsWithin(alarms: readonly Alarm[], [from, to]: [number, number]): Alarm[] {
  return alarms.filter((alarm) => alarm.startTs <= to && (!alarm.cleared || alarm.clearTs >= from));
}

interface AlarmMarksProps {
  plot: uPlot;
  entities: readonly EntityId[];
  bounds: [number, number];
  /** The moment that the places of the drawing are counted from. */
  base: number;
  /** Whether the window ends now. */
  live: boolean;
}

/** Places stand in the style as seconds after the base, so that the drawing moves them without drawing them anew. */
export default function AlarmMarks({ plot, entities, bounds, base, live }: AlarmMarksProps): ReactElement | null {
  const session = useContext(SessionContext);
  const [open, setOpen] = useState<Alarm>();
  const ids = JSON.stringify(entities);
  const end = live ? undefined : bounds[1];
  const query = useMemo(() => alarmsAsked(JSON.parse(ids) as EntityId[], end), [ids, end]);
  const { alarms } = useAlarms(query);
  const shown = alarmsWithin(alarms, bounds);
  const seconds = (ts: number): number => (ts - base) / 1_000;
  const words = (alarm: Alarm): string => `${alarm.type} · ${t(alarm.severity)} · ${statusText(alarm.status)} · ${originatorName(alarm)} · ${formatTime(alarm.startTs)}`;
  return (
    <>
      {createPortal(
        <div className={classes["alarms"]} role="group" aria-label={t("Alarms in this time")} data-alarms={shown.length}>
          {shown.map((alarm) => (
            <div
              key={alarm.id.id}
              className={classes["alarm"]}
              style={{ "--at": seconds(alarm.startTs), "--until": seconds(alarm.cleared ? alarm.clearTs : bounds[1]), "--severity": `var(--mantine-color-${SEVERITY_COLORS[alarm.severity] ?? "gray"}-filled)` } as CSSProperties}
            >
              <button type="button" title={words(alarm)} aria-label={words(alarm)} onMouseDown={(event) => event.stopPropagation()} onClick={() => session !== undefined && setOpen(alarm)} />
            </div>
          ))}
        </div>,
        plot.over,
      )}
      {open !== undefined && session !== undefined && <AlarmDrawer alarm={alarms.find((alarm) => alarm.id.id === open.id.id) ?? open} rights={rightsOf(session)} onClose={() => setOpen(undefined)} />}
    </>
  );
}
