// The library of scripts, or of all other files.

import { Badge, Button, Drawer, Group, Select, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { upload } from "@/api/upload";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { wordsOf } from "@/ui/form/values";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { DeleteUsed } from "@/ui/DeleteUsed";
import { saveBlob } from "@/ui/csv";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import { UploadButton } from "@/ui/UploadButton";
import { isOfSystem, mayChange, type Library, type StoredFile } from "./model";

const CodeEditor = lazy(() => import("@/ui/CodeEditor"));
/** Larger texts are changed elsewhere and uploaded. */
const EDITABLE_BYTES = 500_000;
/** Stores of keys and models can't be replaced: what uses them relies on them. */
const REPLACEABLE = ["JS_MODULE", "GENERAL"];

const COLUMNS: Column<StoredFile>[] = [
  { key: "title", label: "Title", sortable: true, text: (row) => row.title },
  { key: "resourceType", label: "Type", sortable: true, text: (row) => t(wordsOf(row.resourceSubType ?? row.resourceType)) },
  { key: "fileName", label: "File", text: (row) => row.fileName },
  { key: "system", label: "Of the installation", text: (row) => (isOfSystem(row) ? t("Yes") : ""), show: (row) => (isOfSystem(row) ? <Badge variant="outline">{t("Yes")}</Badge> : "") },
  { key: "createdTime", label: "Created", sortable: true, text: (row) => formatTime(row.createdTime) },
];

/** The text of a script, which is changed in place. */
function TextEditor({ file, editable }: { file: StoredFile; editable: boolean }): ReactElement {
  const [text, setText] = useState<string>();
  const stored = useQuery({
    queryKey: ["resource text", file.id.id],
    queryFn: async () => {
      const blob = await api.blob(`/api/resource/${file.id.id}/download`);
      return blob.size > EDITABLE_BYTES ? null : await blob.text();
    },
  });
  if (stored.isPending) {
    return <Waiting />;
  }
  if (stored.isError) {
    return <Problem error={stored.error} />;
  }
  if (stored.data === null) {
    return <Text>{t("The file is too large to be changed here. Download it, and upload it changed.")}</Text>;
  }
  const save = async (): Promise<void> => {
    await upload({ method: "PUT", path: `/api/resource/${file.id.id}/data`, file: new File([text ?? ""], file.fileName, { type: "text/javascript" }), told: () => undefined });
    notify.ok(t("Saved"));
  };
  return (
    <Suspense fallback={<Waiting />}>
      <CodeEditor label={t("Script")} language="JS" value={text ?? stored.data ?? ""} onChange={setText} height="360px" />
      {editable && (
        <Group>
          <Button size="xs" disabled={text === undefined} onClick={() => void save().catch(notify.error)}>
            {t("Save the script")}
          </Button>
        </Group>
      )}
    </Suspense>
  );
}

function ResourceDrawer({ file, onClose, onChange }: { file: StoredFile; onClose: () => void; onChange: (file: StoredFile | undefined) => void }): ReactElement {
  const { authority } = useSession();
  const cache = useQueryClient();
  const editable = mayChange(file, authority);
  const save = async (): Promise<void> => saveBlob(await api.blob(`/api/resource/${file.id.id}/download`), file.fileName);
  return (
    <Drawer opened onClose={onClose} position="right" size="xl" title={file.title} closeButtonProps={{ "aria-label": t("Close") }}>
      <Stack>
        <Text size="sm">{`${t(wordsOf(file.resourceSubType ?? file.resourceType))} · ${file.fileName} · ${formatTime(file.createdTime)}`}</Text>
        {editable && file.resourceType !== "LWM2M_MODEL" && (
          <FieldsForm
            key={file.title}
            fields={[{ name: "title", label: "Title", required: true }]}
            values={{ title: file.title }}
            action="Save"
            keep={{ name: `resource ${file.id.id}` }}
            onSave={async ({ title }) => {
              onChange(await api.put<StoredFile>(`/api/resource/${file.id.id}/info`, { ...file, title }));
              notify.ok(t("Saved"));
            }}
          />
        )}
        {file.resourceType === "JS_MODULE" && <TextEditor file={file} editable={editable} />}
        <Group gap="xs">
          <Button size="xs" variant="default" onClick={() => void save().catch(notify.error)}>
            {t("Download")}
          </Button>
          {editable && REPLACEABLE.includes(file.resourceType) && (
            <UploadButton<StoredFile>
              size="xs"
              variant="default"
              label={t("Replace the file")}
              to={() => ({ method: "PUT", path: `/api/resource/${file.id.id}/data` })}
              onDone={async (changed) => {
                onChange(changed);
                await cache.invalidateQueries({ queryKey: ["resource text", file.id.id] });
                notify.ok(t("The file is stored"));
              }}
            />
          )}
          {editable && <DeleteUsed size="xs" name={file.title} path={`/api/resource/${file.id.id}`} onDone={() => onChange(undefined)} />}
        </Group>
      </Stack>
    </Drawer>
  );
}

function AddDrawer({ library, onClose, onDone }: { library: Library; onClose: () => void; onDone: (file: StoredFile) => void }): ReactElement {
  const [at, setAt] = useState("0");
  const [title, setTitle] = useState("");
  const chosen = library.types[Number(at)] ?? library.types[0];
  return (
    <Drawer opened onClose={onClose} position="right" title={t("Add a file")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Stack>
        <Select label={t("Type")} allowDeselect={false} value={at} data={library.types.map(({ label }, n) => ({ value: String(n), label: t(label) }))} onChange={(next) => setAt(next ?? "0")} />
        <TextInput label={t("Title")} description={t("The name of the file when empty")} value={title} onChange={(event) => setTitle(event.currentTarget.value)} />
        <UploadButton<StoredFile>
          label={t("Choose the file and upload it")}
          {...(chosen?.accept === undefined ? {} : { accept: chosen.accept })}
          to={(file) => ({
            path: "/api/resource/upload",
            fields: { title: title.trim() || file.name, resourceType: chosen?.type ?? "GENERAL", ...(chosen?.subType === undefined ? {} : { resourceSubType: chosen.subType }) },
          })}
          onDone={onDone}
        />
      </Stack>
    </Drawer>
  );
}

export default function Resources({ library }: { library: Library }): ReactElement {
  const cache = useQueryClient();
  const [opened, setOpened] = useState<StoredFile>();
  const [adding, setAdding] = useState(false);
  const refresh = (): void => void cache.invalidateQueries({ queryKey: ["list"] });
  return (
    <>
      <Group justify="space-between" mb="md">
        <Title order={1} size="h2">
          {t(library.label)}
        </Title>
        <Button onClick={() => setAdding(true)}>{t("Add")}</Button>
      </Group>
      <DataTable<StoredFile>
        label={t(library.label)}
        path="/api/resource"
        query={library.query}
        columns={COLUMNS}
        rowKey={(row) => row.id.id}
        sort={{ key: "createdTime", order: "DESC" }}
        onOpen={setOpened}
        whenEmpty={t(library.hint)}
      />
      {adding && (
        <AddDrawer
          library={library}
          onClose={() => setAdding(false)}
          onDone={(file) => {
            setAdding(false);
            setOpened(file);
            refresh();
          }}
        />
      )}
      {opened !== undefined && (
        <ResourceDrawer
          file={opened}
          onClose={() => setOpened(undefined)}
          onChange={(file) => {
            setOpened(file);
            refresh();
          }}
        />
      )}
    </>
  );
}
