// What can be done with a stored dashboard besides looking at it: its versions, the report on how it is drawn, other dashboards.

import { Button, Menu, ScrollArea, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { useSession } from "@/app/session";
import { KINDS, nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { Problem } from "@/ui/feedback";
import type { StoredDashboard } from "./edit/draft";

const ImportReport = lazy(() => import("./ImportReport"));
const Versions = lazy(() => import("./Versions"));

/** Leads to the other dashboards of whoever looks. */
export function OtherDashboards({ id }: { id: string }): ReactElement | null {
  const { authority, customerId } = useSession();
  const [, go] = useLocation();
  const [opened, setOpened] = useState(false);
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const path = KINDS.find(({ type }) => type === "DASHBOARD")?.list[authority]?.replace("{customerId}", customerId);
  const found = useQuery({
    queryKey: ["other dashboards", path, wanted],
    enabled: opened && path !== undefined,
    queryFn: () => api.get<PageData<Entity>>(path ?? "", { pageSize: 30, page: 0, textSearch: wanted, sortProperty: "title", sortOrder: "ASC" }),
  });
  return path === undefined ? null : (
    <Menu opened={opened} onChange={setOpened} width={260}>
      <Menu.Target>
        <Button variant="default">{t("Dashboards")}</Button>
      </Menu.Target>
      <Menu.Dropdown>
        <TextInput aria-label={t("Search")} placeholder={t("Search")} value={search} onChange={(event) => setSearch(event.currentTarget.value)} m={4} />
        {found.isError && <Problem error={found.error} />}
        <ScrollArea.Autosize mah={320}>
          {found.data?.data.filter((one) => one.id.id !== id).map((one) => (
            <Menu.Item key={one.id.id} onClick={() => go(`/dashboards/${one.id.id}`)}>
              {nameOf(one)}
            </Menu.Item>
          ))}
          {found.data?.data.every((one) => one.id.id === id) === true && (
            <Text size="sm" p="xs">
              {t("There are no others.")}
            </Text>
          )}
        </ScrollArea.Autosize>
      </Menu.Dropdown>
    </Menu>
  );
}

interface MenuProps {
  dashboard: StoredDashboard;
  mayEdit: boolean;
  onSaved: (saved: StoredDashboard) => void;
}

export function DashboardMenu({ dashboard, mayEdit, onSaved }: MenuProps): ReactElement {
  const [, go] = useLocation();
  const [shown, setShown] = useState<"report" | "versions">();
  const id = dashboard.id.id;
  return (
    <>
      <Menu>
        <Menu.Target>
          <Button variant="default">{t("More")}</Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => go(`/dashboards/${id}/details`)}>{t("Details")}</Menu.Item>
          {mayEdit && <Menu.Item onClick={() => setShown("versions")}>{t("Versions")}</Menu.Item>}
          <Menu.Item onClick={() => setShown("report")}>{t("Import report")}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Suspense>
        {shown === "report" && <ImportReport configuration={dashboard.configuration} opened onClose={() => setShown(undefined)} />}
        {shown === "versions" && <Versions dashboard={dashboard} mayEdit={mayEdit} onSaved={onSaved} onClose={() => setShown(undefined)} />}
      </Suspense>
    </>
  );
}
