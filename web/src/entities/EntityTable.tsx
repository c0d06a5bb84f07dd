// The table of entities of a kind, with its filters and what may be done to many at once.

import { Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { DataTable } from "@/ui/list/DataTable";
import { useListState } from "@/ui/list/state";
import type { GridSort } from "@/ui/grid/sorting";
import { TextLink } from "@/ui/feedback";
import { nothingFound } from "@/ui/form/nothingFound";
import { AssignDialog } from "./AssignDialog";
import { BulkDelete } from "./BulkDelete";
import { TARGET, TARGET_KIND } from "./columns";
import { drawn } from "./EntityFacts";
import { mayDelete, nameOf, type EntityKind, type ListFilter } from "./kinds";

function FilterInput({ filter, value, change }: { filter: ListFilter; value: string; change: (value: string) => void }): ReactElement {
  const listed = useQuery({
    queryKey: ["filter", filter.list],
    enabled: filter.list !== undefined,
    queryFn: () => api.get<PageData<Entity>>(filter.list ?? "", { pageSize: 200, page: 0, sortProperty: "name", sortOrder: "ASC" }),
  });
  const data = filter.options?.map(({ value: own, label }) => ({ value: own, label: t(label) })) ?? listed.data?.data.map((row) => ({ value: row.id.id, label: nameOf(row) })) ?? [];
  return (
    <Select
      w={170}
      aria-label={t(filter.label)}
      placeholder={t(filter.label)}
      clearable
      searchable
      {...(filter.list === undefined ? {} : { nothingFoundMessage: nothingFound(listed) })}
      clearButtonProps={{ "aria-label": t("Clear the choice") }}
      data={data}
      value={value === "" ? null : value}
      onChange={(next) => change(next ?? "")}
    />
  );
}

/** An empty list says what its entities are good for. Those who may not add any are told who can. */
function Nothing({ kind, mayWrite }: { kind: EntityKind; mayWrite: boolean }): ReactElement {
  return (
    <Stack component="span" gap={4}>
      <Text span fw={600} c="var(--mantine-color-text)">
        {t("Nothing is here yet.")}
      </Text>
      <span>{[kind.hint, mayWrite ? kind.help : "Your administrator adds and assigns them."].flatMap((text) => (text === undefined ? [] : t(text))).join(" ")}</span>
    </Stack>
  );
}

interface EntityTableProps {
  kind: EntityKind;
  path: string;
  mayWrite: boolean;
  label?: string;
  /** Whether the list is a screen of its own, so that the address is its to write. */
  isScreen?: boolean;
  /** Whether all of them are for the same entity, so that nobody need be told for which. */
  ofOneTarget?: boolean;
}

export function EntityTable({ kind, path, mayWrite, label, isScreen = false, ofOneTarget = false }: EntityTableProps): ReactElement {
  const { authority } = useSession();
  const [, go] = useLocation();
  const filters = useMemo(() => (ofOneTarget ? [] : (kind.filters ?? [])).filter((filter) => !path.includes(`${filter.name}=`)), [kind, path, ofOneTarget]);
  const filterNames = useMemo(() => filters.map((filter) => filter.name), [filters]);
  const sort = useMemo((): GridSort => ({ key: kind.sortBy ?? "createdTime", order: kind.sortBy === undefined ? "DESC" : "ASC" }), [kind]);
  const control = useListState(sort, filterNames, isScreen);
  const columns = useMemo(() => {
    const [first, ...others] = kind.columns.filter((column) => !ofOneTarget || (column !== TARGET && column !== TARGET_KIND));
    return first === undefined ? [] : [{ ...first, hideable: false, show: (row: Entity) => <TextLink to={`${kind.path}/${row.id.id}`}>{first.text(row)}</TextLink> }, ...others.map((other) => drawn(other, authority))];
  }, [kind, authority, ofOneTarget]);
  return (
    <DataTable<Entity>
      label={label ?? t(kind.plural)}
      path={path}
      query={control.state.filters}
      columns={columns}
      rowKey={(row) => row.id.id}
      sort={sort}
      name={kind.type}
      control={control}
      filterNames={filterNames}
      {...(kind.hint === undefined || !isScreen ? {} : { whenEmpty: <Nothing kind={kind} mayWrite={mayWrite} /> })}
      onOpen={(row) => go(`${kind.path}/${row.id.id}`)}
      filters={filters.map((filter) => (
        <FilterInput
          key={filter.name}
          filter={filter}
          value={control.state.filters[filter.name] ?? ""}
          change={(value) => control.change({ filters: { ...control.state.filters, [filter.name]: value } })}
        />
      ))}
      {...(mayWrite
        ? {
            bulk: (rows: Entity[], done: () => void) => (
              <>
                {kind.assign !== undefined && <AssignDialog kind={kind} rows={rows} done={done} />}
                <BulkDelete kind={kind} rows={rows.filter((row) => mayDelete(kind, row, authority))} done={done} />
              </>
            ),
          }
        : {})}
    />
  );
}
