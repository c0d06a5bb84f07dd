// What can be done with one entity besides changing its details.

import { Button, Code, CopyButton, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { saveTokens, type TokenPair } from "@/api/session";
import type { Entity } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { download } from "@/ui/csv";
import { notify } from "@/ui/feedback";
import { UploadButton } from "@/ui/UploadButton";
import { AssignDialog } from "./AssignDialog";
import { CredentialsDialog } from "./Credentials";
import { nameOf, type EntityKind } from "./kinds";

const ShownOn = lazy(() => import("./ShownOn"));

/** Saves an entity as a file that can be brought in elsewhere: without what names it here. */
async function exportEntity(kind: EntityKind, entity: Entity): Promise<void> {
  const stored = await api.get<Entity>(`${kind.one}/${entity.id.id}`, kind.type === "DASHBOARD" ? { includeResources: true } : {});
  const { id: _id, tenantId: _tenant, createdTime: _created, version: _version, externalId: _external, ...content } = stored;
  download(`${nameOf(entity)}.json`, JSON.stringify({ ...content, ...(kind.hasDefault === true ? { default: false } : {}) }, null, 2));
}

/** Whoever has no password yet gets a link; only whoever has one can be shut out, let in again, or stood in for. */
function UserActions({ entity }: { entity: Entity }): ReactElement {
  const [link, setLink] = useState<string>();
  const cache = useQueryClient();
  const { user } = useSession();
  const { userCredentialsEnabled: enabled, userActivated: activated } = (entity["additionalInfo"] ?? {}) as { userCredentialsEnabled?: boolean; userActivated?: boolean };
  const tell = (work: Promise<unknown>, text: string): void => {
    void work.then(async () => {
      notify.ok(text);
      await cache.invalidateQueries({ queryKey: ["entity", entity.id.id] });
    }, notify.error);
  };
  const enter = async (): Promise<void> => {
    saveTokens(await api.get<TokenPair>(`/api/user/${entity.id.id}/token`));
    location.assign("/");
  };
  return (
    <>
      {activated === false ? (
        <>
          <Button size="xs" variant="default" onClick={() => void api.get<string>(`/api/user/${entity.id.id}/activationLink`).then(setLink, notify.error)}>
            {t("Activation link")}
          </Button>
          <Button size="xs" variant="default" onClick={() => tell(api.post("/api/user/sendActivationMail", undefined, { email: entity.email ?? "" }), t("The mail is sent"))}>
            {t("Mail the activation link")}
          </Button>
        </>
      ) : (
        <Button
          size="xs"
          variant="default"
          onClick={() => tell(api.post(`/api/user/${entity.id.id}/userCredentialsEnabled`, undefined, { userCredentialsEnabled: enabled === false }), t("Saved"))}
        >
          {t(enabled === false ? "Enable" : "Disable")}
        </Button>
      )}
      {activated !== false && enabled !== false && entity.id.id !== user.id.id && (
        <Button size="xs" variant="default" onClick={() => void enter().catch(notify.error)}>
          {t("Log in as this user")}
        </Button>
      )}
      <Modal opened={link !== undefined} onClose={() => setLink(undefined)} title={t("Activation link")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="sm">{t("Whoever opens it chooses the password of this user.")}</Text>
        <Code block data-activation-link>
          {link}
        </Code>
        <CopyButton value={link ?? ""}>
          {({ copied, copy }) => (
            <Button mt="sm" variant="default" onClick={copy}>
              {t(copied ? "Copied" : "Copy")}
            </Button>
          )}
        </CopyButton>
      </Modal>
    </>
  );
}

/** Leads to the dashboards that name an entity. */
function ShownOnButton({ entity }: { entity: Entity }): ReactElement {
  const [asked, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button size="xs" variant="default" onClick={open}>
        {t("On dashboards")}
      </Button>
      {asked && (
        <Suspense>
          <ShownOn entity={entity} onClose={close} />
        </Suspense>
      )}
    </>
  );
}

function PackageActions({ entity }: { entity: Entity }): ReactElement | null {
  const cache = useQueryClient();
  return entity["hasData"] === true ? null : (
    <UploadButton<Entity>
      size="xs"
      label={t("Upload the file")}
      to={() => ({ path: `/api/otaPackage/${entity.id.id}?checksumAlgorithm=SHA256` })}
      onDone={async () => {
        notify.ok(t("The file is stored"));
        await Promise.all([cache.invalidateQueries({ queryKey: ["entity", entity.id.id] }), cache.invalidateQueries({ queryKey: ["list"] })]);
      }}
    />
  );
}

export function EntityActions({ kind, entity, mayWrite }: { kind: EntityKind; entity: Entity; mayWrite: boolean }): ReactElement {
  const cache = useQueryClient();
  const makeDefault = async (): Promise<void> => {
    await api.post(`${kind.one}/${entity.id.id}/default`);
    notify.ok(t("{name} is the default now", { name: nameOf(entity) }));
    await Promise.all(["list", "entity"].map((key) => cache.invalidateQueries({ queryKey: [key] })));
  };
  return (
    <Group gap="xs">
      {kind.tabs.includes("telemetry") && <ShownOnButton entity={entity} />}
      {kind.type === "DEVICE" && mayWrite && <CredentialsDialog id={entity.id} />}
      {kind.type === "USER" && mayWrite && <UserActions entity={entity} />}
      {kind.type === "OTA_PACKAGE" && mayWrite && <PackageActions entity={entity} />}
      {kind.assign !== undefined && mayWrite && <AssignDialog kind={kind} rows={[entity]} />}
      {kind.hasDefault === true && mayWrite && entity["default"] !== true && (
        <Button size="xs" variant="default" onClick={() => void makeDefault().catch(notify.error)}>
          {t("Make it the default")}
        </Button>
      )}
      {kind.importable === true && (
        <Button size="xs" variant="default" onClick={() => void exportEntity(kind, entity).catch(notify.error)}>
          {t("Export")}
        </Button>
      )}
    </Group>
  );
}
