// What is known of an entity beside what its form has, under its name: whether it is online, and what it belongs to.

import { Badge, Button, CopyButton, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { SeverityChip } from "@/alarms/SeverityChip";
import { api } from "@/api/client";
import type { Authority, Entity } from "@/api/types";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { TextLink } from "@/ui/feedback";
import type { Column } from "@/ui/list/DataTable";
import { hasTarget, RAISES, severitiesOf, TARGET } from "./columns";
import { nameOf, readablePathOf, type EntityKind } from "./kinds";
import { onePath } from "./onePath";

/** How often it is asked whether a device is online, milliseconds. */
const EVERY_MS = 10_000;
/** Kinds whose names of other entities have an endpoint of their own. */
const WITH_INFO = ["DEVICE", "ASSET", "ENTITY_VIEW", "TENANT"];

/** Severities are chips; the name of another entity leads to it. */
function shown(column: Column<Entity>, row: Entity, authority: Authority): ReactElement | string {
  if (column.key === RAISES.key) {
    return (
      <Group gap={4}>
        {severitiesOf(row).map((severity) => (
          <SeverityChip key={severity} severity={severity} />
        ))}
      </Group>
    );
  }
  const id = column.leadsTo?.(row);
  const path = id === undefined ? undefined : readablePathOf(id, authority);
  return path === undefined ? column.text(row) : <TextLink to={path}>{column.text(row)}</TextLink>;
}

/** Lets the names of other entities lead to them, where the role may see those, and gives severities their colours. */
export function drawn(column: Column<Entity>, authority: Authority): Column<Entity> {
  if (column.leadsTo === undefined) {
    return column.key === RAISES.key ? { ...column, show: (row) => shown(column, row, authority) } : column;
  }
  return { ...column, show: (row) => <span onClick={(event) => event.stopPropagation()}>{shown(column, row, authority)}</span> };
}

/** Returns an entity with the names of what it belongs to. */
export function useInfo(kind: EntityKind, entity: Entity): Entity {
  // It names what it is for by the id alone.
  const target = hasTarget(kind.type) ? TARGET.leadsTo?.(entity) : undefined;
  const info = useQuery({
    queryKey: ["entity", entity.id.id, "info"],
    enabled: WITH_INFO.includes(kind.type) || target !== undefined,
    refetchInterval: kind.type === "DEVICE" ? EVERY_MS : false,
    queryFn: async (): Promise<Partial<Entity>> => (target === undefined ? await api.get<Entity>(`${kind.one}/info/${entity.id.id}`) : { entityName: nameOf(await api.get<Entity>(onePath(target))) }),
  });
  return info.data === undefined ? entity : { ...info.data, ...entity };
}

export function EntityFacts({ kind, entity }: { kind: EntityKind; entity: Entity }): ReactElement {
  const { authority } = useSession();
  const row = useInfo(kind, entity);
  const belongs = kind.columns.filter((column) => (column.leadsTo !== undefined || column.key === RAISES.key) && column.text(row) !== "");
  return (
    <Group gap="md" mb="md">
      {typeof row["active"] === "boolean" && (
        <Badge variant="dot" color={row["active"] ? "teal" : "gray"}>
          {t(row["active"] ? "Online" : "Offline")}
        </Badge>
      )}
      {belongs.map((column) => (
        <Group key={column.key} gap={4}>
          <Text size="sm">{t(column.label)}:</Text>
          <Text size="sm" component="div">
            {shown(column, row, authority)}
          </Text>
        </Group>
      ))}
      <Text size="sm" c="var(--soft-text)">
        {t("Created")}: {formatTime(entity.createdTime)}
      </Text>
      <CopyButton value={entity.id.id}>
        {({ copied, copy }) => (
          <Button size="compact-xs" variant="subtle" onClick={copy} title={entity.id.id}>
            {t(copied ? "Copied" : "Copy the ID")}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}
