// Assigns one or many entities to a customer, takes them back, or makes them public.

import { Button, Group, Modal, Progress, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { t } from "@/i18n";
import { messageOf, notify } from "@/ui/feedback";
import { EntityPicker } from "@/ui/form/EntityPicker";
import { nameOf, NULL_ID, type EntityKind } from "./kinds";

type Act = (row: Entity) => Promise<unknown>;

/** Takes an entity back from its customer; a dashboard from all of its customers. */
function unassign(kind: EntityKind, row: Entity): Promise<unknown> {
  return kind.assign === "dashboard"
    ? api.post(`/api/dashboard/${row.id.id}/customers`, [])
    : (row["customerId"] as EntityId | undefined)?.id === NULL_ID
      ? Promise.resolve()
      : api.delete(`/api/customer/${kind.assign ?? ""}/${row.id.id}`);
}

export function AssignDialog({ kind, rows, done }: { kind: EntityKind; rows: Entity[]; done?: () => void }): ReactElement {
  const [opened, { open, close }] = useDisclosure(false);
  const [customer, setCustomer] = useState<EntityId | null>(null);
  const [progress, setProgress] = useState<number>();
  const cache = useQueryClient();
  const run = async (act: Act): Promise<void> => {
    const failed: string[] = [];
    for (const [n, row] of rows.entries()) {
      setProgress(n);
      await act(row).catch((error: unknown) => failed.push(`${nameOf(row)}: ${messageOf(error)}`));
    }
    setProgress(undefined);
    await Promise.all(["list", "entity"].map((key) => cache.invalidateQueries({ queryKey: [key] })));
    if (failed.length > 0) {
      notify.error(failed.slice(0, 5).join("\n"));
      return;
    }
    notify.ok(t("{n} changed", { n: rows.length }));
    close();
    done?.();
  };
  const busy = progress !== undefined;
  return (
    <>
      <Button size="xs" variant="default" onClick={open}>
        {rows.length === 1 ? t("Assign") : t("Assign {n}", { n: rows.length })}
      </Button>
      <Modal opened={opened} onClose={close} title={t("Who may see it?")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Stack>
          <EntityPicker label={t("Customer")} list="/api/customers" value={customer} onChange={(id) => setCustomer(typeof id === "string" ? null : id)} />
          <Group>
            <Button disabled={customer === null || busy} onClick={() => void run((row) => api.post(`/api/customer/${customer?.id ?? ""}/${kind.assign ?? ""}/${row.id.id}`))}>
              {t("Assign to the customer")}
            </Button>
            <Button variant="default" disabled={busy} onClick={() => void run((row) => unassign(kind, row))}>
              {t("Take back")}
            </Button>
            <Button variant="default" disabled={busy} onClick={() => void run((row) => api.post(`/api/customer/public/${kind.assign ?? ""}/${row.id.id}`))}>
              {t("Make public")}
            </Button>
          </Group>
          {progress !== undefined && <Progress aria-label={t("Progress")} value={(100 * progress) / rows.length} />}
        </Stack>
      </Modal>
    </>
  );
}
