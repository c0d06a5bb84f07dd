// The dashboards that name an entity. The server keeps no such list, so each of them is looked into, when somebody asks.

import { List, Modal, Text } from "@mantine/core";
import { useEffect, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { EmptyState, Problem, TextLink, Waiting } from "@/ui/feedback";
import { BulkProgress, isWhole, useBulkRun } from "@/ui/list/BulkProgress";
import { KINDS, nameOf, type EntityKind } from "./kinds";

/** Dashboards of one request. */
const PAGE = 1_000;

const DASHBOARDS = KINDS.find(({ type }) => type === "DASHBOARD");

async function allDashboards(path: string): Promise<Entity[]> {
  const found: Entity[] = [];
  for (let page = 0; ; page++) {
    const { data, hasNext } = await api.get<PageData<Entity>>(path, { pageSize: PAGE, page, sortProperty: "title", sortOrder: "ASC" });
    found.push(...data);
    if (!hasNext) {
      return found;
    }
  }
}

export default function ShownOn({ entity, onClose }: { entity: Entity; onClose: () => void }): ReactElement {
  const { authority, customerId } = useSession();
  const [naming, setNaming] = useState<Entity[]>([]);
  /** Why there is no list of dashboards to look into. */
  const [failure, setFailure] = useState<unknown>();
  const looking = useBulkRun<Entity>(nameOf);
  const { one = "", path = "", list } = DASHBOARDS ?? ({} as Partial<EntityKind>);
  const lookInto = async (dashboard: Entity): Promise<void> => {
    const { configuration } = await api.get<Entity>(`${one}/${dashboard.id.id}`);
    if (JSON.stringify(configuration ?? null).includes(entity.id.id)) {
      setNaming((before) => [...before, dashboard].sort((a, b) => nameOf(a).localeCompare(nameOf(b))));
    }
  };
  useEffect(() => {
    const all = allDashboards((list?.[authority] ?? "").replace("{customerId}", customerId));
    let isOpen = true;
    all.then((dashboards) => (isOpen ? looking.run(dashboards, lookInto) : undefined)).catch(setFailure);
    return () => {
      isOpen = false;
    };
  }, []);
  return (
    <Modal opened onClose={onClose} title={t("Dashboards that name {name}", { name: nameOf(entity) })} closeButtonProps={{ "aria-label": t("Close") }}>
      {failure !== undefined && <Problem error={failure} />}
      {failure === undefined && looking.progress === undefined && looking.outcome === undefined && <Waiting />}
      <List listStyleType="none">
        {naming.map((dashboard) => (
          <List.Item key={dashboard.id.id}>
            <TextLink to={`${path}/${dashboard.id.id}`}>{nameOf(dashboard)}</TextLink>
          </List.Item>
        ))}
      </List>
      {naming.length === 0 && looking.outcome !== undefined && isWhole(looking.outcome) && <EmptyState>{t("No dashboard names it.")}</EmptyState>}
      <BulkProgress {...looking} />
      <Text size="sm" c="var(--soft-text)" mt="md">
        {t("Those that find it by its type, its name or its relations alone are not among them.")}
      </Text>
    </Modal>
  );
}
