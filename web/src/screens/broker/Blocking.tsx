// Blocks clients, from their list or from where one is seen.

import { Button, Modal, Text, type ButtonProps } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { ask } from "@/api/typed";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import type { FormValues } from "@/ui/form/values";
import { BLOCK_FIELDS, blockOf } from "./model";
import { changed } from "./parts";

/** Opens the form of a block, which begins with what is known of the client. */
export function BlockButton({ values = {}, ...look }: { values?: FormValues } & ButtonProps): ReactElement {
  const cache = useQueryClient();
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button size="xs" variant="default" {...look} onClick={() => setOpened(true)}>
        {t("Block clients")}
      </Button>
      <Modal opened={opened} onClose={() => setOpened(false)} size="lg" title={t("Block clients")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text size="sm" mb="md">
          {t("Whoever is blocked can't connect any more. Clients that are connected stay until they are disconnected.")}
        </Text>
        <FieldsForm
          fields={BLOCK_FIELDS}
          values={values}
          action="Block"
          onCancel={() => setOpened(false)}
          onSave={async (form) => {
            await ask("POST /api/blockedClient", { body: blockOf(form) });
            notify.ok(t("{name} is blocked", { name: String(form["value"]) }));
            setOpened(false);
            await changed(cache);
          }}
        />
      </Modal>
    </>
  );
}
