// The form of an alias: what its kind asks for, and what it finds at present.

import { ActionIcon, Alert, Autocomplete, Button, Checkbox, Fieldset, Group, List, MultiSelect, NumberInput, Select, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import { ALIAS_FORMS, changeKind, ENTITY_TYPES, missingIn, type AliasForm as Form, type AliasPart } from "@/dashboard/edit/aliasForms";
import { findQuery, readFound } from "@/dashboard/find";
import { list, number, object, text, type Alias, type Json } from "@/dashboard/model";
import { resolveAlias } from "@/dashboard/state";
import { t } from "@/i18n";
import { messageOf } from "@/ui/feedback";
import { SeveralEntities } from "@/ui/form/SeveralEntities";
import { EntityTypeSelect, OneEntity, TypesField } from "./entityFields";

const RELATIONS = ["Contains", "Manages"];
const SHOWN = 5;

interface PartProps {
  filter: Json;
  form: Form;
  change: (fields: Json) => void;
}

function StateFields({ filter, change }: PartProps): ReactElement {
  return (
    <>
      <TextInput
        label={t("Name of the parameter")}
        description={t("Empty for the entity that the state is about.")}
        value={text(filter["stateEntityParamName"]) ?? ""}
        onChange={(event) => change({ stateEntityParamName: event.currentTarget.value || null })}
      />
      <OneEntity label={t("Without one")} value={filter["defaultStateEntity"]} onChange={(entity) => change({ defaultStateEntity: entity })} />
    </>
  );
}

function RelationFilters({ filter, change }: PartProps): ReactElement {
  const rows = list(filter["filters"]).map(object);
  const put = (filters: Json[]): void => change({ filters });
  return (
    <Stack gap="xs">
      {rows.length === 0 && <Text size="sm">{t("All relations, to entities of all kinds.")}</Text>}
      {rows.map((row, n) => (
        <Fieldset key={n} legend={t("Relation {n}", { n: n + 1 })} p="xs">
          <Group grow align="end">
            <Autocomplete label={t("Type of relation")} placeholder={t("any")} data={RELATIONS} value={text(row["relationType"]) ?? ""} onChange={(relationType) => put(rows.map((one, i) => (i === n ? { ...one, relationType } : one)))} />
            <MultiSelect
              label={t("Kinds of entities")}
              placeholder={t("any")}
              data={ENTITY_TYPES.map((one) => ({ value: one.value, label: t(one.label) }))}
              value={list(row["entityTypes"]).map(String)}
              onChange={(entityTypes) => put(rows.map((one, i) => (i === n ? { ...one, entityTypes } : one)))}
            />
          </Group>
          <Group mt="xs" justify="space-between">
            <Checkbox label={t("All but these")} checked={row["negate"] === true} onChange={(event) => put(rows.map((one, i) => (i === n ? { ...one, negate: event.currentTarget.checked } : one)))} />
            <ActionIcon variant="subtle" color="red" aria-label={t("Remove relation {n}", { n: n + 1 })} onClick={() => put(rows.filter((_, i) => i !== n))}>
              ✕
            </ActionIcon>
          </Group>
        </Fieldset>
      ))}
      <Button size="compact-sm" variant="default" w="fit-content" onClick={() => put([...rows, { relationType: "Contains", entityTypes: [] }])}>
        {t("Add a relation")}
      </Button>
    </Stack>
  );
}

const PARTS: Record<AliasPart, (props: PartProps) => ReactElement> = {
  oneEntity: ({ filter, change }) => <OneEntity label={t("Kind of entity")} value={filter["singleEntity"]} onChange={(singleEntity) => change({ singleEntity })} />,
  entityType: ({ filter, change }) => <EntityTypeSelect value={text(filter["entityType"]) ?? "DEVICE"} onChange={(entityType) => change({ entityType, ...(filter["entityList"] === undefined ? {} : { entityList: [] }) })} />,
  entities: ({ filter, change }) => <SeveralEntities entityType={text(filter["entityType"]) ?? "DEVICE"} value={filter["entityList"]} onChange={(entityList) => change({ entityList })} />,
  name: ({ filter, change }) => (
    <TextInput label={t("Name begins with")} description={t("% stands for any text.")} value={text(filter["entityNameFilter"]) ?? ""} onChange={(event) => change({ entityNameFilter: event.currentTarget.value })} />
  ),
  types: ({ filter, form, change }) => <TypesField prefix={form.prefix ?? ""} value={filter[`${form.prefix}Types`]} onChange={(types) => change({ [`${form.prefix}Types`]: types })} />,
  typeName: ({ filter, form, change }) => (
    <TextInput label={t("Name begins with")} description={t("% stands for any text.")} value={text(filter[`${form.prefix}NameFilter`]) ?? ""} onChange={(event) => change({ [`${form.prefix}NameFilter`]: event.currentTarget.value })} />
  ),
  state: (props) => <StateFields {...props} />,
  root: (props) => (
    <>
      <Switch label={t("Begin at the entity that the state was opened for")} checked={props.filter["rootStateEntity"] === true} onChange={(event) => props.change({ rootStateEntity: event.currentTarget.checked })} />
      {props.filter["rootStateEntity"] === true ? (
        <StateFields {...props} />
      ) : (
        <OneEntity label={t("Begin at")} value={props.filter["rootEntity"]} onChange={(rootEntity) => props.change({ rootEntity })} />
      )}
    </>
  ),
  levels: ({ filter, change }) => (
    <>
      <Group grow align="end">
        <Select
          label={t("Direction")}
          allowDeselect={false}
          data={[{ value: "FROM", label: t("From it to others") }, { value: "TO", label: t("From others to it") }]}
          value={text(filter["direction"]) ?? "FROM"}
          onChange={(direction) => change({ direction })}
        />
        <NumberInput label={t("Levels")} placeholder={t("no limit")} min={1} max={100} value={number(filter["maxLevel"]) ?? ""} onChange={(next) => change({ maxLevel: next === "" ? null : Number(next) })} />
      </Group>
      <Switch label={t("The last level alone")} checked={filter["fetchLastLevelOnly"] === true} onChange={(event) => change({ fetchLastLevelOnly: event.currentTarget.checked })} />
    </>
  ),
  relation: ({ filter, change }) => <Autocomplete label={t("Type of relation")} placeholder={t("any")} data={RELATIONS} value={text(filter["relationType"]) ?? ""} onChange={(relationType) => change({ relationType })} />,
  relations: (props) => <RelationFilters {...props} />,
  searchTypes: ({ filter, form, change }) => <TypesField prefix={form.prefix ?? ""} value={filter[`${form.prefix}Types`]} onChange={(types) => change({ [`${form.prefix}Types`]: types })} />,
};

/** What a filter finds at present. */
function Preview({ filter }: { filter: Json }): ReactElement {
  const [wanted] = useDebouncedValue(filter, 300);
  const missing = missingIn(wanted);
  const resolved = missing === undefined ? resolveAlias(wanted, {}) : undefined;
  const found = useQuery({
    queryKey: ["preview of alias", resolved],
    enabled: resolved !== undefined,
    retry: false,
    queryFn: async () => readFound(await api.post("/api/entitiesQuery/find", findQuery(resolved ?? {}, SHOWN))),
  });
  if (missing !== undefined) {
    return <Alert color="yellow">{t(missing)}</Alert>;
  }
  if (resolved === undefined) {
    return <Alert>{t("What it finds is known when a state is opened for an entity.")}</Alert>;
  }
  if (found.isError) {
    return <Alert color="red">{messageOf(found.error)}</Alert>;
  }
  const { entities, total } = found.data ?? { entities: [], total: 0 };
  return (
    <Alert aria-live="polite" color={found.isPending || total > 0 ? "teal" : "yellow"} title={found.isPending ? t("Searching") : t("{n} found now", { n: total })}>
      <List size="sm">
        {entities.map((one) => (
          <List.Item key={one.id.id}>
            {one.label} {one.type !== "" && `(${one.type})`}
          </List.Item>
        ))}
        {total > entities.length && <List.Item>…</List.Item>}
      </List>
    </Alert>
  );
}

interface AliasFormProps {
  alias: Alias;
  /** Names of the other aliases. */
  taken: ReadonlySet<string>;
  onChange: (name: string, filter: Json) => void;
}

export function AliasForm({ alias, taken, onChange }: AliasFormProps): ReactElement {
  const { filter } = alias;
  const form = ALIAS_FORMS.find((one) => one.type === filter["type"]);
  const change = (fields: Json): void => onChange(alias.alias, { ...filter, ...fields });
  const groups = [...new Set(ALIAS_FORMS.map((one) => one.group))];
  const data = groups.map((group) => ({ group: t(group), items: ALIAS_FORMS.filter((one) => one.group === group).map((one) => ({ value: one.type, label: t(one.label) })) }));
  return (
    <Stack gap="sm">
      <TextInput label={t("Name")} value={alias.alias} error={taken.has(alias.alias) ? t("Another alias has this name.") : undefined} onChange={(event) => onChange(event.currentTarget.value, filter)} />
      <Select label={t("Stands for")} allowDeselect={false} data={data} value={form?.type ?? null} onChange={(type) => type !== null && onChange(alias.alias, changeKind(filter, type))} />
      {form?.parts.map((part) => {
        const Part = PARTS[part];
        return <Part key={`${form.type} ${part}`} filter={filter} form={form} change={change} />;
      })}
      {form?.many === true && (
        <Switch
          label={t("All that it finds at once")}
          description={t("Otherwise one at a time, which viewers choose above the dashboard.")}
          checked={filter["resolveMultiple"] === true}
          onChange={(event) => change({ resolveMultiple: event.currentTarget.checked })}
        />
      )}
      <Preview filter={filter} />
    </Stack>
  );
}
