// A stored dashboard as its readers see it.

import { Button, Group, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState, type ReactElement } from "react";
import { useLocation, useSearchParams } from "wouter";
import { api } from "@/api/client";
import { useSession } from "@/app/session";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { download } from "@/ui/csv";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { useThingTitle } from "@/ui/pageTitle";
import { readSettings } from "@/dashboard/settings";
import { object } from "@/dashboard/model";
import { DashboardMenu, OtherDashboards } from "./DashboardMenu";
import { DashboardView } from "./DashboardView";
import { draftOf, type StoredDashboard } from "./edit/draft";

const EditMode = lazy(() => import("./edit/EditMode"));
const Imported = lazy(() => import("./Imported"));
const ShareDialog = lazy(() => import("./ShareDialog"));

/** Saves the dashboard, with the pictures and scripts that it uses, as a file that this product and ThingsBoard can bring in. */
async function exportFile(id: string): Promise<void> {
  const stored = await api.get<StoredDashboard>(`/api/dashboard/${id}`, { includeResources: true });
  const { id: _id, createdTime: _created, tenantId: _tenant, version: _version, assignedCustomers: _assigned, ...file } = stored;
  download(`${nameOf(stored)}.json`, JSON.stringify(file, null, 2));
}

export default function Dashboard({ id }: { id: string }): ReactElement {
  const { user, authority } = useSession();
  const cache = useQueryClient();
  const [path] = useLocation();
  const [sharing, setSharing] = useState(false);
  const [search, setSearch] = useSearchParams();
  const dashboard = useQuery({ queryKey: ["dashboard", id], queryFn: () => api.get<StoredDashboard>(`/api/dashboard/${id}`) });
  useThingTitle(dashboard.data === undefined ? undefined : nameOf(dashboard.data));
  const isVisit = dashboard.isSuccess && path.startsWith("/dashboards/");
  useEffect(() => {
    if (isVisit) {
      // The list of dashboards that were visited lately lives on this; a dashboard is shown without it, too.
      api.get(`/api/user/dashboards/${id}/visit`).catch(() => undefined);
    }
  }, [id, isVisit]);
  if (dashboard.isPending) {
    return <Waiting />;
  }
  if (dashboard.isError) {
    return <Problem error={dashboard.error} />;
  }
  const setParameter = (name: "edit" | "imported", on: boolean): void =>
    setSearch((before) => {
      const after = new URLSearchParams(before);
      after.delete(name);
      return on ? new URLSearchParams([...after, [name, "true"]]) : after;
    });
  const setEditing = (editing: boolean): void => setParameter("edit", editing);
  const flag = (name: string): boolean => search.get(name) === "true";
  const isBare = path.startsWith("/dashboard/");
  const mayEdit = authority === "TENANT_ADMIN" && !flag("readonly");
  if (mayEdit && flag("edit")) {
    return (
      <Suspense fallback={<Waiting />}>
        <EditMode key={id} stored={dashboard.data} onSaved={(stored) => cache.setQueryData(["dashboard", id], stored)} onDone={() => setEditing(false)} />
      </Suspense>
    );
  }
  const saved = (changed: StoredDashboard): unknown => cache.setQueryData(["dashboard", id], changed);
  const { showExport: showsExport, showDashboardsSelect: showsOthers } = readSettings(object(dashboard.data.configuration));
  const edit = <Button onClick={() => setEditing(true)}>{draftOf(user.id.id, id) === undefined ? t("Edit") : t("Go on editing")}</Button>;
  const more = <DashboardMenu dashboard={dashboard.data} mayEdit={mayEdit} onSaved={saved} />;
  return (
    <>
      <Suspense>{sharing && <ShareDialog dashboard={dashboard.data} onChange={(changed) => saved({ ...dashboard.data, ...changed })} onClose={() => setSharing(false)} />}</Suspense>
      <Suspense>{flag("imported") && <Imported configuration={dashboard.data.configuration} onClose={() => setParameter("imported", false)} />}</Suspense>
      <DashboardView
        key={id}
        id={id}
        name={nameOf(dashboard.data)}
        configuration={dashboard.data.configuration}
        hideToolbar={isBare && (flag("embedded") || flag("hideToolbar"))}
        title={
          <Title order={1} size="h2">
            {nameOf(dashboard.data)}
          </Title>
        }
        tools={
          <>
            {mayEdit && edit}
            {!isBare && showsExport && (
              <Button variant="default" onClick={() => void exportFile(id).catch(notify.error)}>
                {t("Export")}
              </Button>
            )}
            {mayEdit && (
              <Button variant="default" onClick={() => setSharing(true)}>
                {t("Share")}
              </Button>
            )}
            {!isBare && showsOthers && <OtherDashboards id={id} />}
            {!isBare && more}
          </>
        }
        corner={
          mayEdit && (
            <Group justify="end" mb={4} gap="xs">
              {edit}
              {!isBare && more}
            </Group>
          )
        }
      />
    </>
  );
}
