// Relations of an entity, in both directions: seen, added, changed and deleted.

import { Button, Code, Drawer, Group, SegmentedControl, Table, Text, TextInput } from "@mantine/core";
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
import { Flow } from "@/ui/Flow";
import type { FormField, FormValues } from "@/ui/form/values";
import { valueAt } from "@/ui/form/values";
import { KINDS, pathOf } from "./kinds";

/** More rows than these are found by the search. */
const SHOWN = 200;
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

function RelationRow({ one, mayWrite, onEdit, onRemove }: { one: SeenRelation; mayWrite: boolean; onEdit: () => void; onRemove: () => void }): ReactElement {
  const path = pathOf(one.other);
  const kind = KINDS.find(({ type }) => type === one.other.entityType)?.singular ?? one.other.entityType;
  const info = one.relation.additionalInfo ?? null;
  return (
    <Table.Tr>
      <Table.Td>{t(one.outward ? "From here" : "To here")}</Table.Td>
      <Table.Td>{one.relation.type}</Table.Td>
      <Table.Td>{t(kind)}</Table.Td>
      <Table.Td>{path === undefined ? one.name : <TextLink to={path}>{one.name}</TextLink>}</Table.Td>
      <Table.Td>{info === null ? "" : <Code>{JSON.stringify(info).slice(0, 120)}</Code>}</Table.Td>
      {mayWrite && (
        <Table.Td>
          <Group gap={4} wrap="nowrap">
            <Button size="compact-xs" variant="subtle" aria-label={t("Edit the relation to {name}", { name: one.name })} onClick={onEdit}>
              {t("Edit")}
            </Button>
            <Button size="compact-xs" variant="subtle" color="red" aria-label={t("Delete the relation to {name}", { name: one.name })} onClick={onRemove}>
              {t("Delete")}
            </Button>
          </Group>
        </Table.Td>
      )}
    </Table.Tr>
  );
}

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
  const [search, setSearch] = useState("");
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
  if (relations.isPending) {
    return <Waiting />;
  }
  if (relations.isError) {
    return <Problem error={relations.error} />;
  }
  const wanted = search.trim().toLowerCase();
  const found = relations.data.filter(
    ({ outward, name, relation }) => (direction === "BOTH" || outward === (direction === "FROM")) && `${name} ${relation.type}`.toLowerCase().includes(wanted),
  );
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
        <TextInput aria-label={t("Search")} placeholder={t("Search")} value={search} onChange={(event) => setSearch(event.currentTarget.value)} />
        <Text size="sm" role="status">{plural(found.length, "{n} relation", "{n} relations")}</Text>
      </Group>
      {found.length === 0 ? (
        <EmptyState>{t(relations.data.length === 0 ? "No relations. A relation tells what belongs together, such as a building and its devices." : "Nothing matches the search.")}</EmptyState>
      ) : (
        <Flow>
          <Table aria-label={t("Relations")} highlightOnHover>
            <Table.Thead>
              <Table.Tr>
                {["Direction", "Type", "Kind", "Entity", "Additional information"].map((label) => (
                  <Table.Th key={label}>{t(label)}</Table.Th>
                ))}
                {mayWrite && <Table.Th>{t("Actions")}</Table.Th>}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {found.slice(0, SHOWN).map((one) => (
                <RelationRow
                  key={`${one.relation.from.id} ${one.relation.type} ${one.relation.to.id} ${one.outward}`}
                  one={one}
                  mayWrite={mayWrite}
                  onEdit={() => setEdited(one)}
                  onRemove={() => void remove(one).catch(notify.error)}
                />
              ))}
            </Table.Tbody>
          </Table>
        </Flow>
      )}
      {found.length > SHOWN && <Text size="sm">{t("The first {n} are shown; the search finds the others.", { n: SHOWN })}</Text>}
      <RelationDrawer here={id} edited={edited} close={() => setEdited(undefined)} changed={refresh} />
    </>
  );
}
