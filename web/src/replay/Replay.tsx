// The form of a replay and what comes of it, for whatever is tried: a rule chain, a calculated field, an alarm rule.

import { Alert, Button, Grid, Group, Progress, Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent, type ReactElement } from "react";
import { api } from "@/api/client";
import type { ReplayReport as Report } from "@/api/schema.gen";
import { t } from "@/i18n";
import { Fields } from "@/ui/form/Fields";
import { valueAt, type FormValues } from "@/ui/form/values";
import { ReplayReport } from "./ReplayReport";
import { beginning, missing, mostMs, rangeLabel, rangeOf, RANGES, replayFields, requestOf, textsOf, type Tried } from "./request";
import { useReplay } from "./useReplay";

interface ReplayProps {
  /** What is tried, in a sentence. */
  about: string;
  /** The chain that messages enter, where it is no choice. */
  chain?: string;
  /** What the form begins with. */
  known: FormValues;
  /** What stands in the place of what is saved, on the chain that messages enter. */
  tried: (chain: string) => Tried | Promise<Tried>;
  /** The type of the alarms that are meant; those of other types are shown on demand. */
  alarmType?: string;
  /** Why nothing can be tried yet. */
  blocked?: string | undefined;
  /** Series that are all that is needed. */
  needed?: readonly string[];
  /** Whether it stands beside something else, so that the answer is below the form. */
  narrow?: boolean;
  onReport?: (report: Report) => void;
}

/** Where names of series are listed: those of the devices that are chosen. */
function useKeys(values: FormValues): string[] {
  const profile = values["which"] === "profile" ? valueAt(values, "deviceProfileId.id") : undefined;
  const device = values["which"] === "devices" ? textsOf(values["deviceIds"])[0] : undefined;
  const path = device === undefined ? "/api/deviceProfile/devices/keys/timeseries" : `/api/plugins/telemetry/DEVICE/${device}/keys/timeseries`;
  const query = typeof profile === "string" ? { deviceProfileId: profile } : {};
  // A form without suggestions is still a form.
  const found = useQuery({ queryKey: ["series names", path, profile], retry: false, queryFn: () => api.get<string[]>(path, query) });
  return found.data ?? [];
}

export function Replay({ about, chain, known, tried, alarmType, blocked, needed = [], narrow = false, onReport }: ReplayProps): ReactElement {
  const [values, setValues] = useState(() => beginning(Date.now(), known));
  const { runningMs, report, problem, isCancelled, start, cancel } = useReplay();
  const keys = useKeys(values);
  const lacks = blocked ?? missing(values, chain === undefined);
  // Told once: what was counted belongs to what was tried then.
  const tell = useRef(onReport);
  tell.current = onReport;
  const answer = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (report !== undefined) {
      tell.current?.(report);
      // Where it is below the form, nobody would see that it has come.
      answer.current?.scrollIntoView({ block: "start" });
    }
  }, [report]);
  const run = (event: FormEvent): void => {
    event.preventDefault();
    // The form may stand within another one, which is not meant.
    event.stopPropagation();
    const entered = chain ?? String(valueAt(values, "ruleChainId.id"));
    void start(entered, async () => requestOf(values, await tried(entered)));
  };
  const most = mostMs(values);
  return (
    <Grid gap="md">
      <Grid.Col span={narrow ? 12 : { base: 12, md: 4 }}>
        <form onSubmit={run} aria-label={t("Replay")}>
          <Stack gap="xs">
            <Text size="sm" c="var(--soft-text)">
              {about}
            </Text>
            <Select
              label={t("Time")}
              placeholder={t("Choose, or set below")}
              value={null}
              data={RANGES.map((hours) => ({ value: String(hours), label: rangeLabel(hours) }))}
              onChange={(hours) => setValues((before) => ({ ...before, ...rangeOf(Number(hours), Date.now()) }))}
            />
            <Fields fields={replayFields(keys, chain === undefined)} values={values} change={setValues} />
            {needed.length > 0 && (
              <Group>
                <Button size="compact-xs" variant="subtle" onClick={() => setValues((before) => ({ ...before, keys: [...needed] }))}>
                  {t("Only the series that it reads")}
                </Button>
              </Group>
            )}
            <Group gap="xs">
              <Button type="submit" disabled={runningMs !== undefined || lacks !== undefined}>
                {t("Replay")}
              </Button>
              {runningMs !== undefined && (
                <Button variant="default" onClick={cancel}>
                  {t("Cancel")}
                </Button>
              )}
            </Group>
            {lacks !== undefined && (
              <Text size="sm" role="status">
                {lacks}
              </Text>
            )}
          </Stack>
        </form>
      </Grid.Col>
      <Grid.Col ref={answer} span={narrow ? 12 : { base: 12, md: 8 }}>
        {runningMs !== undefined && (
          <Stack gap={4}>
            <Text size="sm" role="status">
              {t("Running for {n} s, at most {most} s", { n: Math.floor(runningMs / 1_000), most: most / 1_000 })}
            </Text>
            <Progress animated value={Math.min(100, (100 * runningMs) / most)} aria-label={t("Part of the longest time")} />
          </Stack>
        )}
        {isCancelled && <Text role="status">{t("The replay was cancelled.")}</Text>}
        {problem !== "" && (
          <Alert color="red" role="alert">
            {problem}
          </Alert>
        )}
        {report !== undefined && <ReplayReport report={report} {...(alarmType === undefined ? {} : { alarmType })} />}
      </Grid.Col>
    </Grid>
  );
}
