// Relations of an entity, in both directions: seen, added, changed and deleted.

import { Button, Drawer, Group, SegmentedControl, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { EntityRelation, EntityRelationInfo } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import type { Authority, EntityId } from "@/api/types";
import { useSession } from "@/app/session";
import { plural, t } from "@/i18n";
import { EmptyState, notify, Problem, TextLink, Waiting } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import type { FormField, FormValues } from "@/ui/form/values";
import { valueAt } from "@/ui/form/values";
import type { GridColumn } from "@/ui/grid/columns";
import type { GridSort } from "@/ui/grid/sorting";
import { LocalTable } from "@/ui/list/LocalTable";
import { KINDS, pathOf } from "./kinds";

const TYPES = ["Contains", "Manages", "Uses", "Created"];
/** Kinds of entities that are offered as the other end. */
const ENDS = ["DEVICE", "ASSET", "ENTITY_VIEW", "CUSTOMER", "USER", "DASHBOARD", "RULE_CHAIN", "DEVICE_PROFILE", "ASSET_PROFILE"];

/** A relation as it looks from one of its ends. */
interface SeenRelation {
  relation: EntityRelationInfo;
  outward: boolean;
  other: EntityId;
  name: string;
}

function seen(relations: EntityRelationInfo[], outward: boolean): SeenRelation[] {
  return relations.map((relation) => {
    const other = outward ? relation.to : relation.from;
    return { relation, outward, other, name: (outward ? relation.toName : relation.fromName) ?? other.id };
  });
}

/** Declares the form of a new relation for what a role may see. */
export function relationFields(authority: Authority, customerId: string): FormField[] {
  const kinds = KINDS.filter((kind) => ENDS.includes(kind.type) && authority in kind.list);
  return [
    {
      name: "direction", label: "Direction", type: "select", required: true, initial: "FROM",
      options: [{ value: "FROM", label: "From here" }, { value: "TO", label: "To here" }],
    },
    { name: "type", label: "Relation type", type: "suggest", required: true, initial: "Contains", options: TYPES },
    { name: "kind", label: "Kind of the other entity", type: "select", required: true, initial: kinds[0]?.type, options: kinds.map(({ type, singular }) => ({ value: type, label: singular })) },
    ...kinds.map(({ type, singular, list }): FormField => ({
      name: `other.${type}`, label: singular, type: "entity", required: true,
      list: (list[authority] ?? "").replace("{customerId}", customerId),
      when: (values) => values["kind"] === type,
    })),
    { name: "additionalInfo", label: "Additional information (JSON)", type: "json" },
  ];
}

/** Makes the relation that a filled form declares. */
export function relationOf(here: EntityId, values: FormValues): EntityRelation {
  const other = valueAt(values, `other.${String(values["kind"])}`) as EntityId | undefined;
  const type = String(values["type"] ?? "").trim();
  if (other === undefined || other === null || type === "") {
    throw new Error("Choose the other entity and name the relation.");
  }
  const ends = values["direction"] === "TO" ? { from: other, to: here } : { from: here, to: other };
  return { ...ends, type, typeGroup: "COMMON", additionalInfo: values["additionalInfo"] ?? null };
}

const kindOf = ({ other }: SeenRelation): string => t(KINDS.find(({ type }) => type === other.entityType)?.singular ?? other.entityType);
const infoOf = ({ relation }: SeenRelation): string => ((relation.additionalInfo ?? null) === null ? "" : JSON.stringify(relation.additionalInfo));

function OtherEnd({ other, name }: SeenRelation): ReactElement {
  const path = pathOf(other);
  return path === undefined ? <>{name}</> : <TextLink to={path}>{name}</TextLink>;
}

const COLUMNS: GridColumn<SeenRelation>[] = [
  { key: "name", label: "Entity", px: 260, sortable: true, hideable: false, text: ({ name }) => name, show: OtherEnd },
  { key: "direction", label: "Direction", px: 110, least: 90, sortable: true, text: ({ outward }) => t(outward ? "From here" : "To here") },
  { key: "type", label: "Type", px: 150, least: 90, sortable: true, text: ({ relation }) => relation.type },
  { key: "kind", label: "Kind", px: 130, least: 80, sortable: true, text: kindOf },
  { key: "info", label: "Additional information", px: 220, least: 120, yields: 1, text: infoOf },
];
const BY_NAME: GridSort = { key: "name", order: "ASC" };
const keyOf = ({ relation, outward }: SeenRelation): string => `${relation.from.id} ${relation.type} ${relation.to.id} ${String(outward)}`;
const fits = ({ name, relation }: SeenRelation, wanted: string): boolean => `${name} ${relation.type}`.toLowerCase().includes(wanted);
const NONE: SeenRelation[] = [];

function RelationDrawer({ here, edited, close, changed }: { here: EntityId; edited: SeenRelation | "new" | undefined; close: () => void; changed: () => void }): ReactElement {
  const { authority, customerId } = useSession();
  const fields = useMemo(() => relationFields(authority, customerId), [authority, customerId]);
  const save = async (relation: EntityRelation): Promise<void> => {
    await api.post("/api/relation", relation);
    close();
    changed();
    notify.ok(t("Saved"));
  };
  return (
    <Drawer opened={edited !== undefined} onClose={close} position="right" title={t(edited === "new" ? "Add a relation" : "Edit the relation")} closeButtonProps={{ "aria-label": t("Close") }}>
      {edited === "new" && <FieldsForm fields={fields} values={{}} action="Add" keep={{ name: `new relation ${here.entityType} ${here.id}` }} onCancel={close} onSave={(values) => save(relationOf(here, values))} />}
      {edited !== undefined && edited !== "new" && (
        <>
          <Text mb="sm">{`${edited.relation.type}: ${edited.name}`}</Text>
          <FieldsForm
            fields={fields.slice(-1)}
            values={{ additionalInfo: edited.relation.additionalInfo }}
            action="Save"
            keep={{ name: `relation ${here.id} ${String(edited.outward)} ${edited.relation.type} ${edited.other.id}` }}
            onCancel={close}
            onSave={({ additionalInfo }) => {
              const { fromName: _from, toName: _to, ...relation } = edited.relation;
              return save({ ...relation, additionalInfo: additionalInfo ?? null });
            }}
          />
        </>
      )}
    </Drawer>
  );
}

export function RelationsTab({ id }: { id: EntityId }): ReactElement {
  const { authority } = useSession();
  const cache = useQueryClient();
  const [edited, setEdited] = useState<SeenRelation | "new">();
  const [direction, setDirection] = useState("BOTH");
  const mayWrite = authority !== "SYS_ADMIN";
  const relations = useQuery({
    queryKey: ["relations", id.id],
    queryFn: async () => [
      ...seen(await ask("GET /api/relations/info", { query: { fromId: id.id, fromType: id.entityType } }), true),
      ...seen(await ask("GET /api/relations/info", { query: { toId: id.id, toType: id.entityType } }), false),
    ],
  });
  const refresh = (): void => void cache.invalidateQueries({ queryKey: ["relations"] });
  const remove = async ({ relation }: SeenRelation): Promise<void> => {
    await api.delete("/api/relation", { fromId: relation.from.id, fromType: relation.from.entityType, relationType: relation.type, toId: relation.to.id, toType: relation.to.entityType });
    refresh();
  };
  const all = relations.data ?? NONE;
  const found = useMemo(() => all.filter(({ outward }) => direction === "BOTH" || outward === (direction === "FROM")), [all, direction]);
  if (relations.isPending) {
    return <Waiting />;
  }
  if (relations.isError) {
    return <Problem error={relations.error} />;
  }
  return (
    <>
      <Group mb="sm">
        {mayWrite && <Button onClick={() => setEdited("new")}>{t("Add a relation")}</Button>}
        <SegmentedControl
          aria-label={t("Direction")}
          value={direction}
          onChange={setDirection}
          data={[{ value: "BOTH", label: t("Both") }, { value: "FROM", label: t("From here") }, { value: "TO", label: t("To here") }]}
        />
      </Group>
      {found.length === 0 ? (
        <EmptyState>{t(all.length === 0 ? "No relations. A relation tells what belongs together, such as a building and its devices." : "No relations of this direction.")}</EmptyState>
      ) : (
        <LocalTable<SeenRelation>
          label={t("Relations")}
          name="RELATIONS"
          columns={COLUMNS}
          rows={found}
          rowKey={keyOf}
          sort={BY_NAME}
          fits={fits}
          told={(count) => plural(count, "{n} relation", "{n} relations")}
          actions={
            mayWrite
              ? (one) => (
                  <>
                    <Button size="compact-xs" variant="subtle" aria-label={t("Edit the relation to {name}", { name: one.name })} onClick={() => setEdited(one)}>
                      {t("Edit")}
                    </Button>
                    <Button size="compact-xs" variant="subtle" color="red" aria-label={t("Delete the relation to {name}", { name: one.name })} onClick={() => void remove(one).catch(notify.error)}>
                      {t("Delete")}
                    </Button>
                  </>
                )
              : undefined
          }
          actionsWidth={170}
        />
      )}
      <RelationDrawer here={id} edited={edited} close={() => setEdited(undefined)} changed={refresh} />
    </>
  );
}
