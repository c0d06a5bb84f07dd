// Deletes something that others may use: who uses it is told before it is deleted all the same.

import { Button, List, Modal, Text, type ButtonProps } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { ApiError, api } from "@/api/client";
import type { Entity } from "@/api/types";
import { nameOf, pathOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { notify, TextLink } from "./feedback";

/** Reads who uses what was to be deleted from the server's refusal. */
export function usersOf(error: unknown): Entity[] | undefined {
  const details = error instanceof ApiError ? (error.details as { references?: Record<string, Entity[]> | null } | undefined) : undefined;
  const references = details?.references ?? undefined;
  return references === undefined ? undefined : Object.values(references).flat();
}

export function DeleteUsed({ name, path, onDone, ...look }: { name: string; path: string; onDone: () => void } & ButtonProps): ReactElement {
  const [asked, setAsked] = useState(false);
  const [users, setUsers] = useState<Entity[]>();
  const remove = async (force: boolean): Promise<void> => {
    try {
      await api.delete(path, { force });
    } catch (error) {
      const found = usersOf(error);
      if (found === undefined) {
        notify.error(error);
      }
      setUsers(found);
      return;
    }
    setAsked(false);
    notify.ok(t("{name} is deleted", { name }));
    onDone();
  };
  const open = (): void => {
    setUsers(undefined);
    setAsked(true);
  };
  return (
    <>
      <Button color="red" variant="light" {...look} onClick={open}>
        {t("Delete")}
      </Button>
      <Modal opened={asked} onClose={() => setAsked(false)} title={t("Delete {name} for good?", { name })} closeButtonProps={{ "aria-label": t("Close") }}>
        {users === undefined ? (
          <Text mb="md">{t("This can't be undone.")}</Text>
        ) : (
          <>
            <Text mb="xs">{t("It is in use, and will be missing there:")}</Text>
            <List mb="md" aria-label={t("Used by")}>
              {users.map((user) => {
                const to = pathOf(user.id);
                return <List.Item key={user.id.id}>{to === undefined ? nameOf(user) : <TextLink to={to}>{nameOf(user)}</TextLink>}</List.Item>;
              })}
            </List>
          </>
        )}
        <Button color="red" onClick={() => void remove(users !== undefined)}>
          {t(users === undefined ? "Delete" : "Delete it all the same")}
        </Button>
      </Modal>
    </>
  );
}
