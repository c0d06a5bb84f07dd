// What is set of a map: its background, its layers with whose data they show, and how it is handled.

import { Select, Stack, Title } from "@mantine/core";
import { useContext, useEffect, useMemo, useRef, useState, type ReactElement, type RefObject } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { aliasFor, changeWidget, setAlias } from "@/dashboard/edit/document";
import { keysIn } from "@/dashboard/edit/sources";
import { list, object, text, type Json } from "@/dashboard/model";
import { nameOf } from "@/entities/kinds";
import { onePath } from "@/entities/onePath";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { AroundContext, type OwnField } from "@/ui/form/around";
import { Fields } from "@/ui/form/Fields";
import { PALETTE } from "@/widgets/color";
import { newKey } from "@/widgets/map/form/defaults";
import { mapFields } from "@/widgets/map/form/mapForm";
import { kindsIn, looseSources, mapKind, shownSettings, withSettings } from "@/widgets/map/form/stored";
import { hasTrips } from "@/widgets/map/kinds";
import { drawsLayer } from "@/widgets/map/legacy";
import { KeyList } from "./data/KeyList";
import { KeyRow } from "./data/KeyRow";
import { PickEntity } from "./data/PickEntity";
import { trialIn } from "./data/trial";
import { useKnownKeys } from "./data/useKnownKeys";
import type { DashboardEditor } from "./editor";

/** Returns what a layer shows as a source of a widget. */
function sourceOf(layer: Json): Json {
  return { type: layer["dsType"] ?? "entity", entityAliasId: layer["dsEntityAliasId"], deviceId: layer["dsDeviceId"], filterId: layer["dsFilterId"] };
}

interface KeyProps {
  editor: DashboardEditor;
  own: OwnField;
  source: Json;
}

/** Kinds of keys are named by the field; what functions make up has but one. */
function kindsFor({ field }: OwnField, source: Json): readonly string[] {
  return source["type"] === "function" ? ["function"] : (field.options ?? []).map((option) => (typeof option === "string" ? option : option.value));
}

/** The one key for a purpose. */
function LayerKey({ editor, own, source }: KeyProps): ReactElement {
  const [opened, setOpened] = useState(false);
  const known = useKnownKeys(source, editor);
  const value = object((Array.isArray(own.value) ? list(own.value)[0] : own.value) ?? own.field.initial);
  const kinds = kindsFor(own, source);
  return (
    <KeyRow
      label={t(own.field.label)}
      value={{ ...value, type: value["type"] ?? kinds[0] }}
      use={kinds.includes("attribute") || source["type"] === "function" ? "latest" : "points"}
      kinds={kinds}
      known={known}
      fields={[]}
      turn={editor.turn}
      opened={opened}
      toggle={() => setOpened(!opened)}
      onChange={(update) => own.change(update({ ...newKey("", kinds[0] ?? "attribute"), ...value }))}
      trial={trialIn(source, editor)}
      row={{}}
      handle={undefined}
    />
  );
}

/** Keys whose values texts and functions know besides. */
function LayerKeys({ editor, own, source }: KeyProps): ReactElement {
  const known = useKnownKeys(source, editor);
  const kinds = kindsFor(own, source);
  const keys = { dataKeys: list(own.value) };
  return (
    <KeyList
      source={keys}
      where="dataKeys"
      title={t(own.field.label)}
      use="latest"
      kinds={kinds}
      most={Infinity}
      fields={[]}
      known={known}
      turn={editor.turn}
      begin={() => ({ ...newKey("", kinds[0] ?? "attribute"), color: PALETTE[keys.dataKeys.length % PALETTE.length] })}
      change={(update) => own.change(keysIn(update(keys), "dataKeys"))}
      settle={undefined}
      trial={trialIn(source, editor)}
    />
  );
}

interface AliasProps extends Omit<KeyProps, "source"> {
  /** What the next change of settings does to the dashboard in the same step. */
  besides: RefObject<((document: Json) => Json) | undefined>;
}

