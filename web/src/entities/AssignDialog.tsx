// Assigns one or many entities to a customer, takes them back, or makes them public. Dashboards can have several customers.

import { Button, Group, Modal, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { EntityPicker } from "@/ui/form/EntityPicker";
import { BulkProgress, isWhole, useBulkRun } from "@/ui/list/BulkProgress";
import { DashboardCustomers } from "./DashboardCustomers";
import { nameOf, NULL_ID, type EntityKind } from "./kinds";

type Act = (row: Entity) => Promise<unknown>;

/** Takes an entity back from its customer. */
function unassign(kind: EntityKind, row: Entity): Promise<unknown> {
  return (row["customerId"] as EntityId | undefined)?.id === NULL_ID ? Promise.resolve() : api.delete(`/api/customer/${kind.assign ?? ""}/${row.id.id}`);
}

function OneCustomer({ kind, busy, run }: { kind: EntityKind; busy: boolean; run: (act: Act) => void }): ReactElement {
  const [customer, setCustomer] = useState<EntityId | null>(null);
  return (
    <Stack>
      <EntityPicker label={t("Customer")} list="/api/customers" value={customer} onChange={(id) => setCustomer(typeof id === "string" ? null : id)} />
      <Group>
        <Button disabled={customer === null || busy} onClick={() => run((row) => api.post(`/api/customer/${customer?.id ?? ""}/${kind.assign ?? ""}/${row.id.id}`))}>
          {t("Assign to the customer")}
        </Button>
        <Button variant="default" disabled={busy} onClick={() => run((row) => unassign(kind, row))}>
          {t("Take back")}
        </Button>
        <Button variant="default" disabled={busy} onClick={() => run((row) => api.post(`/api/customer/public/${kind.assign ?? ""}/${row.id.id}`))}>
          {t("Make public")}
        </Button>
      </Group>
    </Stack>
  );
}

export function AssignDialog({ kind, rows, done }: { kind: EntityKind; rows: Entity[]; done?: () => void }): ReactElement {
  const [opened, { open, close }] = useDisclosure(false);
  const bulk = useBulkRun(nameOf);
  const cache = useQueryClient();
  const busy = bulk.progress !== undefined;
  const run = async (act: Act): Promise<void> => {
    const outcome = await bulk.run(rows, act);
    await Promise.all(["list", "entity"].map((key) => cache.invalidateQueries({ queryKey: [key] })));
    if (isWhole(outcome)) {
      notify.ok(t("{n} changed", { n: rows.length }));
      close();
      done?.();
    }
  };
  const begin = (act: Act): void => void run(act).catch(notify.error);
  return (
    <>
      <Button size="xs" variant="default" onClick={open}>
        {rows.length === 1 ? t("Assign") : t("Assign {n}", { n: rows.length })}
      </Button>
      <Modal opened={opened} onClose={() => !busy && close()} size="lg" title={t("Who may see it?")} closeButtonProps={{ "aria-label": t("Close") }}>
        {kind.assign === "dashboard" ? <DashboardCustomers rows={rows} busy={busy} run={begin} /> : <OneCustomer kind={kind} busy={busy} run={begin} />}
        <BulkProgress {...bulk} />
      </Modal>
    </>
  );
}
