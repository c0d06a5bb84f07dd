// One source of a widget: what it is, whose data it has, which keys.

import { Select, Stack, TextInput } from "@mantine/core";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { aliasFor, changeWidget } from "@/dashboard/edit/document";
import { aliasSource, changeSource, COURSES, keysIn, nameCourse, retypeSource } from "@/dashboard/edit/sources";
import { object, text, type Json } from "@/dashboard/model";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { onePath } from "@/entities/onePath";
import { EntityPicker } from "@/ui/form/EntityPicker";
import { Fields } from "@/ui/form/Fields";
import { PALETTE } from "@/widgets/color";
import type { WidgetForm } from "@/widgets/forms";
import { alarmFilter } from "@/widgets/form/tables";
import type { TypeRules } from "@/widgets/typeRules";
import type { DashboardEditor } from "../editor";
import { KeyList } from "./KeyList";
import { PickEntity } from "./PickEntity";
import { trialIn } from "./trial";
import { useKnownKeys } from "./useKnownKeys";

const SOURCE_LABELS: Readonly<Record<string, { label: string }>> = {
  entity: { label: "Entities of an alias" },
  device: { label: "One device" },
  function: { label: "Values made up by functions" },
  entityCount: { label: "Number of entities" },
  alarmCount: { label: "Number of alarms" },
};
const ALARMS = alarmFilter("alarmFilterConfig");

/** Which kinds of keys a source of a kind can have in a widget of a type. */
function kindsOfKeys(source: string, type: string): readonly string[] {
  switch (source) {
    case "function":
      return ["function"];
    case "entityCount":
    case "alarmCount":
      return ["count"];
    default:
      return type === "timeseries" ? ["timeseries"] : type === "alarm" ? ["alarm", "timeseries", "attribute", "entityField"] : ["timeseries", "attribute", "entityField"];
  }
}

interface Props {
  editor: DashboardEditor;
  id: string;
  n: number;
  source: Json;
  /** The type of the widget's data. */
  type: string;
  rules: TypeRules;
  form: WidgetForm | undefined;
  /** How many keys the sources before it have, for the colours of new ones. */
  before: number;
}

export function SourceForm({ editor, id, n, source, type, rules, form, before: keysBefore }: Props): ReactElement {
  const { model, edit, turn } = editor;
  const kind = text(source["type"]) ?? rules.kinds[0] ?? "entity";
  const kinds: readonly string[] = rules.kinds.some((one) => one === kind) ? rules.kinds : [kind, ...rules.kinds];
  const aliasId = text(source["entityAliasId"]) ?? text(source["deviceAliasId"]);
  const alias = aliasId === undefined ? undefined : model.aliases.get(aliasId);
  const known = useKnownKeys(source, editor);
  const trial = trialIn(source, editor);
  // A source that isn't stored yet is of the first kind that the type has.
  const change = (update: (source: Json) => Json): void =>
    edit((before) => changeWidget(before, id, changeSource(object(object(before["widgets"])[id]), n, (one) => update(Object.keys(one).length === 0 ? { type: kind } : one))));
  const choose = async (chosen: EntityId): Promise<void> => {
    try {
      const found = await api.get<Entity>(onePath(chosen));
      edit((before) => {
        const { document, alias: own } = aliasFor(before, chosen, nameOf(found));
        return changeWidget(document, id, changeSource(object(object(document["widgets"])[id]), n, (one) => aliasSource(Object.keys(one).length === 0 ? { type: kind } : one, own)));
      });
    } catch (error) {
      notify.error(error);
    }
  };
  const keyKinds = kindsOfKeys(kind, type);
  const beginKey = (ofKind: string, more: Json | undefined, place: number): Json => {
    const key = { name: "", type: ofKind, label: "", color: PALETTE[place % PALETTE.length], settings: {}, ...(ofKind === "function" ? {} : more) };
    return ofKind === "function" ? { ...nameCourse(key, Object.keys(COURSES)[place % 3] ?? "Sin"), ...(more?.["settings"] === undefined ? {} : { settings: more["settings"] }) } : ofKind === "count" ? { ...key, name: "count", label: "count" } : key;
  };
  const own = keysIn(source, "dataKeys").length;
  const shared = { source, known, turn, change, trial };
  const use = type === "timeseries" ? "points" : type === "alarm" ? "alarm" : "latest";
  const hasLatest = type === "timeseries" && (rules.latestKeys || keysIn(source, "latestDataKeys").length > 0);
  const latestKinds = kind === "function" ? keyKinds : kindsOfKeys(kind, "latest");
  return (
    <Stack gap={6}>
      {kinds.length > 1 && (
        <Select label={t("Kind of source")} allowDeselect={false} data={kinds.map((one) => ({ value: one, label: t(SOURCE_LABELS[one]?.label ?? one) }))} value={kind} onChange={(next) => next !== null && change((before) => retypeSource(before, next))} />
      )}
      {kind === "device" && (
        <EntityPicker label={t("Device")} list="/api/tenant/devices" one="/api/device/" pick="id" value={text(source["deviceId"])} onChange={(device) => change((before) => ({ ...before, deviceId: device ?? undefined }))} />
      )}
      {kind !== "device" && kind !== "function" && (
        <>
          <Select
            label={t("Data of")}
            placeholder={t(kind === "alarmCount" ? "all entities" : "nothing yet")}
            {...(rules.singleEntity && kind === "entity" && alias?.filter["resolveMultiple"] === true ? { description: t("Of several entities, the first one is shown.") } : {})}
            clearable
            clearButtonProps={{ "aria-label": t("Clear the choice") }}
            data={[...model.aliases.values()].map((one) => ({ value: one.id, label: one.alias }))}
            value={aliasId ?? null}
            onChange={(chosen) => change((before) => aliasSource(before, chosen ?? undefined))}
          />
          <PickEntity choose={(chosen) => void choose(chosen)} />
        </>
      )}
      {kind !== "entity" && kind !== "device" && <TextInput label={t("Name of the source")} value={text(source["name"]) ?? ""} onChange={({ currentTarget: { value } }) => change((before) => ({ ...before, name: value }))} />}
      {kind !== "function" && kind !== "device" && type !== "rpc" && model.filters.size > 0 && (
        <Select
          label={t("Filter")}
          placeholder={t("nothing yet")}
          clearable
          clearButtonProps={{ "aria-label": t("Clear the choice") }}
          data={[...model.filters.values()].map((filter) => ({ value: filter.id, label: filter.name }))}
          value={text(source["filterId"]) ?? null}
          onChange={(filterId) => change((before) => ({ ...before, filterId: filterId ?? undefined }))}
        />
      )}
      {kind === "alarmCount" && <Fields key={turn} fields={ALARMS} values={source} change={change} />}
      {(rules.maxKeys > 0 || own > 0) && type !== "rpc" && (
        <KeyList {...shared} where="dataKeys" title={hasLatest ? t("Courses") : undefined} use={use} kinds={keyKinds} most={keyKinds[0] === "count" ? 1 : rules.maxKeys} fields={form?.keys ?? []} settle={form?.settle} begin={() => beginKey(keyKinds[0] ?? "timeseries", form?.newKey, keysBefore + own)} />
      )}
      {hasLatest && (
        <KeyList {...shared} where="latestDataKeys" title={t("Latest values beside them")} use="latest" kinds={latestKinds} most={Infinity} fields={form?.latestKeys ?? []} settle={undefined} begin={() => beginKey(latestKinds[0] ?? "timeseries", undefined, keysBefore + own + keysIn(source, "latestDataKeys").length)} />
      )}
    </Stack>
  );
}
