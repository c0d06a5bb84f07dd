// What the chain, as it is edited, would have done with stored telemetry. Nothing is stored and nothing leaves the platform.

import { Alert, Button, Group, Loader, Select, Stack, Table, TagsInput, Text, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { formatTime, t } from "@/i18n";
import { messageOf } from "@/ui/feedback";
import { NO_MARKS, useEditor, type Marks } from "./editor";

interface ReplayAlarm {
  id: string | { id: string };
  originatorName: string | null;
  type: string;
  severity: string | null;
  startTs: number;
  clearedTs: number | null;
}

export interface Report {
  summary: { startTs: number; endTs: number; devices: number; messages: number; followUps: number; failed: number; lastFailure: string | null; durationMs: number; truncatedBy: string | null; notChanged: Record<string, number> };
  stored: { points: number; keys: Record<string, number>; attributes: Record<string, number> };
  alarms: { raised: number; updated: number; cleared: number; alarms: ReplayAlarm[] };
  nodes: { id: { id: string }; name: string; executed: boolean; input: number; output: Record<string, number>; failures: number; lastError: string | null; meanUs: number }[];
  difference: { points: Record<"same" | "onlyStored" | "onlyReplayed" | "different", number>; alarms: Record<"same" | "onlyStored" | "onlyReplayed" | "different", number> };
}

const HOUR = 3_600_000;
const RANGES = [1, 6, 24, 168, 720];

function local(ts: number): string {
  return new Date(ts - new Date(ts).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function Rows({ label, head, rows }: { label: string; head: string[]; rows: (string | number)[][] }): ReactElement | null {
  return rows.length === 0 ? null : (
    <>
      <Title order={3} size="h6">
        {label}
      </Title>
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
                <Table.Td key={n}>{one}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}

function Result({ report }: { report: Report }): ReactElement {
  const { summary, stored, alarms, nodes, difference } = report;
  const sorted = Object.entries(stored.keys).map(([key, n]) => [key, n] as (string | number)[]);
  const attributes = Object.entries(stored.attributes).map(([key, n]) => [key, n] as (string | number)[]);
  const compared = (name: string, one: Record<"same" | "onlyStored" | "onlyReplayed" | "different", number>): (string | number)[] => [name, one.same, one.onlyReplayed, one.onlyStored, one.different];
  return (
    <Stack gap="xs" role="region" aria-label={t("Result of the replay")}>
      <Text size="sm">
        {t("{messages} messages of {devices} devices: {raised} alarms raised, {cleared} cleared, {points} points saved, {failed} failures.", { messages: summary.messages, devices: summary.devices, raised: alarms.raised, cleared: alarms.cleared, points: stored.points, failed: summary.failed })}
      </Text>
      {summary.truncatedBy !== null && <Alert color="yellow">{t("It ended at {time}: a limit was reached. Choose a shorter time or fewer devices.", { time: formatTime(summary.endTs) })}</Alert>}
      {summary.lastFailure !== null && <Alert color="red">{summary.lastFailure}</Alert>}
      <Rows label={t("Alarms")} head={[t("Originator"), t("Type"), t("Severity"), t("From"), t("To")]} rows={alarms.alarms.map((one) => [one.originatorName ?? "", one.type, one.severity ?? "", formatTime(one.startTs), one.clearedTs === null ? "–" : formatTime(one.clearedTs)])} />
      <Rows label={t("Compared with what is stored")} head={["", t("the same"), t("only now"), t("only stored"), t("different")]} rows={[compared(t("points"), difference.points), compared(t("alarms"), difference.alarms)]} />
      <Rows label={t("Nodes")} head={[t("Node"), t("in"), t("out"), t("errors"), "µs"]} rows={nodes.map((one) => [one.executed ? one.name : `${one.name} (${t("passed on only")})`, one.input, Object.entries(one.output).map(([label, n]) => `${label} ${n}`).join(", "), one.lastError === null ? one.failures : `${one.failures}: ${one.lastError}`, Math.round(one.meanUs)])} />
      <Rows label={t("Saved points by key")} head={[t("Key"), t("points")]} rows={sorted} />
      <Rows label={t("Saved attributes")} head={[t("Key"), t("writes")]} rows={attributes} />
      <Rows label={t("Changes that were not made")} head={[t("What"), t("how often")]} rows={Object.entries(summary.notChanged).map(([what, n]) => [what, n])} />
    </Stack>
  );
}

export default function ReplayPanel(): ReactElement {
  const { id, chain, metadata, setMarks } = useEditor();
  const [from, setFrom] = useState(() => local(Date.now() - 24 * HOUR));
  const [to, setTo] = useState(() => local(Date.now() + 60_000));
  const [profile, setProfile] = useState<string | null>(null);
  const [keys, setKeys] = useState<string[]>([]);
  const [busy, setBusy] = useState<number>();
  const [seconds, setSeconds] = useState(0);
  const [problem, setProblem] = useState("");
  const [report, setReport] = useState<Report>();
  const profiles = useQuery({ queryKey: ["picker", "/api/deviceProfiles"], queryFn: () => api.get<PageData<Entity>>("/api/deviceProfiles", { pageSize: 100, page: 0 }) });
  useEffect(() => {
    const timer = busy === undefined ? undefined : setInterval(() => setSeconds(Math.round((Date.now() - busy) / 1000)), 500);
    return () => clearInterval(timer);
  }, [busy]);
  useEffect(() => {
    if (report === undefined) {
      return undefined;
    }
    const [counts, wires]: [Map<string, { in: number; out: number; errors: number }>, Map<string, number>] = [new Map(), new Map()];
    for (const done of report.nodes) {
      const key = chain.nodes.find(({ stored }) => (stored.id?.id === undefined ? stored.name === done.name : stored.id.id === done.id.id))?.key;
      if (key !== undefined) {
        counts.set(key, { in: done.input, out: Object.values(done.output).reduce((sum, n) => sum + n, 0), errors: done.failures });
        Object.entries(done.output).forEach(([label, n]) => wires.set(`${key}>${label.toLowerCase()}`, n));
      }
    }
    setMarks({ counts, wires, lit: undefined } satisfies Marks);
    return () => setMarks(NO_MARKS);
    // What was counted belongs to the chain as it was then.
  }, [report, setMarks]);
  const run = async (): Promise<void> => {
    setBusy(Date.now());
    setSeconds(0);
    setProblem("");
    try {
      const body = {
        startTs: new Date(from).getTime(),
        endTs: new Date(to).getTime(),
        keys,
        metadata: metadata(),
        ...(profile === null ? {} : { deviceProfileId: { entityType: "DEVICE_PROFILE", id: profile } }),
      };
      setReport(await api.post<Report>(`/api/ruleChain/${id}/replay`, body));
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setBusy(undefined);
    }
  };
  return (
    <Stack gap="xs">
      <Text size="xs" c="var(--soft-text)">
        {t("Runs stored telemetry through the chain as it is edited here. Nothing is stored, and nothing leaves the platform.")}
      </Text>
      <Select
        size="xs"
        label={t("Time")}
        placeholder={t("Choose, or set below")}
        value={null}
        data={RANGES.map((hours) => ({ value: String(hours), label: hours < 48 ? t("last {n} hours", { n: hours }) : t("last {n} days", { n: hours / 24 }) }))}
        onChange={(hours) => {
          setFrom(local(Date.now() - Number(hours) * HOUR));
          setTo(local(Date.now() + 60_000));
        }}
      />
      <Group gap="xs" grow>
        <TextInput size="xs" type="datetime-local" label={t("From")} value={from} onChange={(event) => setFrom(event.currentTarget.value)} />
        <TextInput size="xs" type="datetime-local" label={t("To")} value={to} onChange={(event) => setTo(event.currentTarget.value)} />
      </Group>
      <Select size="xs" label={t("Devices of the profile")} placeholder={t("all devices")} clearable searchable value={profile} onChange={setProfile} data={(profiles.data?.data ?? []).map((one) => ({ value: one.id.id, label: one.name ?? one.id.id }))} />
      <TagsInput size="xs" label={t("Series that devices sent")} placeholder={keys.length === 0 ? t("all that are stored") : ""} value={keys} onChange={setKeys} />
      <Group>
        <Button size="xs" disabled={busy !== undefined || from === "" || to === ""} onClick={() => void run()}>
          {t("Replay")}
        </Button>
        {busy !== undefined && (
          <Group gap={6} role="status">
            <Loader size="xs" /> <Text size="xs">{t("Running for {n} s", { n: seconds })}</Text>
          </Group>
        )}
      </Group>
      {problem !== "" && (
        <Alert color="red" role="alert">
          {problem}
        </Alert>
      )}
      {report !== undefined && <Result report={report} />}
    </Stack>
  );
}
