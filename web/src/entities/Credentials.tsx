// The credentials of a device: an access token, a certificate, or name and password for MQTT.

import { Button, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { EntityId } from "@/api/types";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import type { FormField, FormValues } from "@/ui/form/values";

export interface Credentials {
  credentialsType: string;
  credentialsId: string | null;
  credentialsValue: string | null;
  [field: string]: unknown;
}

const is = (type: string) => (values: FormValues): boolean => values["credentialsType"] === type;

export const CREDENTIALS_FORM: FormField[] = [
  {
    name: "credentialsType", label: "Kind of credentials", type: "select", required: true, initial: "ACCESS_TOKEN",
    options: [{ value: "ACCESS_TOKEN", label: "Access token" }, { value: "MQTT_BASIC", label: "Name and password (MQTT)" }, { value: "X509_CERTIFICATE", label: "Certificate (X.509)" }],
  },
  { name: "token", label: "Access token", help: "Made by the server when empty", secret: true, when: is("ACCESS_TOKEN") },
  { name: "clientId", label: "Client ID", secret: true, when: is("MQTT_BASIC") },
  { name: "userName", label: "User name", secret: true, when: is("MQTT_BASIC") },
  { name: "password", label: "Password", type: "password", when: is("MQTT_BASIC") },
  { name: "certificate", label: "Certificate (PEM)", type: "code", secret: true, when: is("X509_CERTIFICATE") },
];

export function credentialsValues({ credentialsType, credentialsId, credentialsValue }: Credentials): FormValues {
  switch (credentialsType) {
    case "MQTT_BASIC":
      return { credentialsType, ...(JSON.parse(credentialsValue ?? "{}") as FormValues) };
    case "X509_CERTIFICATE":
      return { credentialsType, certificate: credentialsValue };
    default:
      return { credentialsType, token: credentialsId };
  }
}

const TOKEN_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Makes a token of the form that the server makes. */
function newToken(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(20)), (n) => TOKEN_LETTERS[n % TOKEN_LETTERS.length]).join("");
}

export function credentialsOf(values: FormValues): Pick<Credentials, "credentialsType" | "credentialsId" | "credentialsValue"> {
  const { credentialsType, token, clientId, userName, password, certificate } = values;
  switch (credentialsType) {
    case "MQTT_BASIC": {
      const value = Object.fromEntries(Object.entries({ clientId, userName, password }).filter(([, text]) => typeof text === "string" && text !== ""));
      return { credentialsType, credentialsId: null, credentialsValue: JSON.stringify(value) };
    }
    case "X509_CERTIFICATE":
      return { credentialsType, credentialsId: null, credentialsValue: String(certificate ?? "") };
    default:
      return { credentialsType: "ACCESS_TOKEN", credentialsId: typeof token === "string" && token !== "" ? token : newToken(), credentialsValue: null };
  }
}

export function CredentialsDialog({ id }: { id: EntityId }): ReactElement {
  const [stored, setStored] = useState<Credentials>();
  const [opened, { open, close }] = useDisclosure(false);
  const cache = useQueryClient();
  const show = async (): Promise<void> => {
    setStored(await api.get<Credentials>(`/api/device/${id.id}/credentials`));
    open();
  };
  return (
    <>
      <Button size="xs" variant="default" onClick={() => void show().catch(notify.error)}>
        {t("Credentials")}
      </Button>
      <Modal opened={opened} onClose={close} title={t("Credentials")} size="lg" closeButtonProps={{ "aria-label": t("Close") }}>
        {stored !== undefined && (
          <FieldsForm
            fields={CREDENTIALS_FORM}
            values={credentialsValues(stored)}
            action="Save"
            onCancel={close}
            onSave={async (values) => {
              await api.post("/api/device/credentials", { ...stored, ...credentialsOf(values) });
              notify.ok(t("Saved"));
              close();
              await cache.invalidateQueries({ queryKey: ["credentials", id.id] });
            }}
          />
        )}
      </Modal>
    </>
  );
}
