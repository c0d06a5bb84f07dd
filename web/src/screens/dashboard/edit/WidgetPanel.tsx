// What a widget shows, beside the live widget itself.

import { Button, Select, Stack, Switch, Tabs, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { bodyOf } from "@/dashboard/actions";
import { changeWidget, typeOf } from "@/dashboard/edit/document";
import { object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { Waiting } from "@/ui/feedback";
import { AroundContext } from "@/ui/form/around";
import { Fields } from "@/ui/form/Fields";
import type { FormValues } from "@/ui/form/values";
import { WIDGET_KINDS } from "@/widgets/catalog";
import { drawnAs, fittingKinds } from "@/widgets/drawnAs";
import { formOf, withBeginnings } from "@/widgets/forms";
import { formOfType } from "@/widgets/typeForm";
import { FURTHER_KINDS } from "@/widgets/furtherKinds";
import { hasLayers } from "@/widgets/map/kinds";
import { isSymbol } from "@/widgets/symbol/symbol";
import { rulesOf } from "@/widgets/typeRules";
import { Sources } from "./data/Sources";
import type { DashboardEditor } from "./editor";

const ActionsTab = lazy(() => import("./ActionsTab"));
const CardTab = lazy(() => import("./CardTab"));
const SymbolSettings = lazy(() => import("./SymbolSettings"));
const MapSettings = lazy(() => import("./MapSettings"));
const DataTab = lazy(() => import("./DataTab"));
const CodeEditor = lazy(() => import("@/ui/CodeEditor"));

const ALL_KINDS = [...WIDGET_KINDS, ...FURTHER_KINDS];
/** How kinds of data are called above the kinds of widgets that draw them. */
const GROUPS: Readonly<Record<string, { label: string }>> = {
  timeseries: { label: "Time series" },
  latest: { label: "Latest values" },
  rpc: { label: "Control" },
  alarm: { label: "Alarms" },
  static: { label: "Static" },
};

/** Returns what a type of a tenant says of itself; nothing of other types, which are known here. */
function useDescriptor(fqn: string): Json {
  const type = useQuery({ queryKey: ["widget type", fqn], enabled: fqn.startsWith("tenant."), retry: false, queryFn: () => api.get<Json>("/api/widgetType", { fqn }) });
  return object(type.data?.["descriptor"]);
}

/** What draws the data of the widget. */
function DrawnAs({ editor, id, fqn }: { editor: DashboardEditor; id: string; fqn: string }): ReactElement {
  const widget = object(object(editor.document["widgets"])[id]);
  const kinds = fittingKinds(ALL_KINDS, widget);
  if (!kinds.some((kind) => kind.fqn === fqn)) {
    return <Text size="sm">{t("Drawn as {type}", { type: fqn })}</Text>;
  }
  const groups = [...new Set(kinds.map(({ type }) => type))];
  return (
    <Select
      label={t("Drawn as")}
      searchable
      allowDeselect={false}
      nothingFoundMessage={t("Nothing matches the search.")}
      data={groups.map((type) => ({ group: t(GROUPS[type]?.label ?? type), items: kinds.filter((kind) => kind.type === type).map((kind) => ({ value: kind.fqn, label: t(kind.title) })) }))}
      value={fqn}
      onChange={(next) => {
        const kind = ALL_KINDS.find((one) => one.fqn === next);
        if (kind !== undefined) {
          editor.edit((before) => changeWidget(before, id, drawnAs(object(object(before["widgets"])[id]), kind)));
        }
      }}
    />
  );
}

function RawTab({ widget, onApply }: { widget: Json; onApply: (widget: Json) => void }): ReactElement {
  const [value, setValue] = useState(() => JSON.stringify(widget, null, 2));
  const [problem, setProblem] = useState("");
  const put = (): void => {
    try {
      const read: unknown = JSON.parse(value);
      setProblem(typeof read === "object" && read !== null && !Array.isArray(read) ? "" : t("A widget is a JSON object."));
      if (typeof read === "object" && read !== null && !Array.isArray(read)) {
        onApply(read as Json);
      }
    } catch (error) {
      setProblem(String(error));
    }
  };
  return (
    <Suspense fallback={<Waiting />}>
      <CodeEditor label={t("Widget as JSON")} language="JSON" value={value} onChange={setValue} height="24rem" />
      {problem !== "" && <Text role="alert" c="red" size="sm">{problem}</Text>}
      <Button mt="xs" onClick={put}>
        {t("Apply")}
      </Button>
    </Suspense>
  );
}

export function WidgetPanel({ editor, id }: { editor: DashboardEditor; id: string }): ReactElement {
  const { document, model, edit, turn } = editor;
  const widget = object(object(document["widgets"])[id]);
  const config = object(widget["config"]);
  const settings = object(config["settings"]);
  const fqn = typeOf(document, id);
  const descriptor = useDescriptor(fqn);
  const own = useMemo(() => formOfType(descriptor), [descriptor]);
  const form = formOf(fqn) ?? own;
  const rules = rulesOf(fqn, text(widget["type"]) ?? "latest", bodyOf(descriptor["controllerScript"]));
  const change = (update: (config: Json) => Json): void =>
    edit((before) => {
      const current = object(object(before["widgets"])[id]);
      return changeWidget(before, id, { ...current, config: update(object(current["config"])) });
    });
  const changeSettings = (update: (settings: FormValues) => FormValues): void => change((before) => ({ ...before, settings: update(object(before["settings"])) }));
  const states = model.states.map((state) => ({ value: state.id, label: state.name || state.id }));
  const aliases = [...model.aliases.values()].map((alias) => ({ value: alias.id, label: alias.alias }));
  const around = { values: settings, options: { states, aliases }, names: { aliases: aliases.map(({ label }) => label) } };
  return (
    <Tabs defaultValue="what" keepMounted={false}>
      <Tabs.List mb="sm">
        <Tabs.Tab value="what">{t("Widget")}</Tabs.Tab>
        <Tabs.Tab value="actions">{t("Actions")}</Tabs.Tab>
        <Tabs.Tab value="card">{t("Card")}</Tabs.Tab>
        <Tabs.Tab value="data">{t("Data")}</Tabs.Tab>
        <Tabs.Tab value="raw">{t("JSON")}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="what">
        <Stack gap="sm">
          <TextInput label={t("Title")} value={text(config["title"]) ?? ""} onChange={({ currentTarget: { value } }) => change((before) => ({ ...before, title: value }))} />
          <Switch label={t("Show the title")} checked={config["showTitle"] !== false} onChange={({ currentTarget: { checked } }) => change((before) => ({ ...before, showTitle: checked }))} />
          <DrawnAs editor={editor} id={id} fqn={fqn} />
          {fqn.endsWith("markdown_card") && (
            <Textarea
              label={t("Text (Markdown)")}
              autosize
              minRows={4}
              value={text(settings["markdownTextPattern"]) ?? ""}
              onChange={({ currentTarget: { value } }) => changeSettings((before) => ({ ...before, markdownTextPattern: value }))}
            />
          )}
          <AroundContext value={around}>
            <Sources editor={editor} id={id} rules={rules} form={form} />
            {isSymbol(fqn, settings) && (
              <Suspense fallback={<Waiting />}>
                <SymbolSettings key={`${id} ${turn}`} settings={settings} change={changeSettings} />
              </Suspense>
            )}
            {hasLayers(fqn) && (
              <Suspense fallback={<Waiting />}>
                <MapSettings editor={editor} id={id} fqn={fqn} config={config} />
              </Suspense>
            )}
            {form !== undefined && form.settings.length + (form.config?.length ?? 0) > 0 && (
              <>
                <Title order={2} size="h4">{t("Settings")}</Title>
                <Fields key={`${id} ${fqn} ${turn}`} fields={form.settings} values={withBeginnings(form, settings)} change={(update) => changeSettings((before) => update(withBeginnings(form, before)))} />
                {form.config !== undefined && <Fields key={`config ${turn}`} fields={form.config} values={config} change={change} />}
              </>
            )}
          </AroundContext>
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="actions">
        <Suspense fallback={<Waiting />}>
          <ActionsTab editor={editor} id={id} fqn={fqn} />
        </Suspense>
      </Tabs.Panel>
      <Tabs.Panel value="card">
        <Suspense fallback={<Waiting />}>
          <CardTab editor={editor} id={id} />
        </Suspense>
      </Tabs.Panel>
      <Tabs.Panel value="data">
        <Suspense fallback={<Waiting />}>
          <DataTab editor={editor} id={id} />
        </Suspense>
      </Tabs.Panel>
      <Tabs.Panel value="raw">
        <RawTab key={JSON.stringify(widget)} widget={widget} onApply={(next) => edit((before) => changeWidget(before, id, next))} />
      </Tabs.Panel>
    </Tabs>
  );
}
