// A table of devices or assets in which they are added, changed and deleted, with the forms of their own screens.

import { ActionIcon, Button, Drawer, Group, Modal, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { useSession } from "@/app/session";
import type { EntityValues } from "@/dashboard/source";
import { newDraft } from "@/entities/AddDrawer";
import { DeviceWizard } from "@/entities/DeviceWizard";
import { EntityForm } from "@/entities/EntityForm";
import { formOf } from "@/entities/forms";
import { KINDS, type EntityKind } from "@/entities/kinds";
import { saveEntity } from "@/entities/saving";
import { t } from "@/i18n";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import EntitiesTable from "./EntitiesTable";
import type { WidgetProps } from "./registry";

const NEW = {};

function EditForm({ kind, id, onDone }: { kind: EntityKind; id: EntityId; onDone: () => void }): ReactElement {
  const stored = useQuery({ queryKey: ["entity", id.id], staleTime: 0, queryFn: () => api.get<Entity>(`${kind.one}/${id.id}`) });
  if (stored.isPending || !stored.isFetchedAfterMount) {
    return <Waiting />;
  }
  if (stored.isError) {
    return <Problem error={stored.error} />;
  }
  return <EntityForm kind={kind} entity={stored.data} onCancel={onDone} onSaved={async () => onDone()} />;
}

export default function AdminTable(props: WidgetProps): ReactElement {
  const { authority } = useSession();
  const kind = KINDS.find((one) => one.type === (props.widget.fqn.includes("asset") ? "ASSET" : "DEVICE"));
  const [form, setForm] = useState<EntityId | "new">();
  const [doomed, setDoomed] = useState<EntityValues>();
  // A list that changes by itself within a minute is asked for anew at once by being another one.
  const [changes, setChanges] = useState(0);
  if (kind === undefined || !kind.writers.includes(authority)) {
    return <EntitiesTable {...props} />;
  }
  const done = (): void => {
    setForm(undefined);
    setDoomed(undefined);
    setChanges((before) => before + 1);
  };
  const remove = async (entity: EntityValues): Promise<void> => {
    try {
      await api.delete(`${kind.one}/${entity.id.id}`);
      notify.ok(t("{name} is deleted", { name: entity.name }));
      done();
    } catch (error) {
      notify.error(error);
    }
  };
  const close = { "aria-label": t("Close") };
  return (
    <>
      <EntitiesTable
        key={changes}
        {...props}
        tools={
          <Button size="compact-sm" onClick={() => setForm("new")}>
            {t("Add")}
          </Button>
        }
        rowTools={(entity) =>
          entity.id.entityType !== kind.type ? null : (
            <>
              <ActionIcon size="sm" variant="subtle" aria-label={t("Change {name}", { name: entity.name })} title={t("Edit")} onClick={() => setForm(entity.id)}>
                ✎
              </ActionIcon>
              <ActionIcon size="sm" variant="subtle" color="red" aria-label={t("Delete {name}", { name: entity.name })} title={t("Delete")} onClick={() => setDoomed(entity)}>
                ✕
              </ActionIcon>
            </>
          )
        }
      />
      <Drawer opened={form !== undefined} onClose={() => setForm(undefined)} position="right" size="md" title={form === "new" ? t(`Add: ${kind.singular}`) : t("Details")} closeButtonProps={close}>
        {form === "new" && (kind.type === "DEVICE" ? <DeviceWizard preset={NEW} keep={newDraft(kind, NEW)} onCancel={() => setForm(undefined)} onDone={done} /> : <FieldsForm fields={formOf(kind, true)} values={NEW} action="Add" keep={newDraft(kind, NEW)} onCancel={() => setForm(undefined)} onSave={async (values) => (await saveEntity(kind, values), done())} />)}
        {form !== undefined && form !== "new" && <EditForm kind={kind} id={form} onDone={done} />}
      </Drawer>
      <Modal opened={doomed !== undefined} onClose={() => setDoomed(undefined)} title={t("Delete {name} for good?", { name: doomed?.name ?? "" })} closeButtonProps={close}>
        <Text mb="md">{t("Its data goes with it. This can't be undone.")}</Text>
        <Group>
          <Button color="red" onClick={() => doomed !== undefined && void remove(doomed)}>
            {t("Delete")}
          </Button>
          <Button variant="default" onClick={() => setDoomed(undefined)}>
            {t("Cancel")}
          </Button>
        </Group>
      </Modal>
    </>
  );
}
