// What a widget shows, beside the live widget itself.

import { ActionIcon, Autocomplete, Button, ColorInput, Fieldset, Group, NumberInput, Select, Stack, Switch, Tabs, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { aliasFor, changeWidget, typeOf } from "@/dashboard/edit/document";
import { list, number, object, text, type Json } from "@/dashboard/model";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { notify, Waiting } from "@/ui/feedback";
import { EntityPicker } from "@/ui/form/EntityPicker";
import { AroundContext } from "@/ui/form/around";
import { Fields } from "@/ui/form/Fields";
import type { FormField, FormValues } from "@/ui/form/values";
import { WIDGET_KINDS } from "@/widgets/catalog";
import { formOf } from "@/widgets/forms";
import { isSymbol } from "@/widgets/symbol/symbol";
import type { DashboardEditor } from "./editor";

const ActionsTab = lazy(() => import("./ActionsTab"));
const CardTab = lazy(() => import("./CardTab"));
const SymbolSettings = lazy(() => import("./SymbolSettings"));
const DataTab = lazy(() => import("./DataTab"));
const CodeEditor = lazy(() => import("@/ui/CodeEditor"));

const COLORS = ["#2196f3", "#f44336", "#4caf50", "#ff9800", "#9c27b0", "#009688", "#795548", "#607d8b"];
const KEY_TYPES = [
  { value: "timeseries", label: "Telemetry" },
  { value: "attribute", label: "Attribute" },
  { value: "entityField", label: "Field of the entity" },
];
const PICKED = [
  { value: "/api/tenant/devices", label: "Device" },
  { value: "/api/tenant/assets", label: "Asset" },
];

/** Sources that count stay so whoever they are about. */
const typeOfSource = (source: Json): string => (["entityCount", "alarmCount"] as const).find((type) => type === source["type"]) ?? "entity";

/** Where a widget's data is declared: alarms have a source of their own, and controls a target. */
function sourceOf(config: Json): { source: Json; put: (source: Json) => Json } {
  const target = config["targetDevice"];
  if (typeof target === "object" && target !== null && list(config["datasources"]).length === 0) {
    return {
      source: { ...object(target), type: "entity" },
      put: (source) => ({ ...config, targetDevice: { type: "entity", entityAliasId: source["entityAliasId"] } }),
    };
  }
  const alarm = config["alarmSource"];
  if (typeof alarm === "object" && alarm !== null) {
    return { source: object(alarm), put: (source) => ({ ...config, alarmSource: source }) };
  }
  const [first, ...rest] = list(config["datasources"]);
  return { source: object(first), put: (source) => ({ ...config, datasources: [source, ...rest] }) };
}

interface KeyRowProps {
  value: Json;
  known: string[];
  /** What the widget's type has to set for each key. */
  fields: readonly FormField[];
  onChange: (key: Json) => void;
  onRemove: () => void;
}

function KeyRow({ value, known, fields, onChange, onRemove }: KeyRowProps): ReactElement {
  const name = text(value["name"]) ?? "";
  return (
    <Fieldset legend={name || t("New key")} p="xs">
      <Stack gap={6}>
        <Group gap={6} grow align="end">
          <Autocomplete
            label={t("Key")}
            data={known}
            value={name}
            onChange={(next) => onChange({ ...value, name: next, label: text(value["label"]) === text(value["name"]) || text(value["label"]) === undefined ? next : value["label"] })}
          />
          <Select label={t("Kind")} allowDeselect={false} data={KEY_TYPES.map((kind) => ({ ...kind, label: t(kind.label) }))} value={text(value["type"]) ?? "timeseries"} onChange={(type) => onChange({ ...value, type })} />
        </Group>
        <TextInput label={t("Label")} value={text(value["label"]) ?? ""} onChange={(event) => onChange({ ...value, label: event.currentTarget.value })} />
        <Group gap={6} grow align="end">
          <TextInput label={t("Unit")} value={text(value["units"]) ?? ""} onChange={(event) => onChange({ ...value, units: event.currentTarget.value })} />
          <NumberInput label={t("Decimals")} min={0} max={15} value={number(value["decimals"]) ?? ""} onChange={(decimals) => onChange({ ...value, decimals: decimals === "" ? null : Number(decimals) })} />
          <ColorInput label={t("Color")} value={text(value["color"]) ?? "#2196f3"} onChange={(color) => onChange({ ...value, color })} eyeDropperButtonProps={{ "aria-label": t("Pick a color from the screen") }} />
        </Group>
        {fields.length > 0 && <Fields fields={fields} values={object(value["settings"])} change={(update) => onChange({ ...value, settings: update(object(value["settings"])) })} />}
        <Group justify="end">
          <ActionIcon variant="subtle" color="red" aria-label={t("Remove the key {name}", { name })} onClick={onRemove}>
            ✕
          </ActionIcon>
        </Group>
      </Stack>
    </Fieldset>
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
  const { document, model, edit } = editor;
  const [picked, setPicked] = useState(PICKED[0]?.value ?? "");
  const widget = object(object(document["widgets"])[id]);
  const config = object(widget["config"]);
  const settings = object(config["settings"]);
  const fqn = typeOf(document, id);
  const { source, put } = sourceOf(config);
  const aliasId = text(source["entityAliasId"]) ?? text(source["deviceAliasId"]);
  const single = object(object(aliasId === undefined ? undefined : model.aliases.get(aliasId)?.filter)["singleEntity"]);
  const entity = text(single["id"]) === undefined ? undefined : (single as unknown as EntityId);
  const keys = list(source["dataKeys"]).map(object);
  const known = useQuery({
    queryKey: ["keys of", entity?.entityType, entity?.id],
    enabled: entity !== undefined,
    queryFn: () => api.get<string[]>(`/api/plugins/telemetry/${entity?.entityType}/${entity?.id}/keys/timeseries`),
  });
  const change = (next: Json): void => edit((before) => changeWidget(before, id, { ...object(object(before["widgets"])[id]), config: next }));
  const setKeys = (next: Json[]): void => change(put({ ...source, dataKeys: next }));
  const choose = async (chosen: EntityId | string | null): Promise<void> => {
    if (chosen === null || typeof chosen === "string") {
      return;
    }
    try {
      const found = await api.get<Entity>(`/api/${chosen.entityType.toLowerCase()}/${chosen.id}`);
      edit((before) => {
        const { document: next, alias } = aliasFor(before, chosen, nameOf(found));
        const current = object(object(next["widgets"])[id]);
        const { source: now, put: into } = sourceOf(object(current["config"]));
        return changeWidget(next, id, { ...current, config: into({ ...now, type: typeOfSource(now), entityAliasId: alias }) });
      });
    } catch (error) {
      notify.error(error);
    }
  };
  const form = formOf(fqn);
  const changeSettings = (update: (settings: FormValues) => FormValues): void =>
    edit((before) => {
      const current = object(object(before["widgets"])[id]);
      const own = object(current["config"]);
      return changeWidget(before, id, { ...current, config: { ...own, settings: update(object(own["settings"])) } });
    });
  const states = model.states.map((state) => ({ value: state.id, label: state.name || state.id }));
  const around = { values: settings, options: { states }, names: { aliases: [...model.aliases.values()].map(({ alias }) => alias) } };
  const hasKeys = !fqn.endsWith("alarms_table") && !fqn.endsWith("markdown_card") && widget["type"] !== "rpc";
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
          <TextInput label={t("Title")} value={text(config["title"]) ?? ""} onChange={(event) => change({ ...config, title: event.currentTarget.value })} />
          <Switch label={t("Show the title")} checked={config["showTitle"] !== false} onChange={(event) => change({ ...config, showTitle: event.currentTarget.checked })} />
          {WIDGET_KINDS.some((kind) => kind.fqn === fqn) ? (
            <Select
              label={t("Drawn as")}
              allowDeselect={false}
              data={WIDGET_KINDS.map((kind) => ({ value: kind.fqn, label: t(kind.title) }))}
              value={fqn}
              onChange={(next) => {
                const kind = WIDGET_KINDS.find((one) => one.fqn === next);
                if (kind !== undefined) {
                  edit((before) => changeWidget(before, id, { ...object(object(before["widgets"])[id]), typeFullFqn: kind.fqn, type: kind.type }));
                }
              }}
            />
          ) : (
            <Text size="sm">{t("Drawn as {type}", { type: fqn })}</Text>
          )}
          {fqn.endsWith("markdown_card") && (
            <Textarea
              label={t("Text (Markdown)")}
              autosize
              minRows={4}
              value={text(settings["markdownTextPattern"]) ?? ""}
              onChange={(event) => change({ ...config, settings: { ...settings, markdownTextPattern: event.currentTarget.value } })}
            />
          )}
          <Select
            label={t("Data of")}
            placeholder={t("nothing yet")}
            clearable
            clearButtonProps={{ "aria-label": t("Clear the choice") }}
            data={[...model.aliases.values()].map((alias) => ({ value: alias.id, label: alias.alias }))}
            value={aliasId ?? null}
            onChange={(alias) => change(put({ ...source, type: typeOfSource(source), entityAliasId: alias ?? undefined }))}
          />
          {model.filters.size > 0 && (
            <Select
              label={t("Filter")}
              placeholder={t("nothing yet")}
              clearable
              clearButtonProps={{ "aria-label": t("Clear the choice") }}
              data={[...model.filters.values()].map((filter) => ({ value: filter.id, label: filter.name }))}
              value={text(source["filterId"]) ?? null}
              onChange={(filterId) => change(put({ ...source, filterId: filterId ?? undefined }))}
            />
          )}
          <Group gap={6} align="end" wrap="nowrap">
            <Select aria-label={t("Kind of entity")} w={110} allowDeselect={false} data={PICKED.map((one) => ({ ...one, label: t(one.label) }))} value={picked} onChange={(value) => setPicked(value ?? picked)} />
            <EntityPicker label={t("Choose an entity")} list={picked} value={null} onChange={(chosen) => void choose(chosen)} />
          </Group>
          <AroundContext value={around}>
            {hasKeys && (
              <>
                {keys.map((key, n) => (
                  <KeyRow key={n} value={key} known={known.data ?? []} fields={form?.keys ?? []} onChange={(next) => setKeys(keys.map((one, at) => (at === n ? (form?.settle?.(next) ?? next) : one)))} onRemove={() => setKeys(keys.filter((_, at) => at !== n))} />
                ))}
                <Button variant="default" onClick={() => setKeys([...keys, { name: "", type: "timeseries", label: "", color: COLORS[keys.length % COLORS.length], settings: {}, ...form?.newKey }])}>
                  {t("Add a key")}
                </Button>
              </>
            )}
            {isSymbol(fqn, settings) && (
              <Suspense fallback={<Waiting />}>
                <SymbolSettings key={id} settings={settings} change={changeSettings} />
              </Suspense>
            )}
            {form !== undefined && (
              <>
                <Title order={2} size="h4">{t("Settings")}</Title>
                <Fields key={`${id} ${fqn}`} fields={form.settings} values={settings} change={changeSettings} />
                {form.config !== undefined && <Fields fields={form.config} values={config} change={(update) => change(update(config))} />}
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
