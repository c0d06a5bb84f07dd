// The drawer in which a new entity of any kind is made.

import { Button, Drawer } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, type ReactElement } from "react";
import { useLocation, useSearchParams } from "wouter";
import type { Entity } from "@/api/types";
import { hasDraft, type DraftPlace } from "@/editing/formDraft";
import { t } from "@/i18n";
import { FieldsForm } from "@/ui/FieldsForm";
import { AroundContext } from "@/ui/form/around";
import type { FormValues } from "@/ui/form/values";
import { DeviceWizard } from "./DeviceWizard";
import { AROUND_FORMS } from "./fields/KeyFields";
import { TestButtons } from "./fields/TestButtons";
import { formOf } from "./forms";
import type { EntityKind } from "./kinds";
import { saveEntity } from "./saving";

const NO_PRESET: FormValues = {};

/** What is typed for a new entity is kept for each place where one is added. */
export function newDraft(kind: EntityKind, preset: FormValues): DraftPlace {
  return { name: `new ${kind.type}${Object.keys(preset).length === 0 ? "" : ` ${JSON.stringify(preset)}`}` };
}

interface Props {
  kind: EntityKind;
  preset?: FormValues;
  /** Whether `?add=true` in the address opens it. */
  inAddress?: boolean;
}

export function AddDrawer({ kind, preset = NO_PRESET, inAddress = false }: Props): ReactElement {
  const [adding, { open, close }] = useDisclosure(false);
  const [params, setParams] = useSearchParams();
  const asked = inAddress && params.get("add") === "true";
  useEffect(() => {
    if (asked) {
      open();
      setParams((before) => new URLSearchParams([...before].filter(([name]) => name !== "add")), { replace: true });
    }
  }, [asked]);
  const [, go] = useLocation();
  const cache = useQueryClient();
  const show = (saved: Entity, next = kind.begin ?? ""): void => {
    close();
    void cache.invalidateQueries({ queryKey: ["list"] });
    go(`${kind.path}/${saved.id.id}${next}`);
  };
  const fields = formOf(kind, true).filter((field) => preset[field.name] === undefined);
  const values = Object.fromEntries(Object.entries(preset).filter(([name]) => !name.includes(".")));
  const keep = newDraft(kind, preset);
  return (
    <>
      <Button onClick={open}>{!adding && hasDraft(keep.name) ? t("Go on adding") : t("Add")}</Button>
      <Drawer
        opened={adding}
        onClose={close}
        position="right"
        // A click beside a long form must not put it away.
        closeOnClickOutside={false}
        size={fields.length > 8 ? "xl" : "md"}
        title={t(`Add: ${kind.singular}`)}
        closeButtonProps={{ "aria-label": t("Close") }}
      >
        {kind.type === "DEVICE" ? (
          <DeviceWizard preset={preset} keep={keep} onCancel={close} onDone={(device) => show(device)} />
        ) : (
          <AroundContext value={AROUND_FORMS}>
            <FieldsForm
              fields={fields}
              values={values}
              action="Add"
              keep={keep}
              onCancel={close}
              onSave={async (filled) => show(await saveEntity(kind, filled))}
              more={(filled, change) => <TestButtons kind={kind} values={filled} change={change} />}
            />
          </AroundContext>
        )}
      </Drawer>
    </>
  );
}
