// The screen of all entities of a kind.

import { Group, Text, Title } from "@mantine/core";
import { lazy, Suspense, type ReactElement, type ReactNode } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { ImportButton } from "@/ui/ImportButton";
import { AddDrawer } from "./AddDrawer";
import { hasTarget } from "./columns";
import { EntityTable } from "./EntityTable";
import { FieldImportButton } from "./fields/FieldImportButton";
import type { EntityKind } from "./kinds";

const ClaimButton = lazy(() => import("./ClaimButton"));
const BulkImport = lazy(() => import("./BulkImport"));

export default function EntityList({ kind, tools }: { kind: EntityKind; tools?: ReactNode }): ReactElement {
  const { user, authority, customerId } = useSession();
  const [, go] = useLocation();
  const path = kind.list[authority]?.replace("{customerId}", customerId);
  const mayWrite = kind.writers.includes(authority);
  if (path === undefined) {
    return <Text>{t("Your role has no access to this.")}</Text>;
  }
  const bringIn = async (text: string): Promise<void> => {
    const { id: _id, version: _version, tenantId: _tenant, createdTime: _created, ...content } = JSON.parse(text) as Record<string, unknown>;
    const saved = await api.post<Entity>(kind.one, content);
    go(`${kind.path}/${saved.id.id}${kind.type === "DASHBOARD" ? "?imported=true" : ""}`);
  };
  return (
    <>
      <Group justify="space-between" mb="md">
        <Title order={1} size="h2">
          {t(kind.plural)}
        </Title>
        {kind.type === "DEVICE" && authority === "CUSTOMER_USER" && (
          <Suspense>
            <ClaimButton />
          </Suspense>
        )}
        {mayWrite && (
          <Group gap="xs">
            {kind.bulkImport === true && (
              <Suspense>
                <BulkImport kind={kind} />
              </Suspense>
            )}
            {kind.importable === true && (hasTarget(kind.type) ? <FieldImportButton kind={kind} /> : <ImportButton take={bringIn} />)}
            {tools}
            <AddDrawer kind={kind} inAddress />
          </Group>
        )}
      </Group>
      <EntityTable key={`${kind.type} ${user.id.id}`} kind={kind} path={path} mayWrite={mayWrite} isScreen />
    </>
  );
}
