// Brings a calculated field or alarm rule in from a file: for whom, and with which entities in the place of those that aren't here.

import { Alert, List, Modal, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, type ReactElement } from "react";
import { useLocation } from "wouter";
import { ApiError, api } from "@/api/client";
import { currentClaims } from "@/api/session";
import type { Entity, EntityId } from "@/api/types";
import { plural, t } from "@/i18n";
import { Problem, Waiting } from "@/ui/feedback";
import { AS_OPENED, FieldsForm } from "@/ui/FieldsForm";
import { wordsOf } from "@/ui/form/values";
import { nameOf, type EntityKind } from "../kinds";
import { onePath } from "../onePath";
import { entityKey, importedField, importFields, importValues, lacking, partText, type ReadField, type Reference } from "./imported";

interface Props {
  kind: EntityKind;
  file: ReadField;
  /** Whom it is for, where that is known by the page. */
  target?: EntityId | undefined;
  onClose: () => void;
}

/** Answers that say that an entity isn't here, or isn't one that may be named. */
const NOT_HERE = [400, 403, 404];

async function nameHere(id: EntityId): Promise<string | undefined> {
  try {
    return nameOf(await api.get<Entity>(onePath(id)));
  } catch (error) {
    if (error instanceof ApiError && NOT_HERE.includes(error.status)) {
      return undefined;
    }
    throw error;
  }
}

const kindText = (id: EntityId): string => t(wordsOf(id.entityType));

/** Says what a missing entity was, by what named it. */
function insteadText({ id, of }: Reference): string {
  return t("{kind} for {names}", { kind: kindText(id), names: of.map((name) => partText(id, name, t)).join(", ") });
}

export default function FieldImport({ kind, file, target, onClose }: Props): ReactElement {
  const [, go] = useLocation();
  const cache = useQueryClient();
  const named = useMemo(() => [...file.references.map(({ id }) => id), ...(file.target === undefined ? [] : [file.target])], [file]);
  const names = useQuery({
    queryKey: ["named in a file", named],
    ...AS_OPENED,
    refetchOnReconnect: false,
    queryFn: async () => new Map(await Promise.all(named.map(async (id) => [entityKey(id), await nameHere(id)] as const))),
  });
  const missing = useMemo(() => file.references.filter(({ id }) => names.data?.get(entityKey(id)) === undefined), [file, names.data]);
  const here = file.references.filter((one) => !missing.includes(one));
  return (
    <Modal opened onClose={onClose} size="lg" title={t(`Import: ${kind.singular}`)} closeButtonProps={{ "aria-label": t("Close") }}>
      {names.isPending && <Waiting />}
      {names.isError && <Problem error={names.error} />}
      {names.data !== undefined && (
        <>
          {missing.length > 0 && (
            <Alert color="yellow" mb="sm" title={plural(missing.length, "{n} entity of this file isn't here", "{n} entities of this file aren't here")}>
              <List size="sm">
                {missing.map((one) => (
                  <List.Item key={entityKey(one.id)}>
                    {insteadText(one)}: {one.id.id}
                  </List.Item>
                ))}
              </List>
              <Text size="sm">{t("Choose below what takes their place. A dashboard can be left out.")}</Text>
            </Alert>
          )}
          {here.length > 0 && (
            <Text size="sm" mb="sm">
              {t("Found here")}: {here.map(({ id }) => `${kindText(id)} ${names.data.get(entityKey(id)) ?? ""}`).join(", ")}
            </Text>
          )}
          <FieldsForm
            fields={importFields(kind.type, missing, insteadText)}
            values={importValues(file, target, (id) => names.data.get(entityKey(id)) !== undefined)}
            action="Import"
            onCancel={onClose}
            onSave={async (filled) => {
              const lack = lacking(missing, filled);
              if (lack !== undefined) {
                throw new Error(lack === "target" ? "Choose first whom it is for." : "Choose what takes the place of each entity that isn't here.");
              }
              const saved = await api.post<Entity>(kind.one, importedField(file, missing, filled, currentClaims()?.tenantId));
              void cache.invalidateQueries({ queryKey: ["list"] });
              onClose();
              go(`${kind.path}/${saved.id.id}`);
            }}
          />
        </>
      )}
    </Modal>
  );
}
