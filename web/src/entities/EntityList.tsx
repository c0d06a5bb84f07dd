// The list of all entities of a kind, with what may be done to many of them at once.

import { Button, Drawer, FileButton, Group, Modal, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { DataTable } from "@/ui/DataTable";
import { messageOf, notify, TextLink } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import { nameOf, pathOf, type EntityKind } from "./kinds";

function BulkDelete({ kind, rows, done }: { kind: EntityKind; rows: Entity[]; done: () => void }): ReactElement {
  const [asked, { open, close }] = useDisclosure(false);
  const [progress, setProgress] = useState<number>();
  const cache = useQueryClient();
  const remove = async (): Promise<void> => {
    const failed: string[] = [];
    for (const [n, row] of rows.entries()) {
      setProgress(n);
      await api.delete(`${kind.one}/${row.id.id}`).catch((error: unknown) => failed.push(`${nameOf(row)}: ${messageOf(error)}`));
    }
    setProgress(undefined);
    close();
    done();
    await cache.invalidateQueries({ queryKey: ["list"] });
    if (failed.length > 0) {
      notify.error(failed.slice(0, 5).join("\n"));
    } else {
      notify.ok(t("{n} deleted", { n: rows.length }));
    }
  };
  return (
    <>
      <Button size="xs" color="red" onClick={open}>
        {t("Delete {n}", { n: rows.length })}
      </Button>
      <Modal opened={asked} onClose={close} title={t("Delete {n} for good?", { n: rows.length })} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{rows.slice(0, 5).map(nameOf).join(", ") + (rows.length > 5 ? " …" : "")}</Text>
        <Text mb="md">{t("Their data goes with them. This can't be undone.")}</Text>
        <Group>
          <Button color="red" loading={progress !== undefined} onClick={() => void remove()}>
            {t("Delete")}
          </Button>
          <Button variant="default" onClick={close}>
            {t("Cancel")}
          </Button>
          {progress !== undefined && <Text role="status">{t("{n} of {all}", { n: progress, all: rows.length })}</Text>}
        </Group>
      </Modal>
    </>
  );
}

export default function EntityList({ kind }: { kind: EntityKind }): ReactElement {
  const { user, authority, customerId } = useSession();
  const [, go] = useLocation();
  const [adding, { open, close }] = useDisclosure(false);
  const path = kind.list[authority]?.replace("{customerId}", customerId);
  const mayWrite = kind.writers.includes(authority);
  if (path === undefined) {
    return <Text>{t("Your role has no access to this.")}</Text>;
  }
  const bringIn = async (file: File | null): Promise<void> => {
    try {
      if (file !== null) {
        const { id: _id, version: _version, ...content } = JSON.parse(await file.text()) as Record<string, unknown>;
        const saved = await api.post<Entity>(kind.one, content);
        go(`${kind.path}/${saved.id.id}`);
      }
    } catch (error) {
      notify.error(error instanceof SyntaxError ? new Error("This file is no JSON.") : error);
    }
  };
  const [first, ...others] = kind.columns;
  const columns = first === undefined ? [] : [{ ...first, show: (row: Entity) => <TextLink to={pathOf(row.id) ?? kind.path}>{first.text(row)}</TextLink> }, ...others];
  return (
    <>
      <Group justify="space-between" mb="md">
        <Title order={1} size="h2">
          {t(kind.plural)}
        </Title>
        {mayWrite && (
          <Group gap="xs">
            {kind.importable === true && (
              <FileButton accept="application/json" onChange={(file) => void bringIn(file)}>
                {(props) => (
                  <Button variant="default" {...props}>
                    {t("Import")}
                  </Button>
                )}
              </FileButton>
            )}
            <Button onClick={open}>{t("Add")}</Button>
          </Group>
        )}
      </Group>
      <DataTable<Entity>
        key={`${kind.type} ${user.id.id}`}
        label={t(kind.plural)}
        path={path}
        columns={columns}
        rowKey={(row) => row.id.id}
        sort={{ key: kind.sortBy ?? "createdTime", order: kind.sortBy === undefined ? "DESC" : "ASC" }}
        onOpen={(row) => go(`${kind.path}/${row.id.id}`)}
        {...(mayWrite ? { bulk: (rows: Entity[], done: () => void) => <BulkDelete kind={kind} rows={rows} done={done} /> } : {})}
      />
      <Drawer opened={adding} onClose={close} position="right" title={t(`Add: ${kind.singular}`)} closeButtonProps={{ "aria-label": t("Close") }}>
        <FieldsForm
          fields={kind.fields}
          values={{}}
          action="Add"
          onCancel={close}
          onSave={async (values) => {
            const saved = await api.post<Entity>(kind.one, values);
            close();
            go(`${kind.path}/${saved.id.id}`);
          }}
        />
      </Drawer>
    </>
  );
}
