// A stored dashboard as its readers see it.

import { Button, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { download } from "@/ui/csv";
import { Problem, TextLink, Waiting } from "@/ui/feedback";
import { DashboardView } from "./DashboardView";

interface StoredDashboard extends Entity {
  configuration: unknown;
}

/** Saves the dashboard as a file that this product and ThingsBoard can bring in. */
function exportFile(dashboard: StoredDashboard): void {
  const { id: _id, createdTime: _created, tenantId: _tenant, version: _version, assignedCustomers: _assigned, ...file } = dashboard;
  download(`${nameOf(dashboard)}.json`, JSON.stringify(file, null, 2));
}

export default function Dashboard({ id }: { id: string }): ReactElement {
  const dashboard = useQuery({ queryKey: ["dashboard", id], queryFn: () => api.get<StoredDashboard>(`/api/dashboard/${id}`) });
  if (dashboard.isPending) {
    return <Waiting />;
  }
  if (dashboard.isError) {
    return <Problem error={dashboard.error} />;
  }
  return (
    <DashboardView
      key={id}
      id={id}
      configuration={dashboard.data.configuration}
      title={
        <Title order={1} size="h2">
          {nameOf(dashboard.data)}
        </Title>
      }
      tools={
        <>
          <Button variant="default" onClick={() => exportFile(dashboard.data)}>
            {t("Export")}
          </Button>
          <TextLink to={`/dashboards/${id}/details`}>{t("Details")}</TextLink>
        </>
      }
    />
  );
}
