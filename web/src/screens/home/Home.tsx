// What is online, what alarms, and what to do next.

import { Card, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api, type Query } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { useSession } from "@/app/session";
import { KINDS, nameOf, pathOf } from "@/entities/kinds";
import { formatTime, t } from "@/i18n";
import { EmptyState, Problem, TextLink, Waiting } from "@/ui/feedback";

/** How often the numbers are asked for anew, milliseconds. */
const EVERY_MS = 10_000;

function useTotal(path: string, query: Query, enabled = true): number | undefined {
  const page = useQuery({
    queryKey: ["total", path, query],
    enabled,
    refetchInterval: EVERY_MS,
    queryFn: () => api.get<PageData<Entity>>(path, { ...query, pageSize: 1, page: 0 }),
  });
  return page.data?.totalElements;
}

function Figure({ label, value, to, bad }: { label: string; value: number | undefined; to: string; bad?: boolean }): ReactElement {
  return (
    <Card withBorder>
      <Text size="sm">
        <TextLink to={to}>{t(label)}</TextLink>
      </Text>
      <Text fz={34} fw={700} c={bad === true && value !== undefined && value > 0 ? "var(--mantine-color-error)" : "inherit"}>
        {value ?? "…"}
      </Text>
    </Card>
  );
}

function Recent({ title, type }: { title: string; type: string }): ReactElement | null {
  const { authority, customerId } = useSession();
  const kind = KINDS.find((candidate) => candidate.type === type);
  const path = kind?.list[authority]?.replace("{customerId}", customerId);
  const page = useQuery({
    queryKey: ["recent", path],
    enabled: path !== undefined,
    refetchInterval: EVERY_MS,
    queryFn: () => api.get<PageData<Entity>>(path ?? "", { pageSize: 5, page: 0, sortProperty: "createdTime", sortOrder: "DESC" }),
  });
  if (path === undefined) {
    return null;
  }
  return (
    <Card withBorder>
      <Title order={2} size="h4" mb="sm">
        {t(title)}
      </Title>
      {page.isPending && <Waiting />}
      {page.isError && <Problem error={page.error} />}
      {page.data?.data.length === 0 && <EmptyState>{t("Nothing is here yet.")}</EmptyState>}
      <Stack gap="xs">
        {page.data?.data.map((row) => (
          <Group key={row.id.id} justify="space-between">
            <TextLink to={pathOf(row.id) ?? "/home"}>{nameOf(row)}</TextLink>
            <Text size="sm" c="var(--soft-text)">
              {formatTime(row.createdTime)}
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}

function ThingsHome(): ReactElement {
  const { authority, customerId } = useSession();
  const devices = authority === "TENANT_ADMIN" ? "/api/tenant/deviceInfos" : `/api/customer/${customerId}/deviceInfos`;
  return (
    <Stack>
      <SimpleGrid cols={{ base: 2, md: 4 }}>
        <Figure label="Devices" value={useTotal(devices, {})} to="/entities/devices" />
        <Figure label="Devices online" value={useTotal(devices, { active: true })} to="/entities/devices" />
        <Figure label="Active alarms" value={useTotal("/api/v2/alarms", { statusList: "ACTIVE" })} to="/alarms/alarms" bad />
        <Figure label="Critical alarms" value={useTotal("/api/v2/alarms", { statusList: "ACTIVE", severityList: "CRITICAL" })} to="/alarms/alarms" bad />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Recent title="Newest devices" type="DEVICE" />
        <Recent title="Newest dashboards" type="DASHBOARD" />
      </SimpleGrid>
    </Stack>
  );
}

interface SystemInfo {
  systemData?: { cpuUsage: number; memoryUsage: number; discUsage: number }[];
}

function SystemHome(): ReactElement {
  const info = useQuery({ queryKey: ["system info"], refetchInterval: EVERY_MS, queryFn: () => api.get<SystemInfo>("/api/admin/systemInfo") });
  const node = info.data?.systemData?.[0];
  return (
    <Stack>
      {info.isError && <Problem error={info.error} />}
      <SimpleGrid cols={{ base: 2, md: 4 }}>
        <Figure label="Tenants" value={useTotal("/api/tenantInfos", {})} to="/tenants" />
        {(["cpuUsage", "memoryUsage", "discUsage"] as const).map((name) => (
          <Card key={name} withBorder>
            <Text size="sm">{t({ cpuUsage: "Processor", memoryUsage: "Memory", discUsage: "Disk" }[name])}</Text>
            <Text fz={34} fw={700}>
              {node === undefined ? "…" : `${node[name]} %`}
            </Text>
          </Card>
        ))}
      </SimpleGrid>
      <Recent title="Newest tenants" type="TENANT" />
    </Stack>
  );
}

export default function Home(): ReactElement {
  const { authority } = useSession();
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t("Home")}
      </Title>
      {authority === "SYS_ADMIN" ? <SystemHome /> : <ThingsHome />}
    </>
  );
}
