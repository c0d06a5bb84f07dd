// The editor of a SCADA symbol: its drawing, the code of its tags, its behaviours and properties, beside a preview with test values.

import { Badge, Button, Grid, Group, Modal, Stack, Tabs, Text, Title } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState, type ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import { upload } from "@/api/upload";
import { useSession } from "@/app/session";
import { text, type Json } from "@/dashboard/json";
import { Leaving } from "@/editing/Leaving";
import { t } from "@/i18n";
import { isOfSystem, mayChange, symbolPath, type StoredFile } from "@/screens/resources/model";
import { notify, Problem, TextLink, Waiting } from "@/ui/feedback";
import { Fields } from "@/ui/form/Fields";
import { useThingTitle } from "@/ui/pageTitle";
import { BEHAVIORS, GENERAL } from "./forms";
import { PROPERTIES } from "./properties";
import { problemOf, readFile, writeFile, type SymbolFile } from "./symbolFile";
import { Tagging } from "./Tagging";
import { TagsTab, wordsOf } from "./TagsTab";

const CodeEditor = lazy(() => import("@/ui/CodeEditor"));
const SymbolPreview = lazy(() => import("./SymbolPreview"));

interface Stored {
  info: StoredFile;
  content: string;
}

async function load(path: string): Promise<Stored> {
  const info = await api.get<StoredFile>(`${path}/info`);
  const content = await (await api.blob(path)).text();
  // What is no drawing can't be edited as one.
  readFile(content);
  return { info, content };
}

/** Returns the file as it is to be stored; throws an error that says what is wrong with it. */
function contentOf(file: SymbolFile): string {
  const problem = problemOf(file.metadata);
  if (problem !== undefined) {
    throw new Error(problem);
  }
  const content = writeFile(file);
  const wrong = new DOMParser().parseFromString(content, "image/svg+xml").querySelector("parsererror");
  if (wrong !== null) {
    throw new Error(t("The drawing is no correct SVG: {problem}", { problem: (wrong.textContent ?? "").slice(0, 300) }));
  }
  return content;
}

