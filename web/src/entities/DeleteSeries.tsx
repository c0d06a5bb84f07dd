// Deletes stored time series of an entity: all of it, or the points of a time.

import { Button, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactElement } from "react";
import { api, type Query } from "@/api/client";
import type { EntityId } from "@/api/types";
import { plural, t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import type { FormField, FormValues } from "@/ui/form/values";

const within = (values: FormValues): boolean => values["what"] !== "ALL";

const FIELDS: readonly FormField[] = [
  {
    name: "what", label: "What is deleted", type: "select", required: true, initial: "ALL",
    options: [
      { value: "ALL", label: "All points" },
      { value: "BEFORE", label: "Points before a time" },
      { value: "AFTER", label: "Points from a time on" },
      { value: "BETWEEN", label: "Points of a period" },
    ],
  },
  { name: "from", label: "From", type: "time", required: true, when: ({ what }) => what === "AFTER" || what === "BETWEEN" },
  { name: "until", label: "Until", type: "time", required: true, when: ({ what }) => what === "BEFORE" || what === "BETWEEN" },
  { name: "latest", label: "The latest value goes too, if its point does", type: "boolean", initial: true, when: within },
  { name: "rewrite", label: "The newest point that is left becomes the latest value", type: "boolean", initial: true, when: (values) => within(values) && values["latest"] === true },
];

/** Returns the parameters of the request that deletes what a form declares. */
export function deletionOf(values: FormValues, now: number): Query {
  const what = String(values["what"] ?? "ALL");
  if (what === "ALL") {
    return { deleteAllDataForKeys: true };
  }
  const from = what === "BEFORE" ? 0 : Number(values["from"] ?? 0);
  const until = what === "AFTER" ? now : Number(values["until"] ?? 0);
  if (until <= from || (what !== "BEFORE" && from === 0)) {
    throw new Error("The period has to begin before it ends.");
  }
  const latest = values["latest"] === true;
  return { deleteAllDataForKeys: false, startTs: from, endTs: until, deleteLatest: latest, rewriteLatestIfDeleted: latest && values["rewrite"] === true };
}

export function DeleteSeries({ id, keys, onDone }: { id: EntityId; keys: string[]; onDone: (all: boolean) => void }): ReactElement {
  const [asked, { open, close }] = useDisclosure(false);
  const remove = async (values: FormValues): Promise<void> => {
    // Points may carry the time of a device whose clock is ahead, so "from then on" ends tomorrow.
    const query = deletionOf(values, Date.now() + 86_400_000);
    for (const key of keys) {
      await api.delete(`/api/plugins/telemetry/${id.entityType}/${id.id}/timeseries/delete`, { key, ...query });
    }
    close();
    notify.ok(plural(keys.length, "Points of {n} key are deleted", "Points of {n} keys are deleted"));
    onDone(query["deleteAllDataForKeys"] === true);
  };
  return (
    <>
      <Button size="xs" color="red" onClick={open}>
        {t("Delete")}
      </Button>
      <Modal opened={asked} onClose={close} title={t("Delete time series for good?")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="sm">{keys.slice(0, 8).join(", ") + (keys.length > 8 ? " …" : "")}</Text>
        <FieldsForm fields={FIELDS} values={{}} action="Delete for good" onCancel={close} onSave={remove} />
      </Modal>
    </>
  );
}
