// The editor of a widget type: its HTML, CSS, script and settings beside a live preview.

import { Badge, Button, Grid, Group, Modal, Tabs, Text, Title } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { useLocation } from "wouter";
import { ApiError, api } from "@/api/client";
import type { Entity } from "@/api/types";
import { useSession } from "@/app/session";
import { object, type Json } from "@/dashboard/model";
import { Leaving } from "@/editing/Leaving";
import { EntityActions } from "@/entities/EntityActions";
import { KINDS, mayChange, nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { DeleteUsed } from "@/ui/DeleteUsed";
import { notify, Problem, TextLink, Waiting } from "@/ui/feedback";
import { Fields } from "@/ui/form/Fields";
import type { FormField, FormValues } from "@/ui/form/values";
import { useThingTitle } from "@/ui/pageTitle";
import { copyOf, PARTS, partText, withTexts, type Texts } from "./editing";
import { Preview } from "./Preview";

const CodeEditor = lazy(() => import("@/ui/CodeEditor"));

const DETAILS: readonly FormField[] = [
  { name: "name", label: "Name", required: true },
  { name: "descriptor.sizeX", label: "Columns of a new one", type: "number" },
  { name: "descriptor.sizeY", label: "Rows of a new one", type: "number" },
  { name: "tags", label: "Tags", type: "texts" },
  { name: "deprecated", label: "Deprecated: not offered any more", type: "boolean" },
  { name: "description", label: "Description", type: "long" },
  { name: "descriptor.resources", label: "Libraries", type: "rows", help: "The sandbox has no network: libraries of other addresses are not loaded.", fields: [{ name: "url", label: "Address", required: true }] },
];

function Editor({ stored, onStored }: { stored: Entity; onStored: (saved: Entity) => void }): ReactElement {
  const { authority } = useSession();
  const [, go] = useLocation();
  const kind = KINDS.find(({ type }) => type === "WIDGET_TYPE");
  const editable = kind !== undefined && mayChange(kind, stored, authority);
  const [edited, setEdited] = useState<FormValues>();
  const values: FormValues = edited ?? stored;
  const [texts, setTexts] = useState<Texts>({});
  const [tab, setTab] = useState("templateHtml");
  const [shown, setShown] = useState({ descriptor: object(stored["descriptor"]), round: 1 });
  const [conflict, setConflict] = useState(false);
  const [busy, setBusy] = useState(false);
  const changed = edited !== undefined || Object.keys(texts).length > 0;
  const document = (): Json => ({ ...values, descriptor: withTexts(object(values["descriptor"]), texts) });
  const run = (): void => {
    try {
      setShown({ descriptor: object(document()["descriptor"]), round: shown.round + 1 });
    } catch (error) {
      notify.error(error);
    }
  };
  const store = async (body: Json): Promise<void> => {
    setBusy(true);
    try {
      const saved = await api.post<Entity>("/api/widgetType", body);
      notify.ok(t("Saved"));
      if (saved.id.id === stored.id.id) {
        // What was typed meanwhile stays.
        setTexts((now) => (now === texts ? {} : now));
        setEdited((now) => (now === edited ? undefined : now));
        onStored(saved);
      } else {
        go(`/resources/widgets-library/widget-types/${saved.id.id}`);
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        setConflict(true);
      } else {
        notify.error(error);
      }
    } finally {
      setBusy(false);
    }
  };
  const save = (make: () => Json): void => {
    try {
      void store(make());
      run();
    } catch (error) {
      notify.error(error);
    }
  };
  const saveMine = (): void => (editable && changed ? save(document) : undefined);
  const keepMine = async (): Promise<void> => {
    const newest = await api.get<Entity>(`/api/widgetType/${stored.id.id}`);
    setConflict(false);
    await store({ ...document(), version: newest["version"] });
  };
  const takeTheirs = async (): Promise<void> => {
    const theirs = await api.get<Entity>(`/api/widgetType/${stored.id.id}`);
    setTexts({});
    setEdited(undefined);
    setConflict(false);
    onStored(theirs);
  };
  useHotkeys([["mod+S", saveMine], ["mod+Enter", run]], [], true);
  return (
    <>
      <Leaving dirty={editable && changed} kept={false} />
      <TextLink to="/resources/widgets-library/widget-types">{t("Widgets")}</TextLink>
      <Group my="xs" gap="xs">
        <Title order={1} size="h2">
          {nameOf(stored)}
        </Title>
        <Badge variant="light">{String(shown.descriptor["type"] ?? "")}</Badge>
        {!editable && <Badge variant="outline">{t("Of the installation")}</Badge>}
        <Group ms="auto" gap="xs">
          <Button size="xs" variant="default" onClick={run}>
            {t("Run")} <Text span size="xs" ms={6} visibleFrom="md">Ctrl ⏎</Text>
          </Button>
          <Button size="xs" variant="default" onClick={() => save(() => copyOf(document(), `${nameOf(stored)} 2`))}>
            {t("Save as a new one")}
          </Button>
          {editable && (
            <Button size="xs" loading={busy} disabled={!changed} onClick={saveMine}>
              {t("Save")} <Text span size="xs" ms={6} visibleFrom="md">Ctrl S</Text>
            </Button>
          )}
          {kind !== undefined && <EntityActions kind={kind} entity={stored} mayWrite={editable} />}
          {editable && <DeleteUsed size="xs" name={nameOf(stored)} path={`/api/widgetType/${stored.id.id}`} onDone={() => go("/resources/widgets-library/widget-types")} />}
        </Group>
      </Group>
      <Grid>
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <Tabs value={tab} onChange={(next) => setTab(next ?? "templateHtml")} keepMounted={false}>
            <Tabs.List mb="xs">
              {PARTS.map(({ key, label }) => (
                <Tabs.Tab key={key} value={key}>
                  {t(label)}
                </Tabs.Tab>
              ))}
              <Tabs.Tab value="details">{t("Details")}</Tabs.Tab>
            </Tabs.List>
            {PARTS.map((part) => (
              <Tabs.Panel key={part.key} value={part.key}>
                <Suspense fallback={<Waiting />}>
                  <CodeEditor
                    label={t(part.label)}
                    language={part.language}
                    value={texts[part.key] ?? partText(object(values["descriptor"]), part)}
                    onChange={(text) => setTexts((before) => ({ ...before, [part.key]: text }))}
                    height="calc(100vh - 260px)"
                  />
                </Suspense>
              </Tabs.Panel>
            ))}
            <Tabs.Panel value="details">
              <Fields fields={DETAILS} values={values} change={(update) => setEdited((before) => update(before ?? stored))} />
            </Tabs.Panel>
          </Tabs>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Title order={2} size="h5" mb="xs">
            {t("Preview")}
          </Title>
          <div data-preview style={{ height: 360, resize: "both", overflow: "hidden", border: "1px solid var(--mantine-color-default-border)", borderRadius: 6, display: "flex", flexDirection: "column" }}>
            <Preview descriptor={shown.descriptor} round={shown.round} />
          </div>
          <Text size="sm" mt="xs">
            {t("The values are invented. The code runs without the session and without network.")}
          </Text>
        </Grid.Col>
      </Grid>
      <Modal opened={conflict} onClose={() => setConflict(false)} title={t("Somebody else has changed this meanwhile")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Group>
          <Button onClick={() => void keepMine().catch(notify.error)}>{t("Keep mine")}</Button>
          <Button variant="default" onClick={() => void takeTheirs().catch(notify.error)}>
            {t("Take theirs")}
          </Button>
        </Group>
      </Modal>
    </>
  );
}

export default function WidgetEditor({ id }: { id: string }): ReactElement {
  const cache = useQueryClient();
  const type = useQuery({ queryKey: ["widget details", id], queryFn: () => api.get<Entity>(`/api/widgetType/${id}`), staleTime: Infinity });
  useThingTitle(type.data?.name);
  if (type.isPending) {
    return <Waiting />;
  }
  if (type.isError) {
    return <Problem error={type.error} />;
  }
  return (
    <Editor
      key={id}
      stored={type.data}
      onStored={(saved) => {
        cache.setQueryData(["widget details", id], saved);
        // Dashboards that were looked at know it by its name with its scope.
        ["tenant", "system"].forEach((scope) => void cache.invalidateQueries({ queryKey: ["widget type", `${scope}.${String(saved["fqn"])}`] }));
        void cache.invalidateQueries({ queryKey: ["list"] });
      }}
    />
  );
}
