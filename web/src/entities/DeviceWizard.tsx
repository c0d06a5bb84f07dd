// A new device in steps: its details, its credentials; then its page shows how it connects, and what arrives.

import { SegmentedControl } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import type { DraftPlace } from "@/editing/formDraft";
import { t } from "@/i18n";
import { FieldsForm } from "@/ui/FieldsForm";
import type { FormValues } from "@/ui/form/values";
import { CREDENTIALS_FORM, credentialsOf } from "./Credentials";
import { DEVICE_FORM } from "./forms/things";

interface DeviceWizardProps {
  preset: FormValues;
  /** Where what is typed is kept. */
  keep: DraftPlace;
  onDone: (device: Entity) => void;
  onCancel: () => void;
}

const CREDENTIAL_NAMES = new Set(CREDENTIALS_FORM.map((field) => field.name));

export function DeviceWizard({ preset, keep, onDone, onCancel }: DeviceWizardProps): ReactElement {
  const [step, setStep] = useState("details");
  const inStep = (own: string) => (field: (typeof DEVICE_FORM)[number]) => ({ ...field, when: (values: FormValues) => step === own && (field.when?.(values) ?? true) });
  return (
    <>
      <SegmentedControl
        fullWidth
        mb="md"
        aria-label={t("Step")}
        value={step}
        onChange={setStep}
        data={[{ value: "details", label: t("1. Details") }, { value: "credentials", label: t("2. Credentials") }]}
      />
      <FieldsForm
        fields={[...DEVICE_FORM.map(inStep("details")), ...CREDENTIALS_FORM.map(inStep("credentials"))]}
        values={preset}
        action="Add"
        keep={keep}
        onCancel={onCancel}
        onSave={async (values) => {
          if (typeof values["name"] !== "string" || values["name"].trim() === "") {
            setStep("details");
            throw new Error("The device needs a name.");
          }
          const device = Object.fromEntries(Object.entries(values).filter(([name]) => !CREDENTIAL_NAMES.has(name)));
          const saved = await api.post<Entity>("/api/device-with-credentials", { device, credentials: credentialsOf(values) });
          onDone(saved);
        }}
      />
    </>
  );
}
