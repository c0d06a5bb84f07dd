// What the system administrator sees of the installation: its servers, what is set up, and the version. Cards of dashboards show it, too.

import { Badge, Group, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { FeaturesInfo, SystemInfo, SystemInfoData } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { formatNumber, plural, t } from "@/i18n";
import { Problem, TextLink, Waiting } from "@/ui/feedback";
import { Flow } from "@/ui/Flow";
import { wordsOf } from "@/ui/form/values";
import { EVERY_MS } from "./parts";

const GIB = 1_073_741_824;
/** From these shares on something should be done, or must be. */
const HIGH = 75;
const CRITICAL = 85;

type Share = "cpuUsage" | "memoryUsage" | "discUsage";

/** What there is of a resource in all. */
export function sizeOf(node: SystemInfoData | undefined, name: Share): string {
  if (name === "cpuUsage") {
    return typeof node?.cpuCount === "number" ? plural(node.cpuCount, "{n} core", "{n} cores") : "";
  }
  const bytes = name === "memoryUsage" ? node?.totalMemory : node?.totalDiscSpace;
  return typeof bytes === "number" ? `${formatNumber(bytes / GIB, { maximumFractionDigits: 1 })} GiB` : "";
}

/** How bad a share is, in percent. */
export function stateOf(percent: number | null | undefined): "critical" | "high" | "ok" {
  return (percent ?? 0) > CRITICAL ? "critical" : (percent ?? 0) > HIGH ? "high" : "ok";
}

const COLORS = { critical: "var(--mantine-color-error)", high: "var(--mantine-color-orange-text)", ok: "inherit" } as const;
const SHARES: readonly { name: Share; label: string }[] = [{ name: "cpuUsage", label: "Processor" }, { name: "memoryUsage", label: "Memory" }, { name: "discUsage", label: "Disk" }];

export function useSystemInfo(): { data: SystemInfo | undefined; error: Error | null } {
  return useQuery({ queryKey: ["system info"], refetchInterval: EVERY_MS, queryFn: () => ask("GET /api/admin/systemInfo") });
}

export function useFeatures(): { data: FeaturesInfo | undefined; error: Error | null } {
  return useQuery({ queryKey: ["features"], queryFn: () => ask("GET /api/admin/featuresInfo") });
}

/** Follows how many entities of a type all tenants have together. */
export function useCountOfAll(entityType: string): number | undefined {
  const count = useQuery({
    queryKey: ["count of all", entityType],
    refetchInterval: EVERY_MS,
    queryFn: () => api.post<number>("/api/entitiesQuery/count", { entityFilter: { type: "entityType", entityType } }),
  });
  return count.data;
}

/** The servers of the installation, with what each has and uses. */
export function ServersTable(): ReactElement {
  const { data, error } = useSystemInfo();
  if (data === undefined) {
    return error === null ? <Waiting /> : <Problem error={error} />;
  }
  return (
    <Flow>
      <Table fz="sm" verticalSpacing={4} aria-label={t("Servers")}>
        <Table.Thead>
          <Table.Tr>
            {["Server", "Kind of server", ...SHARES.map(({ label }) => label)].map((label) => (
              <Table.Th key={label}>{t(label)}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {data.systemData.map((server) => (
            <Table.Tr key={server.serviceId}>
              <Table.Td>{server.serviceId}</Table.Td>
              <Table.Td>{t(wordsOf(server.serviceType))}</Table.Td>
              {SHARES.map(({ name, label }) => (
                <Table.Td key={name} data-label={t(label)} data-state={stateOf(server[name])} c={COLORS[stateOf(server[name])]} title={sizeOf(server, name)}>
                  {typeof server[name] === "number" ? `${formatNumber(server[name])} %` : "–"}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Flow>
  );
}

/** What has to be set up before it works, and where that is done; without a place it is not here yet. */
const FEATURES: readonly { name: keyof FeaturesInfo; label: string; to?: string }[] = [
  { name: "emailEnabled", label: "Outgoing mail", to: "/settings/outgoing-mail" },
  { name: "smsEnabled", label: "Text messages", to: "/settings/sms" },
  { name: "notificationEnabled", label: "Messages to Slack" },
  { name: "oauthEnabled", label: "Log-in with OAuth 2" },
  { name: "twoFaEnabled", label: "Two-factor log-in" },
];

export function FeatureList(): ReactElement {
  const { data, error } = useFeatures();
  if (data === undefined) {
    return error === null ? <Waiting /> : <Problem error={error} />;
  }
  return (
    <Stack gap="xs" component="ul" m={0} p={0} style={{ listStyle: "none" }} aria-label={t("Configured features")}>
      {FEATURES.map(({ name, label, to }) => (
        <Group key={name} component="li" gap="xs" wrap="nowrap" data-feature={name}>
          <Badge variant={data[name] ? "light" : "outline"} color={data[name] ? "teal" : "gray"} style={{ flexShrink: 0 }}>
            {t(data[name] ? "set up" : to === undefined ? "not here" : "not set up")}
          </Badge>
          {to === undefined ? <Text size="sm">{t(label)}</Text> : <TextLink to={to}>{t(label)}</TextLink>}
        </Group>
      ))}
    </Stack>
  );
}

export function VersionLine(): ReactElement | null {
  const version = useQuery({ queryKey: ["version"], staleTime: Infinity, queryFn: () => ask("GET /api/system/info") });
  return version.data === undefined ? null : <Text size="sm">{t("Version {version}", { version: version.data.version })}</Text>;
}
