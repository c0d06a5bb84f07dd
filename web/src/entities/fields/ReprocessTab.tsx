// Computes what a calculated field would have made of stored values, with its progress.

import { Button, Group, Progress, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ApiError } from "@/api/client";
import type { Reprocessing } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import type { Entity } from "@/api/types";
import { formatNumber, formatTime, t } from "@/i18n";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import type { FormField } from "@/ui/form/values";

/** How often the progress is asked for, milliseconds. */
const EVERY_MS = 1_000;

const STATUS: Record<Reprocessing["status"], string> = { RUNNING: "It works", COMPLETED: "It is done", FAILED: "It has failed", CANCELLED: "It was cancelled" };

const FIELDS: readonly FormField[] = [
  { name: "startTs", label: "From", type: "time", required: true },
  { name: "endTs", label: "Until", type: "time", required: true },
];

function Progressing({ report }: { report: Reprocessing }): ReactElement {
  const percent = report.status === "COMPLETED" ? 100 : report.entities === 0 ? 0 : (100 * report.processedEntities) / report.entities;
  const rows: [string, string][] = [
    ["Period", `${formatTime(report.startTs)} – ${formatTime(report.endTs)}`],
    ["Entities", `${formatNumber(report.processedEntities)} / ${formatNumber(report.entities)}`],
    ["Evaluations", formatNumber(report.values)],
    ["Stored results", formatNumber(report.results)],
    ["Evaluations without a result", formatNumber(report.withoutResult)],
    ...((report.lastProblem ?? null) === null ? [] : [["Why the last one had none", report.lastProblem] as [string, string]]),
    ...((report.error ?? null) === null ? [] : [["Why it failed", report.error] as [string, string]]),
    ["Begun", formatTime(report.startedAt)],
    ...((report.finishedAt ?? null) === null ? [] : [["Ended", formatTime(report.finishedAt ?? 0)] as [string, string]]),
  ];
  return (
    <Stack gap="xs" maw={640}>
      <Text role="status" fw={600}>{t(STATUS[report.status])}</Text>
      <Progress aria-label={t("Progress")} value={percent} color={report.status === "FAILED" ? "red" : "teal"} animated={report.status === "RUNNING"} />
      <Table aria-label={t("Reprocessing")}>
        <Table.Tbody>
          {rows.map(([label, text]) => (
            <Table.Tr key={label}>
              <Table.Th scope="row">{t(label)}</Table.Th>
              <Table.Td>{text}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Stack>
  );
}

export default function ReprocessTab({ entity }: { entity: Entity }): ReactElement {
  const cache = useQueryClient();
  const path = { calculatedFieldId: entity.id.id };
  const key = ["reprocess", entity.id.id];
  const report = useQuery({
    queryKey: key,
    queryFn: () => ask("GET /api/calculatedField/{calculatedFieldId}/reprocess", { path }).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) {
        return null;
      }
      throw error;
    }),
    refetchInterval: ({ state }) => (state.data?.status === "RUNNING" ? EVERY_MS : false),
  });
  const output = (entity["configuration"] as { output?: { type?: string } } | undefined)?.output?.type;
  if (report.isPending) {
    return <Waiting />;
  }
  if (report.isError) {
    return <Problem error={report.error} />;
  }
  if (output === "ATTRIBUTES") {
    return <Text>{t("Attributes have no history, so a field that stores attributes can't be reprocessed.")}</Text>;
  }
  const running = report.data?.status === "RUNNING";
  const cancel = async (): Promise<void> => {
    cache.setQueryData(key, await ask("DELETE /api/calculatedField/{calculatedFieldId}/reprocess", { path }));
  };
  return (
    <Stack>
      <Title order={2} size="h4">{t("Reprocess stored values")}</Title>
      <Text maw={640}>{t("The field is evaluated over what is stored, for all of its entities, as if it had been there then. Results take the place of points of the same time.")}</Text>
      {running ? (
        <Group>
          <Button color="red" onClick={() => void cancel().catch(notify.error)}>
            {t("Cancel the reprocessing")}
          </Button>
        </Group>
      ) : (
        <FieldsForm
          fields={FIELDS}
          values={{ startTs: Date.now() - 86_400_000, endTs: Date.now() }}
          action="Reprocess"
          onSave={async ({ startTs, endTs }) => {
            // The input has minutes; without this the last one would be left out.
            cache.setQueryData(key, await ask("POST /api/calculatedField/{calculatedFieldId}/reprocess", { path, body: { startTs, endTs: Math.min(Number(endTs) + 60_000, Date.now()) } }));
          }}
        />
      )}
      {report.data !== null && <Progressing report={report.data} />}
    </Stack>
  );
}
