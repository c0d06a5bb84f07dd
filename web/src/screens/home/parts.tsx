// Parts of which the home screens of all roles are made.

import { Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { api, type Query } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { useSession } from "@/app/session";
import { KINDS, nameOf, pathOf } from "@/entities/kinds";
import { formatNumber, formatTime, t } from "@/i18n";
import { EmptyState, Problem, TextLink, Waiting } from "@/ui/feedback";

/** How often the numbers are asked for anew, milliseconds. */
export const EVERY_MS = 10_000;

/** Follows how many there are of a list. */
export function useTotal(path: string, query: Query = {}, enabled = true): number | undefined {
  return useShortest(path, query, enabled)?.totalElements;
}

/** Follows how many there are of a list, and its first one. */
export function useShortest(path: string, query: Query = {}, enabled = true): PageData<Entity> | undefined {
  return useQuery({
    queryKey: ["total", path, query],
    enabled,
    refetchInterval: EVERY_MS,
    queryFn: () => api.get<PageData<Entity>>(path, { ...query, pageSize: 1, page: 0 }),
  }).data;
}

export function Figure({ label, value, to, bad }: { label: string; value: number | undefined; to?: string; bad?: boolean }): ReactElement {
  return (
    <Card withBorder>
      <Text size="sm">
        {to === undefined ? t(label) : <TextLink to={to}>{t(label)}</TextLink>}
      </Text>
      <Text fz={34} fw={700} data-figure={label} c={bad === true && value !== undefined && value > 0 ? "var(--mantine-color-error)" : "inherit"}>
        {value === undefined ? "…" : formatNumber(value)}
      </Text>
    </Card>
  );
}

export function Panel({ title, children }: { title: string; children: ReactNode }): ReactElement {
  return (
    <Card withBorder>
      <Title order={2} size="h4" mb="sm">
        {t(title)}
      </Title>
      {children}
    </Card>
  );
}

interface NewestProps<T> {
  title: string;
  path: string | undefined;
  query?: Query;
  empty: string;
  row: (row: T) => ReactNode;
  rowKey: (row: T) => string;
}

/** The newest few of a list. */
export function Newest<T>({ title, path, query = {}, empty, row, rowKey }: NewestProps<T>): ReactElement | null {
  const page = useQuery({
    queryKey: ["recent", path, query],
    enabled: path !== undefined,
    refetchInterval: EVERY_MS,
    queryFn: () => api.get<PageData<T>>(path ?? "", { pageSize: 5, page: 0, sortProperty: "createdTime", sortOrder: "DESC", ...query }),
  });
  return path === undefined ? null : (
    <Panel title={title}>
      {page.isPending && <Waiting />}
      {page.isError && <Problem error={page.error} />}
      {page.data?.data.length === 0 && <EmptyState>{t(empty)}</EmptyState>}
      <Stack gap="xs">
        {page.data?.data.map((one) => (
          <Group key={rowKey(one)} justify="space-between" align="baseline" gap="xs" wrap="nowrap">
            {row(one)}
          </Group>
        ))}
      </Stack>
    </Panel>
  );
}

export function Soft({ children }: { children: ReactNode }): ReactElement {
  return (
    <Text size="sm" c="var(--soft-text)" style={{ flex: "none" }}>
      {children}
    </Text>
  );
}

/** The newest entities of a kind that the role may list. */
export function NewestOfKind({ title, type }: { title: string; type: string }): ReactElement | null {
  const { authority, customerId } = useSession();
  const kind = KINDS.find((one) => one.type === type);
  const path = kind?.list[authority]?.replace("{customerId}", customerId);
  return (
    <Newest<Entity>
      title={title}
      path={path}
      empty={kind?.writers.includes(authority) === true ? "Nothing is here yet." : "Nothing is here yet. Your administrator adds and assigns them."}
      rowKey={(one) => one.id.id}
      row={(one) => (
        <>
          <TextLink to={pathOf(one.id) ?? "/home"}>{nameOf(one)}</TextLink>
          <Soft>{formatTime(one.createdTime)}</Soft>
        </>
      )}
    />
  );
}

/** One thing that a newcomer does. */
export interface Step {
  label: string;
  to: string;
  done: boolean | undefined;
}

/** What is still to do, until all of it is done. */
export function NextSteps({ steps }: { steps: readonly Step[] }): ReactElement | null {
  if (steps.some(({ done }) => done === undefined) || steps.every(({ done }) => done === true)) {
    return null;
  }
  return (
    <Panel title="What to do next">
      <Stack gap="xs">
        {steps.map(({ label, to, done }) => (
          <Group key={label} gap="xs" wrap="nowrap">
            <Badge variant={done === true ? "light" : "outline"} color={done === true ? "teal" : "gray"} style={{ flexShrink: 0 }}>
              {t(done === true ? "done" : "to do")}
            </Badge>
            {done === true ? <Text>{t(label)}</Text> : <TextLink to={to}>{t(label)}</TextLink>}
          </Group>
        ))}
      </Stack>
    </Panel>
  );
}
