// A stored dashboard as its readers see it.

import { Button, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, type ReactElement } from "react";
import { useLocation, useSearchParams } from "wouter";
import { api } from "@/api/client";
import { useSession } from "@/app/session";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { download } from "@/ui/csv";
import { Problem, TextLink, Waiting } from "@/ui/feedback";
import { DashboardView } from "./DashboardView";
import { ShareButton } from "./ShareButton";
import { draftOf, type StoredDashboard } from "./edit/editor";

const EditMode = lazy(() => import("./edit/EditMode"));

/** Saves the dashboard as a file that this product and ThingsBoard can bring in. */
function exportFile(dashboard: StoredDashboard): void {
  const { id: _id, createdTime: _created, tenantId: _tenant, version: _version, assignedCustomers: _assigned, ...file } = dashboard;
  download(`${nameOf(dashboard)}.json`, JSON.stringify(file, null, 2));
}

export default function Dashboard({ id }: { id: string }): ReactElement {
  const { user, authority } = useSession();
  const cache = useQueryClient();
  const [path] = useLocation();
  const [search, setSearch] = useSearchParams();
  const dashboard = useQuery({ queryKey: ["dashboard", id], queryFn: () => api.get<StoredDashboard>(`/api/dashboard/${id}`) });
  if (dashboard.isPending) {
    return <Waiting />;
  }
  if (dashboard.isError) {
    return <Problem error={dashboard.error} />;
  }
  const setEditing = (editing: boolean): void =>
    setSearch((before) => {
      const after = new URLSearchParams(before);
      after.delete("edit");
      return editing ? new URLSearchParams([...after, ["edit", "true"]]) : after;
    });
  const flag = (name: string): boolean => search.get(name) === "true";
  const isBare = path.startsWith("/dashboard/");
  const mayEdit = authority === "TENANT_ADMIN" && !flag("readonly");
  if (mayEdit && flag("edit")) {
    return (
      <Suspense fallback={<Waiting />}>
        <EditMode key={id} stored={dashboard.data} onSaved={(saved) => cache.setQueryData(["dashboard", id], saved)} onDone={() => setEditing(false)} />
      </Suspense>
    );
  }
  return (
    <DashboardView
      key={id}
      id={id}
      configuration={dashboard.data.configuration}
      hideToolbar={isBare && (flag("embedded") || flag("hideToolbar"))}
      title={
        <Title order={1} size="h2">
          {nameOf(dashboard.data)}
        </Title>
      }
      tools={
        <>
          {mayEdit && (
            <Button onClick={() => setEditing(true)}>{draftOf(user.id.id, id) === undefined ? t("Edit") : t("Go on editing")}</Button>
          )}
          {!isBare && (
            <Button variant="default" onClick={() => exportFile(dashboard.data)}>
              {t("Export")}
            </Button>
          )}
          {mayEdit && <ShareButton dashboard={dashboard.data} onChange={(changed) => cache.setQueryData(["dashboard", id], { ...dashboard.data, ...changed })} />}
          {!isBare && <TextLink to={`/dashboards/${id}/details`}>{t("Details")}</TextLink>}
        </>
      }
    />
  );
}
