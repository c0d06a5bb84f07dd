// The home of the system administrator: tenants, what the machine does, what is not set up yet.

import { Card, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { ask } from "@/api/typed";
import { NULL_ID } from "@/entities/kinds";
import { formatNumber, plural, t } from "@/i18n";
import { useLatestValues, useValue, type LatestValues } from "@/live/latest";
import { Problem } from "@/ui/feedback";
import { PercentChart } from "./PercentChart";
import { EVERY_MS, Figure, NewestOfKind, NextSteps, useTotal } from "./parts";

const GIB = 1_073_741_824;
/** How much of the past the charts show: as many minutes as the live store keeps points. */
const WINDOW_MS = 3_600_000;
const NAMES = ["cpuUsage", "memoryUsage", "discUsage"] as const;
const LABELS: Record<(typeof NAMES)[number], string> = { cpuUsage: "Processor", memoryUsage: "Memory", discUsage: "Disk" };

function Resource({ name, values, now, of }: { name: (typeof NAMES)[number]; values: LatestValues; now: number | undefined; of: string }): ReactElement {
  // Drawn anew when a point comes; the points themselves are those of the store.
  useValue(values, name);
  const points = values.history(name).map(({ ts, value }) => ({ ts, value: Number(value) }));
  return (
    <Card withBorder>
      <Group justify="space-between">
        <Text size="sm">{t(LABELS[name])}</Text>
        <Text size="sm" c="var(--soft-text)">
          {of}
        </Text>
      </Group>
      <Text fz={34} fw={700}>
        {now === undefined ? "…" : `${formatNumber(now)} %`}
      </Text>
      <PercentChart label={t(LABELS[name])} points={points} />
    </Card>
  );
}

export default function SystemHome(): ReactElement {
  const [from] = useState(() => Date.now() - WINDOW_MS);
  const info = useQuery({ queryKey: ["system info"], refetchInterval: EVERY_MS, queryFn: () => ask("GET /api/admin/systemInfo") });
  const features = useQuery({ queryKey: ["features"], queryFn: () => ask("GET /api/admin/featuresInfo") });
  const version = useQuery({ queryKey: ["version"], staleTime: Infinity, queryFn: () => ask("GET /api/system/info") });
  const values = useLatestValues({ type: "TIMESERIES", entityType: "TENANT", entityId: NULL_ID, keys: NAMES.join(","), startTs: from, timeWindow: WINDOW_MS, interval: 0, limit: 100, agg: "NONE" });
  const tenants = useTotal("/api/tenantInfos");
  const node = info.data?.systemData?.[0];
  const gib = (bytes: number | null | undefined): string => ((bytes ?? undefined) === undefined ? "" : `${formatNumber((bytes ?? 0) / GIB, { maximumFractionDigits: 1 })} GiB`);
  const sizes = { cpuUsage: typeof node?.cpuCount === "number" ? plural(node.cpuCount, "{n} core", "{n} cores") : "", memoryUsage: gib(node?.totalMemory), discUsage: gib(node?.totalDiscSpace) };
  return (
    <Stack>
      {info.isError && <Problem error={info.error} />}
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }}>
        <Figure label="Tenants" value={tenants} to="/tenants" />
        {NAMES.map((name) => (
          <Resource key={name} name={name} values={values} now={node?.[name] ?? undefined} of={sizes[name]} />
        ))}
      </SimpleGrid>
      <NextSteps
        steps={[
          { label: "Add a tenant with an administrator", to: "/tenants", done: tenants === undefined ? undefined : tenants > 0 },
          { label: "Set up outgoing mail", to: "/settings/outgoing-mail", done: features.data?.emailEnabled },
          { label: "Set up text messages", to: "/settings/sms", done: features.data?.smsEnabled },
        ]}
      />
      <NewestOfKind title="Newest tenants" type="TENANT" />
      {version.data?.version !== undefined && <Text size="sm">{t("Version {version}", { version: version.data.version })}</Text>}
    </Stack>
  );
}
