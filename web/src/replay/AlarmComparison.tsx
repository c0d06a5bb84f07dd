// Alarms of a replay next to those that really were: on a line of time for each originator, and as a table.

import { Button, Checkbox, Group, Stack, Table, Text, Title } from "@mantine/core";
import { useMemo, useState, type ReactElement } from "react";
import type { ReplayAlarm, ReplayReport } from "@/api/schema.gen";
import { severityFill } from "@/alarms/alarm";
import { formatTime, plural, t } from "@/i18n";
import { alarmRows, countsOf, isCut, lanesOf, spanOf, ticks, VERDICTS, type AlarmRow, type Bar, type Lane, type Verdict } from "./report";
import classes from "./replay.module.css";

/** More lanes and rows than these are no picture any more. */
const MOST_LANES = 30;
const MOST_ROWS = 200;
const WIDTH = 1_000;

const clearedText = (alarm: ReplayAlarm): string => ((alarm.clearedTs ?? null) === null ? t("still active") : formatTime(alarm.clearedTs ?? 0));
const severityText = (alarm: ReplayAlarm): string => ((alarm.severity ?? null) === null ? "–" : t(alarm.severity ?? ""));

/** Says one thing of an alarm: as it was, and as it was replayed, where these differ. */
function both({ stored, replayed }: AlarmRow, read: (alarm: ReplayAlarm) => string): string {
  const [was, would] = [stored, replayed].map((one) => (one === undefined ? undefined : read(one)));
  return was !== undefined && would !== undefined && was !== would ? `${was} → ${would}` : (would ?? was ?? "");
}

function Bars({ bars, y }: { bars: readonly Bar[]; y: number }): ReactElement[] {
  return bars.map(({ from, to, severity, verdict, alarm }, n) => (
    <rect key={`${alarm.id.id} ${n}`} x={from * WIDTH} y={y} width={Math.max(3, (to - from) * WIDTH)} height={12} fill={severityFill(severity)} data-differs={verdict === "same" ? undefined : verdict}>
      <title>{`${t(severity ?? "")} ${formatTime(alarm.startTs)} – ${clearedText(alarm)}`}</title>
    </rect>
  ));
}

function Course({ lane }: { lane: Lane }): ReactElement {
  const raised = (bars: readonly Bar[]): number => new Set(bars.map(({ alarm }) => alarm.id.id)).size;
  return (
    <div className={classes["lane"]}>
      <span className={classes["name"]}>
        {lane.name}
        <small>{lane.type}</small>
      </span>
      <div className={classes["course"]}>
        <svg viewBox={`0 0 ${WIDTH} 34`} preserveAspectRatio="none" role="img" aria-label={t("{name}, {type}: {stored} alarms were there, {replayed} in the replay", { name: lane.name, type: lane.type, stored: raised(lane.stored), replayed: raised(lane.replayed) })}>
          <Bars bars={lane.stored} y={3} />
          <Bars bars={lane.replayed} y={19} />
        </svg>
      </div>
    </div>
  );
}

function Timeline({ rows, span: [start, end] }: { rows: readonly AlarmRow[]; span: readonly [number, number] }): ReactElement {
  const lanes = useMemo(() => lanesOf(rows, start, end), [rows, start, end]);
  return (
    <div role="group" aria-label={t("Alarms over time")} className={classes["lanes"]}>
      <Text size="xs" c="var(--soft-text)">
        {t("The upper bar is what really was, the lower one the replay. What differs has a border.")}
      </Text>
      {lanes.slice(0, MOST_LANES).map((lane) => (
        <Course key={lane.key} lane={lane} />
      ))}
      <div className={classes["lane"]} aria-hidden>
        <span className={classes["name"]} />
        <div className={`${classes["course"]} ${classes["axis"]}`}>
          {ticks(start, end, 3).map(({ ts }) => (
            <span key={ts}>{formatTime(ts)}</span>
          ))}
        </div>
      </div>
      {lanes.length > MOST_LANES && <Text size="xs">{t("{n} further originators are in the table alone.", { n: lanes.length - MOST_LANES })}</Text>}
    </div>
  );
}

function AlarmRows({ rows }: { rows: readonly AlarmRow[] }): ReactElement {
  const [most, setMost] = useState(MOST_ROWS);
  return (
    <>
      <div className={classes["scroll"]} tabIndex={0}>
        <Table fz="xs" verticalSpacing={2} miw={560} aria-label={t("Alarms")}>
          <Table.Thead>
            <Table.Tr>
              {[t("Compared"), t("Originator"), t("Type"), t("Severity"), t("From"), t("To")].map((one) => (
                <Table.Th key={one}>{one}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.slice(0, most).map((row) => (
              <Table.Tr key={row.key} data-verdict={row.verdict}>
                <Table.Td className={classes["compared"] ?? ""}>{t(VERDICTS.find(({ value }) => value === row.verdict)?.label ?? "")}</Table.Td>
                <Table.Td>{row.originatorName}</Table.Td>
                <Table.Td>{row.type}</Table.Td>
                <Table.Td>{both(row, severityText)}</Table.Td>
                <Table.Td>{formatTime((row.replayed ?? row.stored)?.startTs ?? 0)}</Table.Td>
                <Table.Td>{both(row, clearedText)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {rows.length > most && (
        <Button size="compact-xs" variant="subtle" onClick={() => setMost(rows.length)}>
          {t("Show all {n}", { n: rows.length })}
        </Button>
      )}
    </>
  );
}

export function AlarmComparison({ report, alarmType }: { report: ReplayReport; alarmType?: string }): ReactElement {
  const all = useMemo(() => alarmRows(report), [report]);
  const [others, setOthers] = useState(false);
  const [only, setOnly] = useState<Verdict>();
  const meant = useMemo(() => (alarmType === undefined || others ? all : all.filter(({ type }) => type === alarmType)), [all, alarmType, others]);
  const span = useMemo(() => spanOf(meant, report.summary.startTs, report.summary.endTs), [meant, report]);
  const counts = countsOf(meant);
  const shown = only === undefined ? meant : meant.filter(({ verdict }) => verdict === only);
  const further = alarmType === undefined ? 0 : all.filter(({ type }) => type !== alarmType).length;
  return (
    <Stack gap="xs">
      <Title order={3} size="h6">
        {alarmType === undefined || others ? t("Alarms") : t("Alarms of the type {type}", { type: alarmType })}
      </Title>
      <Group gap={6} role="group" aria-label={t("Compared with what really was")}>
        <Button size="compact-xs" variant={only === undefined ? "filled" : "default"} aria-pressed={only === undefined} onClick={() => setOnly(undefined)}>
          {t("all")} {meant.length}
        </Button>
        {VERDICTS.map(({ value, label }) => (
          <Button key={value} size="compact-xs" variant={only === value ? "filled" : "default"} aria-pressed={only === value} onClick={() => setOnly(only === value ? undefined : value)}>
            {t(label)} {counts[value]}
          </Button>
        ))}
      </Group>
      {further > 0 && <Checkbox size="xs" label={plural(further, "Also {n} alarm of another type", "Also {n} alarms of other types")} checked={others} onChange={(event) => setOthers(event.currentTarget.checked)} />}
      {meant.length === 0 && <Text size="sm">{t("No alarm was there in this time, and the replay raises none.")}</Text>}
      {shown.length > 0 && <Timeline rows={shown} span={span} />}
      {shown.length > 0 && <AlarmRows key={only ?? "all"} rows={shown} />}
      {isCut(report) && <Text size="xs">{t("There are more alarms than are listed. Choose a shorter time or fewer devices to see all.")}</Text>}
    </Stack>
  );
}
