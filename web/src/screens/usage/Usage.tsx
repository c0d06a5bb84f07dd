// What the tenant has and has used this month, beside what it may, and the course of it.

import { Box, Progress, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, type ReactElement } from "react";
import { api } from "@/api/client";
import { formatNumber, t } from "@/i18n";
import { Problem, Waiting } from "@/ui/feedback";
import { Flow } from "@/ui/Flow";

const UsageCourse = lazy(() => import("./UsageCourse"));

type Figures = Record<string, number | null>;

const ROWS: readonly { key: string; label: string }[] = [
  { key: "devices", label: "Devices" },
  { key: "assets", label: "Assets" },
  { key: "customers", label: "Customers" },
  { key: "users", label: "Users" },
  { key: "dashboards", label: "Dashboards" },
  { key: "transportMessages", label: "Messages of devices" },
  { key: "jsExecutions", label: "JavaScript executions" },
  { key: "tbelExecutions", label: "TBEL executions" },
  { key: "alarms", label: "Created alarms" },
  { key: "emails", label: "E-mails" },
  { key: "sms", label: "Text messages" },
];
/** Months begin with row five: the rows before count what is there now. */
const FIRST_OF_MONTH = 5;

export default function Usage(): ReactElement {
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t("API usage")}
      </Title>
      <UsageTable />
      <Box mt="xl">
        <Suspense fallback={<Waiting />}>
          <UsageCourse />
        </Suspense>
      </Box>
    </>
  );
}

/** The figures as a table, for the screen and, without what can be left out, for a widget. */
export function UsageTable({ compact = false }: { compact?: boolean }): ReactElement {
  const usage = useQuery({ queryKey: ["usage"], queryFn: () => api.get<Figures>("/api/usage"), refetchInterval: 10_000 });
  if (usage.isPending) {
    return <Waiting />;
  }
  if (usage.isError) {
    return <Problem error={usage.error} />;
  }
  return (
      <Flow>
        <Table maw={760} aria-label={t("API usage")}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t("What")}</Table.Th>
              {!compact && <Table.Th>{t("When")}</Table.Th>}
              <Table.Th ta="end">{t("Used")}</Table.Th>
              <Table.Th ta="end">{t("Limit")}</Table.Th>
              {!compact && <Table.Th w={200}>{t("Part of the limit")}</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {ROWS.map(({ key, label }, n) => {
              const used = usage.data[key] ?? 0;
              const limit = usage.data[`max${key.charAt(0).toUpperCase()}${key.slice(1)}`] ?? 0;
              const part = limit === 0 ? 0 : Math.min(100, (100 * used) / limit);
              return (
                <Table.Tr key={key}>
                  <Table.Td>{t(label)}</Table.Td>
                  {!compact && <Table.Td>{t(n < FIRST_OF_MONTH ? "now" : "this month")}</Table.Td>}
                  <Table.Td ta="end" data-label={t("Used")}>{formatNumber(used)}</Table.Td>
                  <Table.Td ta="end" data-label={t("Limit")}>{limit === 0 ? t("none") : formatNumber(limit)}</Table.Td>
                  {!compact && (
                    <Table.Td data-empty={limit === 0 || undefined}>
                      {limit === 0 ? <Text size="sm">–</Text> : <Progress value={part} color={part >= 100 ? "red" : part >= 80 ? "yellow" : "teal"} aria-label={t("{label}: {part} % of the limit", { label: t(label), part: Math.round(part) })} />}
                    </Table.Td>
                  )}
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </Flow>
  );
}
