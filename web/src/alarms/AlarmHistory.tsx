// The course of one alarm, and how often its originator has had one of its type, on a line of time.

import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { PageData } from "@/api/types";
import { formatTime, plural, t } from "@/i18n";
import { Problem, Waiting } from "@/ui/feedback";
import { durationOf, severityFill, statusText, type Alarm } from "./alarm";
import { textOf, useComments } from "./comments";

const MONTH_MS = 30 * 86_400_000;
const MOST = 200;
const WIDTH = 560;

interface Moment {
  ts: number;
  what: string;
}

/** Returns what happened to an alarm, in its order. What the platform noted replaces what the fields tell. */
export function momentsOf(alarm: Alarm, noted: readonly Moment[]): Moment[] {
  const own: Moment[] = [
    { ts: alarm.startTs, what: t("Raised") },
    ...(alarm.endTs > alarm.startTs && !alarm.cleared ? [{ ts: alarm.endTs, what: t("Last raised") }] : []),
    ...(alarm.acknowledged ? [{ ts: alarm.ackTs, what: t("Acknowledged") }] : []),
    ...(alarm.assignTs > 0 ? [{ ts: alarm.assignTs, what: t("Assigned") }] : []),
    ...(alarm.cleared ? [{ ts: alarm.clearTs, what: t("Cleared") }] : []),
  ];
  const near = (ts: number): boolean => noted.some((one) => Math.abs(one.ts - ts) < 2_000);
  return [...own.filter(({ ts }, n) => n === 0 || !near(ts)), ...noted].sort((a, b) => a.ts - b.ts);
}

/** Bars of the alarms of one type in the last month; where one has no length it still shows. */
function Strip({ alarms, current, now }: { alarms: readonly Alarm[]; current: Alarm; now: number }): ReactElement {
  const from = now - MONTH_MS;
  const x = (ts: number): number => ((Math.max(from, ts) - from) / MONTH_MS) * WIDTH;
  return (
    <svg viewBox={`0 0 ${WIDTH} 34`} width="100%" role="img" aria-label={plural(alarms.length, "{n} alarm of this type in the last 30 days", "{n} alarms of this type in the last 30 days")}>
      <line x1={0} x2={WIDTH} y1={24} y2={24} stroke="currentColor" opacity={0.4} />
      {alarms.map((alarm) => (
        <rect key={alarm.id.id} x={x(alarm.startTs)} y={alarm.id.id === current.id.id ? 4 : 10} width={Math.max(3, x(alarm.startTs + durationOf(alarm, now)) - x(alarm.startTs))} height={alarm.id.id === current.id.id ? 20 : 14} fill={severityFill(alarm.severity)}>
          <title>{`${formatTime(alarm.startTs)} · ${statusText(alarm.status)}`}</title>
        </rect>
      ))}
    </svg>
  );
}

export function AlarmHistory({ alarm }: { alarm: Alarm }): ReactElement {
  const comments = useComments(alarm);
  const earlier = useQuery({
    queryKey: ["alarms like", alarm.originator.id, alarm.type, alarm.status],
    queryFn: async () => {
      const query = { typeList: alarm.type, startTime: Date.now() - MONTH_MS, pageSize: MOST, page: 0, sortProperty: "createdTime", sortOrder: "DESC" };
      const found = await api.get<PageData<Alarm>>(`/api/v2/alarm/${alarm.originator.entityType}/${alarm.originator.id}`, query);
      // A type with a comma would be several to the server.
      return { at: Date.now(), alarms: found.data.filter((one) => one.type === alarm.type) };
    },
  });
  if (comments.isPending || earlier.isPending) {
    return <Waiting />;
  }
  const problem = comments.error ?? earlier.error;
  const noted = (comments.data ?? []).filter((comment) => comment.type === "SYSTEM").map((comment) => ({ ts: comment.createdTime, what: textOf(comment) }));
  return (
    <Stack>
      {problem !== null && <Problem error={problem} />}
      <ol aria-label={t("History")} style={{ margin: 0, paddingInlineStart: 16, borderInlineStart: "2px solid var(--mantine-primary-color-filled)", listStyle: "none" }}>
        {momentsOf(alarm, noted).map(({ ts, what }) => (
          <li key={`${ts} ${what}`} style={{ paddingBottom: 10 }}>
            <Text size="xs" c="var(--soft-text)">
              <time dateTime={new Date(ts).toISOString()}>{formatTime(ts)}</time>
            </Text>
            <Text size="sm">{what}</Text>
          </li>
        ))}
      </ol>
      {earlier.data !== undefined && (
        <>
          <Text size="sm" fw={600}>
            {t("Alarms of this type and originator, last 30 days: {n}", { n: earlier.data.alarms.length })}
          </Text>
          <Strip alarms={earlier.data.alarms} current={alarm} now={earlier.data.at} />
        </>
      )}
    </Stack>
  );
}
