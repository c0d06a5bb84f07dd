// The drawer in which a new entity of any kind is made.

import { Button, Drawer } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { useLocation } from "wouter";
import type { Entity } from "@/api/types";
import { t } from "@/i18n";
import { FieldsForm } from "@/ui/FieldsForm";
import type { FormValues } from "@/ui/form/values";
import { DeviceWizard } from "./DeviceWizard";
import { TestButtons } from "./fields/TestButtons";
import { formOf } from "./forms";
import type { EntityKind } from "./kinds";
import { saveEntity } from "./saving";

const NO_PRESET: FormValues = {};

export function AddDrawer({ kind, preset = NO_PRESET }: { kind: EntityKind; preset?: FormValues }): ReactElement {
  const [adding, { open, close }] = useDisclosure(false);
  const [, go] = useLocation();
  const cache = useQueryClient();
  const show = (saved: Entity, next = kind.begin ?? ""): void => {
    close();
    void cache.invalidateQueries({ queryKey: ["list"] });
    go(`${kind.path}/${saved.id.id}${next}`);
  };
  const fields = formOf(kind, true).filter((field) => preset[field.name] === undefined);
  const values = Object.fromEntries(Object.entries(preset).filter(([name]) => !name.includes(".")));
  return (
    <>
      <Button onClick={open}>{t("Add")}</Button>
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
          <DeviceWizard preset={preset} onCancel={close} onDone={(device) => show(device)} />
        ) : (
          <FieldsForm
            fields={fields}
            values={values}
            action="Add"
            onCancel={close}
            onSave={async (filled) => show(await saveEntity(kind, filled))}
            more={(filled, change) => <TestButtons kind={kind} values={filled} change={change} />}
          />
        )}
      </Drawer>
    </>
  );
}
