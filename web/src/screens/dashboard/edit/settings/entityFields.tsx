// Fields that choose entities for the filters of aliases.

import { Group, Select, TagsInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { EntityId } from "@/api/types";
import { CURRENT_ENTITIES, ENTITY_TYPES } from "@/dashboard/edit/aliasForms";
import { list, object, text } from "@/dashboard/model";
import { NULL_ID } from "@/entities/kinds";
import { t } from "@/i18n";
import { EntityPicker } from "@/ui/form/EntityPicker";

export function EntityTypeSelect({ value, onChange }: { value: string; onChange: (type: string) => void }): ReactElement {
  return (
    <Select
      label={t("Kind of entity")}
      allowDeselect={false}
      data={ENTITY_TYPES.map((one) => ({ value: one.value, label: t(one.label) }))}
      value={value}
      onChange={(next) => onChange(next ?? value)}
    />
  );
}

interface OneProps {
  label: string;
  value: unknown;
  onChange: (entity: EntityId | null) => void;
}

/** One entity of any kind, or one that differs by who looks. */
export function OneEntity({ label, value, onChange }: OneProps): ReactElement {
  const stored = object(value);
  const [kind, setKind] = useState(() => text(stored["entityType"]) ?? "DEVICE");
  const path = ENTITY_TYPES.find((one) => one.value === kind)?.list;
  const data = [
    { group: t("Chosen"), items: ENTITY_TYPES.map((one) => ({ value: one.value, label: t(one.label) })) },
    { group: t("By who looks"), items: CURRENT_ENTITIES.map((one) => ({ value: one.value, label: t(one.label) })) },
  ];
  return (
    <Group grow align="end">
      <Select
        label={label}
        allowDeselect={false}
        data={data}
        value={kind}
        onChange={(next) => {
          const chosen = next ?? kind;
          setKind(chosen);
          onChange(chosen.startsWith("CURRENT_") ? { entityType: chosen, id: NULL_ID } : null);
        }}
      />
      {path !== undefined && (
        <EntityPicker key={kind} label={t("Entity")} list={path} value={text(stored["id"]) === undefined ? null : stored} onChange={(chosen) => onChange(typeof chosen === "object" ? chosen : null)} />
      )}
    </Group>
  );
}

/** Where the names of types are listed. */
const TYPES: Record<string, string> = {
  device: "/api/deviceProfile/names",
  asset: "/api/assetProfile/names",
  entityView: "/api/entityView/types",
  edge: "/api/edge/types",
};

export function TypesField({ prefix, value, onChange }: { prefix: string; value: unknown; onChange: (types: string[]) => void }): ReactElement {
  const known = useQuery({
    queryKey: ["names of types", prefix],
    retry: false,
    queryFn: async () => (await api.get<unknown[]>(TYPES[prefix] ?? "")).flatMap((one) => text(object(one)["name"]) ?? text(object(one)["type"]) ?? []),
  });
  return <TagsInput label={t("Types")} description={t("Names of profiles or types; Enter adds one.")} data={known.data ?? []} value={list(value).map(String)} onChange={onChange} />;
}
