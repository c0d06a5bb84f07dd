// A dashboard in the place of the home screen.

import { Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { nameOf } from "@/entities/kinds";
import { DashboardView } from "@/screens/dashboard/DashboardView";
import { Problem, TextLink, Waiting } from "@/ui/feedback";
import { t } from "@/i18n";

export default function HomeDashboard({ id, hideToolbar }: { id: string; hideToolbar: boolean }): ReactElement {
  const dashboard = useQuery({ queryKey: ["dashboard", id], queryFn: () => api.get<Entity>(`/api/dashboard/${id}`) });
  if (dashboard.isPending) {
    return <Waiting />;
  }
  if (dashboard.isError) {
    return <Problem error={dashboard.error} />;
  }
  return (
    <DashboardView
      id={id}
      name={nameOf(dashboard.data)}
      configuration={dashboard.data["configuration"]}
      hideToolbar={hideToolbar}
      title={
        <Title order={1} size="h2">
          {nameOf(dashboard.data)}
        </Title>
      }
      tools={<TextLink to={`/dashboards/${id}`}>{t("Open the dashboard")}</TextLink>}
    />
  );
}
