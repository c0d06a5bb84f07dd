// What devices did in the last day, on the home of administrators.

import { SimpleGrid, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { useSession } from "@/app/session";
import { formatNumber, t } from "@/i18n";
import { Problem, TextLink, Waiting } from "@/ui/feedback";
import { askActivity, COUNTED, type Hour } from "./hours";
import { Course } from "./PercentChart";
import { Panel } from "./parts";

/** Figures of an hour come once a minute. */
const EVERY_MS = 60_000;

function Counted({ label, adds, hours }: { label: string; adds: boolean; hours: readonly Hour[] }): ReactElement {
  const values = hours.map(({ value }) => value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const shown = adds ? values.reduce((sum, value) => sum + value, 0) : (values.at(-1) ?? 0);
  return (
    <div>
      <Text size="sm">{t(label)}</Text>
      <Text fz={28} fw={700} data-activity={label}>
        {formatNumber(shown)}
      </Text>
      <Course
        points={hours}
        top={Math.max(1, most)}
        label={t("{label} in the last 24 hours, by hour: between {least} and {most}", { label: t(label), least: formatNumber(least), most: formatNumber(most) })}
        caption={t(adds ? "in the last 24 hours, at most {most} in an hour" : "in this hour, at most {most} in the last 24", { most: formatNumber(most) })}
      />
    </div>
  );
}

export default function Activity(): ReactElement {
  const { authority } = useSession();
  const activity = useQuery({ queryKey: ["activity"], queryFn: ({ signal }) => askActivity(signal), refetchInterval: EVERY_MS });
  return (
    <Panel title="Activity">
      {activity.isPending && <Waiting />}
      {activity.isError && <Problem error={activity.error} />}
      {activity.data !== undefined && (
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          {COUNTED.map(({ key, label, adds }) => (
            <Counted key={key} label={label} adds={adds} hours={activity.data[key] ?? []} />
          ))}
        </SimpleGrid>
      )}
      {authority === "TENANT_ADMIN" && (
        <Text size="sm" mt="sm">
          <TextLink to="/usage">{t("API usage")}</TextLink>
        </Text>
      )}
    </Panel>
  );
}