function Editor({ path, stored, onStored }: { path: string; stored: Stored; onStored: (now: Stored) => void }): ReactElement {
  const { authority } = useSession();
  const [, go] = useLocation();
  const { info } = stored;
  const editable = mayChange(info, authority);
  const begun = useMemo(() => readFile(stored.content), [stored.content]);
  const [edited, setEdited] = useState<SymbolFile>();
  const file = edited ?? begun;
  const [shown, setShown] = useState({ content: stored.content, round: 1 });
  const [tab, setTab] = useState("general");
  // Fields and editors keep what is typed; another content is for new ones.
  const [taken, setTaken] = useState(0);
  const [conflict, setConflict] = useState(false);
  const [busy, setBusy] = useState(false);
  const changed = edited !== undefined;
  const put = (update: (before: SymbolFile) => SymbolFile): void => setEdited((before) => update(before ?? begun));
  const change = (update: (before: Json) => Json): void => put((before) => ({ ...before, metadata: update(before.metadata) }));
  const title = text(file.metadata["title"]) ?? info.title;
  const asFile = (content: string): File => new File([content], info.fileName, { type: "image/svg+xml" });
  const run = (): void => {
    try {
      const content = contentOf(file);
      setShown(({ round }) => ({ content, round: round + 1 }));
    } catch (error) {
      notify.error(error);
    }
  };
  const guarded = (attempt: () => Promise<void>): void => {
    setBusy(true);
    attempt().catch(notify.error).finally(() => setBusy(false));
  };
  const save = (over: boolean): void =>
    guarded(async () => {
      const content = contentOf(file);
      if (!over && (await api.get<StoredFile>(`${path}/info`)).etag !== info.etag) {
        setConflict(true);
        return;
      }
      setConflict(false);
      const saved = await upload<StoredFile>({ method: "PUT", path, file: asFile(content), told: () => undefined });
      const named = saved.title === title ? saved : await api.put<StoredFile>(`${path}/info`, { ...saved, title });
      notify.ok(t("Saved"));
      setShown(({ round }) => ({ content, round: round + 1 }));
      // What was typed meanwhile stays.
      setEdited((now) => (now === edited ? undefined : now));
      onStored({ info: { ...info, ...named }, content });
    });
  const saveAsNew = (): void =>
    guarded(async () => {
      const name = `${title} 2`;
      const content = contentOf({ ...file, metadata: { ...file.metadata, title: name } });
      const made = await upload<StoredFile>({ path: "/api/image", file: asFile(content), fields: { title: name, imageSubType: "SCADA_SYMBOL" }, told: () => undefined });
      setEdited(undefined);
      notify.ok(t("Saved"));
      go(symbolPath(made));
    });
  const takeTheirs = (): void =>
    guarded(async () => {
      const theirs = await load(path);
      setEdited(undefined);
      setConflict(false);
      setTaken((before) => before + 1);
      setShown(({ round }) => ({ content: theirs.content, round: round + 1 }));
      onStored(theirs);
    });
  const saveMine = (): void => (editable && changed && !busy ? save(false) : undefined);
  useHotkeys([["mod+S", saveMine], ["mod+Enter", run]], [], true);
  const words = wordsOf(file.metadata);
  return (
    <>
      <Leaving dirty={editable && changed} kept={false} />
      <TextLink to="/resources/scada-symbols">{t("SCADA symbols")}</TextLink>
      <Group my="xs" gap="xs">
        <Title order={1} size="h2">
          {title}
        </Title>
        {isOfSystem(info) && <Badge variant="outline">{t("Of the installation")}</Badge>}
        <Group ms="auto" gap="xs">
          <Button size="xs" variant="default" onClick={run}>
            {t("Run")} <Text span size="xs" ms={6} visibleFrom="md">Ctrl ⏎</Text>
          </Button>
          <Button size="xs" variant="default" disabled={busy} onClick={saveAsNew}>
            {t("Save as a new one")}
          </Button>
          {editable && (
            <Button size="xs" loading={busy} disabled={!changed} onClick={saveMine}>
              {t("Save")} <Text span size="xs" ms={6} visibleFrom="md">Ctrl S</Text>
            </Button>
          )}
        </Group>
      </Group>
      <Grid>
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <Tabs key={taken} value={tab} onChange={(next) => setTab(next ?? "general")} keepMounted={false}>
            <Tabs.List mb="xs">
              <Tabs.Tab value="general">{t("General")}</Tabs.Tab>
              <Tabs.Tab value="tags">{t("Tags")}</Tabs.Tab>
              <Tabs.Tab value="elements">{t("Elements")}</Tabs.Tab>
              <Tabs.Tab value="behavior">{t("Behavior")}</Tabs.Tab>
              <Tabs.Tab value="properties">{t("Properties")}</Tabs.Tab>
              <Tabs.Tab value="drawing">{t("Drawing")}</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="general">
              <Stack gap="xs">
                <Fields fields={GENERAL} values={file.metadata} change={change} />
                <Text size="sm">{t("How the whole is drawn, with each new value: function (ctx, svg)")}</Text>
                <Suspense fallback={<Waiting />}>
                  <CodeEditor
                    label={t("How the whole is drawn")}
                    language="JS"
                    value={text(file.metadata["stateRenderFunction"]) ?? ""}
                    words={words}
                    onChange={(code) => change(({ stateRenderFunction: _before, ...rest }) => (code === "" ? rest : { ...rest, stateRenderFunction: code }))}
                    height="30vh"
                  />
                </Suspense>
              </Stack>
            </Tabs.Panel>
            <Tabs.Panel value="tags">
              <TagsTab drawing={file.drawing} metadata={file.metadata} change={change} />
            </Tabs.Panel>
            <Tabs.Panel value="elements">
              <Tagging drawing={file.drawing} onChange={(drawing) => put((before) => ({ ...before, drawing }))} />
            </Tabs.Panel>
            <Tabs.Panel value="behavior">
              <Fields fields={BEHAVIORS} values={file.metadata} change={change} />
            </Tabs.Panel>
            <Tabs.Panel value="properties">
              <Fields fields={PROPERTIES} values={file.metadata} change={change} />
            </Tabs.Panel>
            <Tabs.Panel value="drawing">
              <Suspense fallback={<Waiting />}>
                <CodeEditor label={t("Drawing")} language="HTML" value={file.drawing} onChange={(drawing) => put((before) => ({ ...before, drawing }))} height="calc(100vh - 260px)" />
              </Suspense>
            </Tabs.Panel>
          </Tabs>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <Title order={2} size="h5" mb="xs">
            {t("Preview")}
          </Title>
          <Suspense fallback={<Waiting />}>
            <SymbolPreview content={shown.content} round={shown.round} />
          </Suspense>
        </Grid.Col>
      </Grid>
      <Modal opened={conflict} onClose={() => setConflict(false)} title={t("Somebody else has changed this meanwhile")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Group>
          <Button onClick={() => save(true)}>{t("Keep mine")}</Button>
          <Button variant="default" onClick={takeTheirs}>
            {t("Take theirs")}
          </Button>
        </Group>
      </Modal>
    </>
  );
}

export default function SymbolEditor({ scope, id }: { scope: "tenant" | "system"; id: string }): ReactElement {
  const cache = useQueryClient();
  const path = `/api/images/${scope}/${encodeURIComponent(id)}`;
  const found = useQuery({ queryKey: ["symbol", path], queryFn: () => load(path), staleTime: Infinity, gcTime: 0, retry: false });
  useThingTitle(found.data?.info.title);
  if (found.isPending) {
    return <Waiting />;
  }
  if (found.isError) {
    return <Problem error={found.error} />;
  }
  return (
    <Editor
      key={path}
      path={path}
      stored={found.data}
      onStored={(now) => {
        cache.setQueryData(["symbol", path], now);
        // Dashboards and galleries that were looked at show it as it was.
        void cache.invalidateQueries({ queryKey: ["drawing"] });
        void cache.invalidateQueries({ queryKey: ["list"] });
      }}
    />
  );
}
