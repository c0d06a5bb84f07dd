// The slider under trips: a moment, played at a speed.

import { Button, Select } from "@mantine/core";
import { useContext, useEffect, useMemo, useRef, useState, type ReactElement } from "react";
import { TimeContext } from "@/dashboard/time/control";
import { formatTime, t } from "@/i18n";
import { formattedDate, isAgo } from "../dates";
import type { MapItem } from "./items";
import type { Timeline } from "./model";
import classes from "./map.module.css";

const SPEEDS = [1, 5, 10, 15, 25];
/** A step is shown this long at speed 1, milliseconds. */
const STEP_MS = 1_000;

interface Props {
  timeline: Timeline;
  items: readonly MapItem[];
  onMoment: (moment: number | undefined) => void;
}

/** Returns the first and last moment of all trips. */
export function spanOf(items: readonly Pick<MapItem, "steps">[]): [number, number] | undefined {
  const all = items.filter(({ steps }) => steps.length > 0);
  const firsts = all.map(({ steps }) => steps[0]?.ts ?? Infinity);
  const lasts = all.map(({ steps }) => steps.at(-1)?.ts ?? -Infinity);
  return all.length === 0 ? undefined : [firsts.reduce((a, b) => Math.min(a, b)), lasts.reduce((a, b) => Math.max(a, b))];
}

export default function MapTimeline({ timeline, items, onMoment }: Props): ReactElement {
  const [from, to] = useMemo(() => spanOf(items) ?? [0, 0], [items]);
  const [chosen, setChosen] = useState<number>();
  const [playing, setPlaying] = useState(false);
  const speeds = timeline.speeds.length > 0 ? timeline.speeds : SPEEDS;
  const [speed, setSpeed] = useState(speeds[0] ?? 1);
  // As long as nobody has chosen a moment it is the newest.
  const moment = chosen === undefined ? to : Math.min(to, Math.max(from, chosen));
  const zone = useContext(TimeContext)?.window.zone;
  const words = timeline.timeFormat === undefined || isAgo(timeline.timeFormat) ? formatTime(moment) : formattedDate(moment, timeline.timeFormat, zone);
  const newest = useRef({ moment, to });
  newest.current = { moment, to };
  useEffect(() => onMoment(chosen === undefined ? undefined : moment), [onMoment, chosen, moment, items]);
  useEffect(() => {
    if (!playing) {
      return undefined;
    }
    let frame = 0;
    let before = performance.now();
    const next = (now: number): void => {
      const at = newest.current.moment + ((now - before) / STEP_MS) * timeline.step * speed;
      before = now;
      setChosen(at);
      if (at >= newest.current.to) {
        setPlaying(false);
      } else {
        frame = requestAnimationFrame(next);
      }
    };
    frame = requestAnimationFrame(next);
    return () => cancelAnimationFrame(frame);
  }, [playing, speed, timeline.step]);
  const play = (): void => {
    if (!playing && moment >= to) {
      setChosen(from);
    }
    setPlaying(!playing);
  };
  return (
    <div className={classes["timeline"]}>
      <Button size="compact-sm" variant="default" disabled={to <= from} onClick={play}>
        {playing ? t("Pause") : t("Play")}
      </Button>
      <input
        type="range"
        aria-label={t("Moment")}
        aria-valuetext={to === 0 ? "" : words}
        min={from}
        max={to}
        step={timeline.step}
        value={moment}
        disabled={to <= from}
        onChange={(event) => {
          setPlaying(false);
          setChosen(Number(event.currentTarget.value));
        }}
      />
      {timeline.showTime && <output>{to === 0 ? t("No values in this time.") : words}</output>}
      <Select
        size="xs"
        w={80}
        aria-label={t("Speed")}
        allowDeselect={false}
        data={speeds.map((one) => ({ value: String(one), label: `${one}×` }))}
        value={String(speed)}
        onChange={(value) => setSpeed(Number(value ?? 1))}
      />
    </div>
  );
}
