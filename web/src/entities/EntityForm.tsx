// The form of an entity that exists. Somebody else's change in between is shown, and decided on, before one is lost.

import { Button, Group, Modal, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState, type ReactElement } from "react";
import { ApiError, api } from "@/api/client";
import type { Entity } from "@/api/types";
import { dropDraft, hasDraft } from "@/editing/formDraft";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { FieldsForm, type FormValues } from "@/ui/FieldsForm";
import { AroundContext } from "@/ui/form/around";
import { valueAt, withValue } from "@/ui/form/values";
import { AROUND_FORMS } from "./fields/KeyFields";
import { TestButtons } from "./fields/TestButtons";
import { formOf } from "./forms";
import type { EntityKind } from "./kinds";
import { formValues, saveEntity } from "./saving";

interface Props {
  kind: EntityKind;
  entity: Entity;
  /** What follows a save. */
  onSaved: () => Promise<void>;
  onCancel?: () => void;
}

export function EntityForm({ kind, entity: newest, onSaved, onCancel }: Props): ReactElement {
  const draft = `${kind.type} ${newest.id.id}`;
  // What is typed belongs to the entity as it was then: a newer one, which the page asks for by itself, must not put it away.
  const [dirty, setDirty] = useState(() => hasDraft(draft));
  const begun = useRef(newest);
  begun.current = dirty ? begun.current : newest;
  const entity = begun.current;
  const cache = useQueryClient();
  const [round, setRound] = useState(0);
  const [conflict, setConflict] = useState<FormValues>();
  const fields = formOf(kind, false);
  const initial = formValues(kind, entity);
  /** Shows what is stored, without what was typed. */
  const showStored = async (ask: () => Promise<void>): Promise<void> => {
    dropDraft(draft);
    setDirty(false);
    await ask();
    setRound((before) => before + 1);
    setConflict(undefined);
  };
  const save = async (values: FormValues, version: unknown): Promise<void | false> => {
    try {
      await saveEntity(kind, { ...values, version });
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        setConflict(values);
        return false;
      }
      throw error;
    }
    // Before the page is told: opened again now, it has nothing to give back.
    dropDraft(draft);
    setDirty(false);
    await onSaved();
    return undefined;
  };
  /** Puts what was changed here onto what the other has saved meanwhile. */
  const keepMine = async (mine: FormValues): Promise<void> => {
    const theirs = await api.get<Entity>(`${kind.one}/${entity.id.id}`);
    const changed = fields.filter(({ name }) => name !== "" && JSON.stringify(valueAt(mine, name)) !== JSON.stringify(valueAt(initial, name)));
    const joined = changed.reduce((values, { name }) => withValue(values, name, valueAt(mine, name)), formValues(kind, theirs));
    try {
      await saveEntity(kind, { ...joined, version: theirs["version"] });
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        // A third one was faster.
        setConflict(mine);
        return;
      }
      throw error;
    }
    await showStored(onSaved);
  };
  return (
    <>
      <AroundContext value={AROUND_FORMS}>
        <FieldsForm
          key={`${String(entity["version"])} ${round}`}
          fields={fields}
          values={initial}
          action="Save"
          keep={{ name: draft, version: entity["version"] }}
          onDirty={setDirty}
          {...(onCancel === undefined ? {} : { onCancel })}
          onSave={save}
          more={(values, change) => <TestButtons kind={kind} values={values} change={change} />}
        />
      </AroundContext>
      <Modal opened={conflict !== undefined} onClose={() => setConflict(undefined)} title={t("Somebody else has changed this meanwhile")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{t("Keep your values, or take those of the other?")}</Text>
        <Group>
          <Button
            onClick={() => {
              const mine = conflict ?? {};
              setConflict(undefined);
              void keepMine(mine).catch(notify.error);
            }}
          >
            {t("Keep mine")}
          </Button>
          <Button variant="default" onClick={() => void showStored(() => cache.invalidateQueries({ queryKey: ["entity", entity.id.id] })).catch(notify.error)}>
            {t("Take theirs")}
          </Button>
        </Group>
      </Modal>
    </>
  );
}
