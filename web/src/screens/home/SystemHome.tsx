// The home of the system administrator: tenants and what they have, what the machine does, what is not set up yet.

import { Card, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { NULL_ID } from "@/entities/kinds";
import { formatNumber, t } from "@/i18n";
import { useLatestValues, useValue, type LatestValues } from "@/live/latest";
import { Problem } from "@/ui/feedback";
import Activity from "./Activity";
import { PercentChart } from "./PercentChart";
import { Figure, NewestOfKind, NextSteps, Panel, useTotal } from "./parts";
import { FeatureList, ServersTable, sizeOf, useCountOfAll, useFeatures, useSystemInfo, VersionLine } from "./SystemParts";

/** How much of the past the charts show: as many minutes as the live store keeps points. */
const WINDOW_MS = 3_600_000;
const NAMES = ["cpuUsage", "memoryUsage", "discUsage"] as const;
const LABELS: Record<(typeof NAMES)[number], string> = { cpuUsage: "Processor", memoryUsage: "Memory", discUsage: "Disk" };
/** What is counted of all tenants; a system administrator has no lists of it. */
const COUNTED = [{ type: "DEVICE", label: "Devices" }, { type: "ASSET", label: "Assets" }, { type: "CUSTOMER", label: "Customers" }, { type: "USER", label: "Users" }] as const;

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

function CountOfAll({ type, label }: (typeof COUNTED)[number]): ReactElement {
  return <Figure label={label} value={useCountOfAll(type)} />;
}

export default function SystemHome(): ReactElement {
  const [from] = useState(() => Date.now() - WINDOW_MS);
  const info = useSystemInfo();
  const features = useFeatures();
  const values = useLatestValues({ type: "TIMESERIES", entityType: "TENANT", entityId: NULL_ID, keys: NAMES.join(","), startTs: from, timeWindow: WINDOW_MS, interval: 0, limit: 100, agg: "NONE" });
  const tenants = useTotal("/api/tenantInfos");
  const node = info.data?.systemData[0];
  return (
    <Stack>
      {info.error !== null && <Problem error={info.error} />}
      <SimpleGrid cols={{ base: 2, xs: 3, lg: 5 }}>
        <Figure label="Tenants" value={tenants} to="/tenants" />
        {COUNTED.map((one) => (
          <CountOfAll key={one.type} {...one} />
        ))}
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        {NAMES.map((name) => (
          <Resource key={name} name={name} values={values} now={node?.[name] ?? undefined} of={sizeOf(node, name)} />
        ))}
      </SimpleGrid>
      <Activity />
      <NextSteps
        steps={[
          { label: "Add a tenant with an administrator", to: "/tenants", done: tenants === undefined ? undefined : tenants > 0 },
          { label: "Set up outgoing mail", to: "/settings/outgoing-mail", done: features.data?.emailEnabled },
          { label: "Set up text messages", to: "/settings/sms", done: features.data?.smsEnabled },
        ]}
      />
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Panel title="Servers">
          <ServersTable />
        </Panel>
        <Panel title="Configured features">
          <FeatureList />
        </Panel>
        <NewestOfKind title="Newest tenants" type="TENANT" />
      </SimpleGrid>
      <VersionLine />
    </Stack>
  );
}
