// One image: seen large, renamed, replaced, made public, saved, deleted.

import { Badge, Button, Code, CopyButton, Drawer, Group, Image, Stack, Switch, Text } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { Link } from "wouter";
import { api } from "@/api/client";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { DeleteUsed } from "@/ui/DeleteUsed";
import { download } from "@/ui/csv";
import { notify } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import { useImage } from "@/ui/images";
import { UploadButton } from "@/ui/UploadButton";
import { sizeText } from "@/ui/size";
import { isOfSystem, mayChange, symbolPath, versionOf, type StoredFile } from "./model";

function Copied({ text, label }: { text: string; label: string }): ReactElement {
  return (
    <Group gap="xs" wrap="nowrap">
      <Code style={{ overflowWrap: "anywhere" }}>{text}</Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button size="compact-xs" variant="default" aria-label={t("Copy: {name}", { name: label })} onClick={copy} style={{ flexShrink: 0 }}>
            {t(copied ? "Copied" : "Copy")}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}

function Line({ label, children }: { label: string; children: ReactNode }): ReactElement {
  return (
    <div>
      <Text size="sm" c="var(--soft-text)">
        {t(label)}
      </Text>
      {children}
    </div>
  );
}

interface Props {
  file: StoredFile;
  accept: string;
  onClose: () => void;
  /** Called with the file as it is stored now; with none when it is gone. */
  onChange: (file: StoredFile | undefined) => void;
}

export function ImageDrawer({ file, accept, onClose, onChange }: Props): ReactElement {
  const { authority } = useSession();
  const { url, failed } = useImage(versionOf(file));
  const editable = mayChange(file, authority);
  const { width, height, size, mediaType } = file.descriptor ?? {};
  const take = (changed: StoredFile): void => onChange({ ...file, ...changed });
  const setPublic = async (wanted: boolean): Promise<void> => take(await api.put<StoredFile>(`${file.link}/public/${wanted}`));
  const save = async (): Promise<void> => download(`${file.title}.json`, JSON.stringify(await api.get<unknown>(`${file.link}/export`), null, 2));
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={file.title} closeButtonProps={{ "aria-label": t("Close") }}>
      <Stack>
        {url !== undefined && <Image src={url} alt={file.title} mah={320} fit="contain" bg="var(--mantine-color-default-hover)" radius="md" />}
        {failed && <Text>{t("The picture can't be shown.")}</Text>}
        <Group gap="xs">
          {isOfSystem(file) && <Badge variant="outline">{t("Of the installation")}</Badge>}
          <Text size="sm">
            {[mediaType, width === undefined || width === 0 ? "" : `${width} × ${height ?? 0}`, sizeText(size), formatTime(file.createdTime)].filter((part) => part !== undefined && part !== "").join(" · ")}
          </Text>
        </Group>
        {editable && (
          <FieldsForm
            key={file.title}
            fields={[{ name: "title", label: "Title", required: true }]}
            values={{ title: file.title }}
            action="Save"
            keep={{ name: `image ${file.link}` }}
            onSave={async ({ title }) => {
              take(await api.put<StoredFile>(`${file.link}/info`, { ...file, title }));
              notify.ok(t("Saved"));
            }}
          />
        )}
        <Line label="Name in dashboards and widgets">
          <Copied label={t("Name in dashboards and widgets")} text={`tb-image;${file.link}`} />
        </Line>
        {editable && <Switch label={t("Anybody with the link can see it")} checked={file.public === true} onChange={(event) => void setPublic(event.currentTarget.checked).catch(notify.error)} />}
        {file.public === true && typeof file.publicResourceKey === "string" && (
          <>
            <Line label="Public link">
              <Copied label={t("Public link")} text={new URL(file.publicLink ?? `/api/images/public/${file.publicResourceKey}`, location.origin).href} />
            </Line>
            <Line label="To embed it in a page">
              <Copied label={t("To embed it in a page")} text={`<img src="${new URL(file.publicLink ?? `/api/images/public/${file.publicResourceKey}`, location.origin).href}" alt="">`} />
            </Line>
          </>
        )}
        <Group gap="xs">
          {file.resourceSubType === "SCADA_SYMBOL" && (
            <Button component={Link} href={symbolPath(file)} size="xs">
              {t(editable ? "Edit the symbol" : "Look into the symbol")}
            </Button>
          )}
          {editable && (
            <UploadButton<StoredFile>
              size="xs"
              variant="default"
              label={t("Replace the file")}
              accept={accept}
              to={() => ({ method: "PUT", path: file.link })}
              onDone={(changed) => {
                take(changed);
                notify.ok(t("The file is stored"));
              }}
            />
          )}
          <Button size="xs" variant="default" onClick={() => void save().catch(notify.error)}>
            {t("Export")}
          </Button>
          {editable && <DeleteUsed size="xs" name={file.title} path={file.link} onDone={() => onChange(undefined)} />}
        </Group>
      </Stack>
    </Drawer>
  );
}
