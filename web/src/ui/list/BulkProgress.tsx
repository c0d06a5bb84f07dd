// What is done with many rows at once: how far it is, a way to cancel, and what failed and why.

import { Button, Group, List, Progress, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { messageOf } from "../feedback";
import { runEach, type BulkOutcome } from "./bulkRun";

interface BulkState {
  /** Rows that are over, of all, while it runs. */
  progress: { over: number; all: number } | undefined;
  outcome: BulkOutcome | undefined;
  cancel: () => void;
}

interface BulkRun<T> extends BulkState {
  run: (rows: readonly T[], act: (row: T) => Promise<unknown>) => Promise<BulkOutcome>;
}

export function useBulkRun<T>(nameOf: (row: T) => string): BulkRun<T> {
  const [progress, setProgress] = useState<BulkState["progress"]>();
  const [outcome, setOutcome] = useState<BulkOutcome>();
  const controller = useRef<AbortController>(undefined);
  // Where nobody can see or stop it any more, nothing further is begun.
  useEffect(() => () => controller.current?.abort(), []);
  return {
    progress,
    outcome,
    cancel: () => controller.current?.abort(),
    run: async (rows, act) => {
      const { signal } = (controller.current = new AbortController());
      setOutcome(undefined);
      setProgress({ over: 0, all: rows.length });
      const result = await runEach(rows, { act, nameOf, reasonOf: messageOf, tell: (over) => setProgress({ over, all: rows.length }), signal });
      setProgress(undefined);
      setOutcome(result);
      return result;
    },
  };
}

/** Whether something is left to tell after a run. */
export const isWhole = ({ failed, left }: BulkOutcome): boolean => failed === 0 && left === 0;

export function BulkProgress({ progress, outcome, cancel }: BulkState): ReactElement | null {
  if (progress !== undefined) {
    return (
      <Stack gap={4} mt="md">
        <Progress aria-label={t("Progress")} value={(100 * progress.over) / Math.max(1, progress.all)} />
        <Group gap="xs">
          <Text size="sm" role="status">
            {t("{n} of {all}", { n: progress.over, all: progress.all })}
          </Text>
          <Button size="compact-xs" variant="default" onClick={cancel}>
            {t("Stop")}
          </Button>
        </Group>
      </Stack>
    );
  }
  if (outcome === undefined || isWhole(outcome)) {
    return null;
  }
  return (
    <Stack gap={4} mt="md" role="alert">
      <Text>{t("{done} done, {failed} failed, {left} not begun", { done: outcome.done, failed: outcome.failed, left: outcome.left })}</Text>
      <List size="sm" c="var(--mantine-color-error)">
        {outcome.reasons.map(({ reason, count, names }) => (
          <List.Item key={reason}>
            {`${reason} (${count}×: ${names.join(", ")}${count > names.length ? " …" : ""})`}
          </List.Item>
        ))}
      </List>
    </Stack>
  );
}
