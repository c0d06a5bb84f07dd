// The dashboard of an entity or a group of entities that nobody had to build.

import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { useSession } from "@/app/session";
import { automaticDashboard, groupDashboard } from "@/dashboard/automatic";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { EmptyState, notify, Problem, Waiting } from "@/ui/feedback";
import { AS_OPENED } from "@/ui/FieldsForm";
import { hasNoValues, isEmpty, isOnlyGroup, sampleOf } from "./automaticSample";
import { DashboardView } from "./DashboardView";

/** How often it is looked whether the first value has come, milliseconds. */
const LOOK_MS = 5_000;

export default function AutomaticTab({ entity }: { entity: Entity }): ReactElement {
  const { authority } = useSession();
  const [, go] = useLocation();
  const { entityType, id } = entity.id;
  const name = nameOf(entity);
  // What is seen stays as it is while values come: a key of which the next value is of another kind moves nothing.
  const sample = useQuery({
    queryKey: ["automatic dashboard", entityType, id, name],
    queryFn: () => sampleOf(entity),
    ...AS_OPENED,
    refetchInterval: ({ state }) => (state.data !== undefined && hasNoValues(state.data) ? LOOK_MS : false),
  });
  const configuration = useMemo(() => {
    if (sample.data === undefined || isEmpty(sample.data)) {
      return undefined;
    }
    const { keys, group } = sample.data;
    const rights = { mayWrite: authority !== "SYS_ADMIN" };
    return group !== undefined && isOnlyGroup(entity) ? groupDashboard(group, rights) : automaticDashboard({ entityType, id }, keys, rights, group);
  }, [sample.data, authority, entityType, id]);
  if (sample.isPending) {
    return <Waiting />;
  }
  if (sample.isError) {
    return <Problem error={sample.error} />;
  }
  if (configuration === undefined) {
    return <EmptyState>{t(isOnlyGroup(entity) ? "Nothing has this profile yet. What gets it appears here." : "No values yet. They appear here as soon as they arrive.")}</EmptyState>;
  }
  const save = async (): Promise<void> => {
    try {
      const saved = await api.post<Entity>("/api/dashboard", { title: name, configuration });
      go(`/dashboards/${saved.id.id}`);
    } catch (error) {
      notify.error(error);
    }
  };
  return (
    <DashboardView
      id={id}
      name={name}
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
