// What is throttled or lagging, for whom, since when and why: for tenants their own, for system administrators all.

import { Badge, Card, Group, Progress, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import type { ReactElement } from "react";
import { useSession } from "@/app/session";
import { formatNumber, formatTime, plural, t } from "@/i18n";
import { serverText } from "@/i18n/serverTexts";
import { agoText, EmptyState, Problem, TextLink, Waiting } from "@/ui/feedback";
import { grouped, limitText, subjectText, textsOf } from "./overload";
import { useOverload, type OverloadEntry } from "./useOverload";

/** How often the screen is brought up to date while it is shown, milliseconds. */
const EVERY_MS = 2_000;

/** How much there is, or how often something was refused; and the limit. */
function Amount({ entry: { value, count, limit, unit } }: { entry: OverloadEntry }): ReactElement | null {
  const amount = (n: number): string => formatNumber(n, { maximumFractionDigits: 1 });
  const has = value ?? count ?? null;
  const most = (limit ?? null) === null ? undefined : limitText(limit ?? "", (n, seconds) => t("{n} in {seconds} s", { n, seconds }), amount);
  if (has === null && most === undefined) {
    return null;
  }
  const share = typeof value === "number" && Number(limit) > 0 ? (100 * value) / Number(limit) : undefined;
  const text = [has === null ? "" : `${amount(has)} ${t(unit)}`, most === undefined ? "" : t("limit: {limit}", { limit: most })].filter((part) => part !== "").join(" · ");
  return (
    <div>
      <Text size="sm">{text}</Text>
      {share !== undefined && <Progress value={Math.min(100, share)} color={share >= 100 ? "red" : "yellow"} aria-label={text} />}
    </div>
  );
}

function Entry({ entry, now }: { entry: OverloadEntry; now: number }): ReactElement {
  const { authority } = useSession();
  const { label, advice } = textsOf(entry.kind, authority === "SYS_ADMIN");
  return (
    <Card withBorder data-overload={entry.kind}>
      <Stack gap={6}>
        <Group justify="space-between" wrap="nowrap" align="start">
          <Title order={3} size="h5">
            {t(label)}
            {entry.subject !== "" && `: ${subjectText(entry, t)}`}
          </Title>
          <Badge color={entry.active ? "red" : "gray"} variant={entry.active ? "filled" : "outline"} style={{ flexShrink: 0 }}>
            {t(entry.active ? "now" : "over")}
          </Badge>
        </Group>
        <Text size="sm">{serverText(entry.reason)}</Text>
        <Amount entry={entry} />
        <Text size="sm" c="var(--soft-text)">
          <time dateTime={new Date(entry.since).toISOString()} title={formatTime(entry.since)}>
            {t("began {ago}", { ago: agoText(entry.since, now) })}
          </time>
          {" · "}
          {entry.active ? t("last {ago}", { ago: agoText(entry.last, now) }) : t("ended {ago}", { ago: agoText(entry.last, now) })}
        </Text>
        {advice !== "" && (
          <Text size="sm">
            <Text span fw={600} size="sm">
              {t("What to do:")}{" "}
            </Text>
            {t(advice)}
          </Text>
        )}
      </Stack>
    </Card>
  );
}

export default function OverloadScreen(): ReactElement {
  const { authority } = useSession();
  const overload = useOverload(EVERY_MS);
  const groups = grouped(overload.data?.entries ?? []);
  const active = overload.data?.entries.filter((entry) => entry.active).length ?? 0;
  return (
    <Stack>
      <Title order={1} size="h2">
        {t("Overload")}
      </Title>
      {overload.isPending && <Waiting />}
      {overload.isError && <Problem error={overload.error} />}
      {overload.data !== undefined && (
        <>
          <Text role="status">
            {active === 0 ? t("Nothing is throttled or lags behind at present.") : plural(active, "{n} thing is throttled or lags behind.", "{n} things are throttled or lag behind.")}{" "}
            {t("Watched since {time}.", { time: formatTime(overload.data.since) })}
          </Text>
          {groups.length === 0 && <EmptyState>{t("Nothing has been throttled since then.")}</EmptyState>}
          {groups.map((group) => (
            <section key={group.tenant ?? ""}>
              {authority === "SYS_ADMIN" && (
                <Title order={2} size="h4" mb="xs">
                  {group.tenant === null ? t("The whole installation") : <TextLink to={`/tenants/${group.tenant}`}>{group.name ?? group.tenant}</TextLink>}
                </Title>
              )}
              <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }}>
                {group.entries.map((entry) => (
                  <Entry key={`${entry.kind} ${entry.subject} ${entry.since}`} entry={entry} now={overload.data.now} />
                ))}
              </SimpleGrid>
            </section>
          ))}
        </>
      )}
    </Stack>
  );
}
