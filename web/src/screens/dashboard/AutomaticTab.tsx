// The dashboard of an entity that nobody had to build.

import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { useSession } from "@/app/session";
import { automaticDashboard } from "@/dashboard/automatic";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { EmptyState, notify, Problem, Waiting } from "@/ui/feedback";
import { DashboardView } from "./DashboardView";

type LatestAnswer = Record<string, { value: unknown }[]>;

export default function AutomaticTab({ entity }: { entity: Entity }): ReactElement {
  const { authority } = useSession();
  const [, go] = useLocation();
  const { entityType, id } = entity.id;
  const latest = useQuery({
    queryKey: ["latest keys", id],
    queryFn: () => api.get<LatestAnswer>(`/api/plugins/telemetry/${entityType}/${id}/values/timeseries`),
  });
  const configuration = useMemo(() => {
    const values = Object.entries(latest.data ?? {}).map(([key, points]): [string, string] => [key, String(points[0]?.value ?? "")]);
    return automaticDashboard({ entityType, id }, Object.fromEntries(values));
  }, [latest.data, entityType, id]);
  if (latest.isPending) {
    return <Waiting />;
  }
  if (latest.isError) {
    return <Problem error={latest.error} />;
  }
  if (Object.keys(latest.data).length === 0) {
    return <EmptyState>{t("No telemetry yet. Values appear here as soon as they arrive.")}</EmptyState>;
  }
  const save = async (): Promise<void> => {
    try {
      const saved = await api.post<Entity>("/api/dashboard", { title: nameOf(entity), configuration });
      go(`/dashboards/${saved.id.id}`);
    } catch (error) {
      notify.error(error);
    }
  };
  return (
    <DashboardView
      id={id}
      name={nameOf(entity)}
      title={null}
      configuration={configuration}
      tools={
        authority === "TENANT_ADMIN" && (
          <Button variant="default" onClick={() => void save()}>
            {t("Save as dashboard")}
          </Button>
        )
      }
    />
  );
}