/** Whose data a layer shows: an alias, or an entity that gets one. */
function LayerAlias({ editor, own, besides }: AliasProps): ReactElement {
  const { options } = useContext(AroundContext);
  const newest = useRef<Json>(undefined);
  useEffect(() => {
    newest.current = editor.document;
    return () => {
      newest.current = undefined;
    };
  }, [editor.document]);
  const choose = async (chosen: EntityId): Promise<void> => {
    try {
      const found = await api.get<Entity>(onePath(chosen));
      // Other things may have been changed meanwhile; a form that is gone, as after undoing, has no place for the choice any more.
      if (newest.current === undefined) {
        return;
      }
      const { document, alias } = aliasFor(newest.current, chosen, nameOf(found));
      const made = object(object(document["entityAliases"])[alias]);
      besides.current = (before) => (alias in object(before["entityAliases"]) ? before : setAlias(before, alias, made));
      own.change(alias);
    } catch (error) {
      notify.error(error);
    }
  };
  return (
    <Stack gap={6}>
      <Select
        label={t(own.field.label)}
        placeholder={t("nothing yet")}
        clearable
        clearButtonProps={{ "aria-label": t("Clear the choice") }}
        data={[...(options?.["aliases"] ?? [])]}
        value={text(own.value) ?? null}
        onChange={(alias) => own.change(alias ?? undefined)}
      />
      <PickEntity choose={(chosen) => void choose(chosen)} />
    </Stack>
  );
}

interface Props {
  editor: DashboardEditor;
  id: string;
  fqn: string;
  config: Json;
}

export default function MapSettings({ editor, id, fqn, config }: Props): ReactElement {
  const around = useContext(AroundContext);
  const loose = looseSources(config);
  const { aliases, filters } = editor.model;
  const known = useKnownKeys(loose.find(drawsLayer) ?? {}, editor);
  const isSeries = kindsIn(loose, (alias) => aliases.get(alias)?.filter, known);
  const shown = shownSettings(fqn, config, isSeries);
  const kind = mapKind(fqn, shown);
  const besides = useRef<(document: Json) => Json>(undefined);
  const change = (update: (settings: Json) => Json): void => {
    const also = besides.current;
    besides.current = undefined;
    editor.edit((before) => {
      const document = also?.(before) ?? before;
      const widget = object(object(document["widgets"])[id]);
      return changeWidget(document, id, { ...widget, config: withSettings(fqn, object(widget["config"]), isSeries, update) });
    });
  };
  const fields = useMemo(() => mapFields(kind, hasTrips(fqn)), [kind, fqn]);
  const more = {
    ...around,
    values: shown,
    options: {
      ...around.options,
      aliases: [...aliases.values()].map((one) => ({ value: one.id, label: one.alias })),
      filters: [...filters.values()].map((one) => ({ value: one.id, label: one.name })),
    },
    own: {
      layerKey: (own: OwnField) => <LayerKey editor={editor} own={own} source={sourceOf(own.values)} />,
      layerKeys: (own: OwnField) => <LayerKeys editor={editor} own={own} source={sourceOf(own.values)} />,
      layerAlias: (own: OwnField) => <LayerAlias editor={editor} own={own} besides={besides} />,
      pictureKey: (own: OwnField) => <LayerKey editor={editor} own={own} source={{ type: "entity", entityAliasId: object(own.values["imageSource"])["entityAliasId"] }} />,
    },
  };
  // Lists hold what is typed into them. As long as they follow from sources, they begin anew with those; then they go on as they are.
  const begun = useRef("");
  begun.current = loose.length === 0 ? begun.current : JSON.stringify([loose, shown["markers"], shown["trips"]]);
  return (
    <AroundContext value={more}>
      <Title order={2} size="h4">{t("Settings")}</Title>
      <Fields key={`${id} ${fqn} ${editor.turn} ${begun.current}`} fields={fields} values={shown} change={change} />
    </AroundContext>
  );
}
