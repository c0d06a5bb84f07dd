// Deletes the selected entities of a list, after a question.

import { Button, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { BulkProgress, isWhole, useBulkRun } from "@/ui/list/BulkProgress";
import { nameOf, type EntityKind } from "./kinds";

export function BulkDelete({ kind, rows, done }: { kind: EntityKind; rows: Entity[]; done: () => void }): ReactElement | null {
  const [asked, { open, close }] = useDisclosure(false);
  const bulk = useBulkRun(nameOf);
  const cache = useQueryClient();
  const busy = bulk.progress !== undefined;
  const leave = (): void => {
    if (!busy) {
      close();
      if (bulk.outcome !== undefined) {
        done();
      }
    }
  };
  const remove = async (): Promise<void> => {
    const outcome = await bulk.run(rows, (row) => api.delete(`${kind.one}/${row.id.id}`));
    await cache.invalidateQueries({ queryKey: ["list"] });
    if (isWhole(outcome)) {
      close();
      done();
      notify.ok(t("{n} deleted", { n: rows.length }));
    }
  };
  return rows.length === 0 ? null : (
    <>
      <Button size="xs" color="red" onClick={open}>
        {t("Delete {n}", { n: rows.length })}
      </Button>
      <Modal opened={asked} onClose={leave} title={t("Delete {n} for good?", { n: rows.length })} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{rows.slice(0, 5).map(nameOf).join(", ") + (rows.length > 5 ? " …" : "")}</Text>
        {bulk.outcome === undefined && (
          <>
            <Text mb="md">{t("Their data goes with them. This can't be undone.")}</Text>
            <Group>
              <Button color="red" loading={busy} onClick={() => void remove()}>
                {t("Delete")}
              </Button>
              <Button variant="default" disabled={busy} onClick={leave}>
                {t("Cancel")}
              </Button>
            </Group>
          </>
        )}
        <BulkProgress {...bulk} />
      </Modal>
    </>
  );
}
