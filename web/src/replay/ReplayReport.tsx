// What a replay would have done: alarms next to what really was, points by key, failures, and what could not be tried.

import { Alert, Stack, Table, Text, Title } from "@mantine/core";
import type { ReactElement } from "react";
import type { ReplayReport as Report } from "@/api/schema.gen";
import { formatNumber, formatTime, t } from "@/i18n";
import { AlarmComparison } from "./AlarmComparison";
import { pointRows } from "./report";
import { endedText } from "./request";
import classes from "./replay.module.css";

type Cell = string | number;

export function Rows({ label, head, rows }: { label: string; head: string[]; rows: readonly Cell[][] }): ReactElement | null {
  return rows.length === 0 ? null : (
    <div>
      <Title order={3} size="h6">
        {label}
      </Title>
      <div className={classes["scroll"]} tabIndex={0}>
        <Table fz="xs" verticalSpacing={2} aria-label={label}>
          <Table.Thead>
            <Table.Tr>
              {head.map((one) => (
                <Table.Th key={one}>{one}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row, at) => (
              <Table.Tr key={at}>
                {row.map((one, n) => (
                  <Table.Td key={n}>{typeof one === "number" ? formatNumber(one) : one}</Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </div>
  );
}

const counts = (one: Record<string, number>): Cell[][] => Object.entries(one).map(([key, n]) => [key, n]);
const valueText = (value: unknown): string => (value === undefined || value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** What somebody should know who sees less than expected. */
function Hints({ report: { summary, stored } }: { report: Report }): ReactElement {
  const savedNothing = summary.messages > 0 && stored.points === 0 && Object.keys(stored.attributes).length === 0;
  return (
    <>
      {summary.messages === 0 && <Alert color="yellow">{t("Nothing was replayed: these devices have no stored values in this time. Choose another time, other devices or other series.")}</Alert>}
      {savedNothing && <Alert color="yellow">{t("The rule chain has saved nothing. Calculated fields and their alarm rules are evaluated where a node saves values, so none was: choose the chain that these devices really use.")}</Alert>}
      {(summary.truncatedBy ?? null) !== null && <Alert color="yellow">{endedText(summary.truncatedBy ?? "", summary.endTs)}</Alert>}
      {summary.droppedFollowUps > 0 && <Alert color="yellow">{t("{n} further messages were left out, because one message led to too many.", { n: summary.droppedFollowUps })}</Alert>}
      {(summary.lastFailure ?? null) !== null && <Alert color="red">{summary.lastFailure}</Alert>}
    </>
  );
}

export function ReplayReport({ report, alarmType }: { report: Report; alarmType?: string }): ReactElement {
  const { summary, stored, alarms, nodes, difference } = report;
  return (
    <Stack gap="sm" role="region" aria-label={t("Result of the replay")}>
      <Text size="sm">
        {t("{messages} messages of {devices} devices: {raised} alarms raised, {cleared} cleared, {points} points saved, {failed} failures.", { messages: summary.messages, devices: summary.devices, raised: alarms.raised, cleared: alarms.cleared, points: stored.points, failed: summary.failed })}{" "}
        {t("Through {chain}, {from} – {to}.", { chain: summary.ruleChainName, from: formatTime(summary.startTs), to: formatTime(summary.endTs) })}
      </Text>
      <Hints report={report} />
      <AlarmComparison report={report} {...(alarmType === undefined ? {} : { alarmType })} />
      <Rows
        label={t("Points by key")}
        head={[t("Key"), t("saved"), t("only replayed"), t("only stored"), t("different"), t("the same")]}
        rows={pointRows(report).map(({ key, points, onlyReplayed, onlyStored, different, same }) => [key, points, onlyReplayed, onlyStored, different, same])}
      />
      <Rows
        label={t("Some points that differ")}
        head={[t("Key"), t("Time"), t("Stored"), t("Replayed")]}
        rows={difference.points.sample.map((one) => [one.key, formatTime(one.ts), valueText(one.stored), valueText(one.replayed)])}
      />
      <Rows label={t("Saved attributes")} head={[t("Key"), t("writes")]} rows={counts(stored.attributes)} />
      <Rows label={t("Changes that were not made")} head={[t("What"), t("how often")]} rows={counts(summary.notChanged)} />
      <Rows
        label={t("Nodes")}
        head={[t("Node"), t("in"), t("out"), t("errors"), "µs"]}
        rows={nodes.map((one) => [
          one.executed ? one.name : `${one.name} (${t("passed on only")})`,
          one.input,
          Object.entries(one.output).map(([label, n]) => `${label} ${n}`).join(", "),
          (one.lastError ?? null) === null ? one.failures : `${one.failures}: ${one.lastError}`,
          Math.round(one.meanUs),
        ])}
      />
    </Stack>
  );
}
