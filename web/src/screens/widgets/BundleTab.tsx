// The widgets of a bundle in their order, which can be changed.

import { ActionIcon, Button, Group, Table, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { NULL_ID, nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { download } from "@/ui/csv";
import { EmptyState, notify, Problem, TextLink, Waiting } from "@/ui/feedback";
import { EntityPicker } from "@/ui/form/EntityPicker";
import { bundleFile } from "./bundle";

/** Moves one of a list by a step, as far as there is room. */
export function moved<T>(rows: readonly T[], at: number, step: number): T[] {
  const next = [...rows];
  const [row] = next.splice(at, 1);
  next.splice(Math.min(Math.max(0, at + step), next.length), 0, ...(row === undefined ? [] : [row]));
  return next;
}

export default function BundleTab({ entity, mayWrite }: { entity: Entity; mayWrite: boolean }): ReactElement {
  const cache = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [picked, setPicked] = useState(0);
  const path = `/api/widgetsBundle/${entity.id.id}/widgetTypes`;
  const key = ["bundle", entity.id.id];
  const types = useQuery({ queryKey: key, queryFn: () => api.get<Entity[]>(path) });
  if (types.isPending) {
    return <Waiting />;
  }
  if (types.isError) {
    return <Problem error={types.error} />;
  }
  const rows = types.data;
  const store = async (ids: readonly string[]): Promise<void> => {
    setBusy(true);
    try {
      await api.post(path, ids);
      await cache.invalidateQueries({ queryKey: key });
    } catch (error) {
      notify.error(error);
    } finally {
      setBusy(false);
    }
  };
  const ids = rows.map((row) => row.id.id);
  const save = async (): Promise<void> => {
    const whole = await api.get<Entity[]>("/api/widgetTypesDetails", { widgetsBundleId: entity.id.id });
    download(`${nameOf(entity)}.json`, JSON.stringify(bundleFile(entity, whole, (one) => (one["tenantId"] as EntityId | undefined)?.id === NULL_ID), null, 2));
  };
  return (
    <>
      <Group mb="sm" align="end">
        {mayWrite && (
          <EntityPicker
            key={picked}
            label={t("Add a widget")}
            list="/api/widgetTypes?fullSearch=true"
            value={null}
            onChange={(chosen) => {
              const id = typeof chosen === "object" ? chosen?.id : undefined;
              setPicked(picked + 1);
              if (id !== undefined && !ids.includes(id)) {
                void store([...ids, id]);
              }
            }}
          />
        )}
        <Button variant="default" onClick={() => void save().catch(notify.error)}>
          {t("Export with its widgets")}
        </Button>
      </Group>
      {rows.length === 0 ? (
        <EmptyState>{t("No widgets in this bundle yet.")}</EmptyState>
      ) : (
        <Table aria-label={t("Widgets")} maw={760}>
          <Table.Tbody>
            {rows.map((row, at) => (
              <Table.Tr key={row.id.id}>
                <Table.Td w={40}>
                  <Text size="sm">{at + 1}</Text>
                </Table.Td>
                <Table.Td>
                  <TextLink to={`/resources/widgets-library/widget-types/${row.id.id}`}>{nameOf(row)}</TextLink>
                </Table.Td>
                {mayWrite && (
                  <Table.Td>
                    <Group gap={4} justify="flex-end" wrap="nowrap">
                      <ActionIcon variant="default" disabled={busy || at === 0} aria-label={t("Move {name} up", { name: nameOf(row) })} onClick={() => void store(moved(ids, at, -1))}>
                        ↑
                      </ActionIcon>
                      <ActionIcon variant="default" disabled={busy || at === rows.length - 1} aria-label={t("Move {name} down", { name: nameOf(row) })} onClick={() => void store(moved(ids, at, 1))}>
                        ↓
                      </ActionIcon>
                      <ActionIcon variant="subtle" color="red" disabled={busy} aria-label={t("Take {name} out", { name: nameOf(row) })} onClick={() => void store(ids.filter((id) => id !== row.id.id))}>
                        ✕
                      </ActionIcon>
                    </Group>
                  </Table.Td>
                )}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </>
  );
}
