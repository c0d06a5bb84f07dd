// Chooses several entities of a kind by searching for them on the server.

import { MultiSelect } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { ENTITY_TYPES } from "@/dashboard/edit/aliasForms";
import { findQuery, readFound } from "@/dashboard/find";
import { list } from "@/dashboard/json";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { nothingFound } from "./nothingFound";

interface Props {
  label?: string;
  entityType: string;
  /** Their plain ids. */
  value: unknown;
  onChange: (ids: string[]) => void;
}

/** Several entities of a kind. */
export function SeveralEntities({ label = "Entities", entityType, value, onChange }: Props): ReactElement {
  const ids = list(value).map(String);
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const path = ENTITY_TYPES.find((one) => one.value === entityType)?.list ?? "";
  const found = useQuery({
    queryKey: ["picker", path, wanted],
    queryFn: () => api.get<PageData<Entity>>(path, { pageSize: 50, page: 0, textSearch: wanted }),
  });
  const own = useQuery({
    queryKey: ["entities of list", entityType, ids],
    enabled: ids.length > 0,
    queryFn: async () => readFound(await api.post("/api/entitiesQuery/find", findQuery({ type: "entityList", entityType, entityList: ids }, 1_000))),
  });
  const names = new Map([
    ...ids.map((id): [string, string] => [id, own.isPending ? "…" : t("deleted: {id}", { id })]),
    ...(own.data?.entities ?? []).map((one): [string, string] => [one.id.id, one.label]),
    ...(found.data?.data ?? []).map((one): [string, string] => [one.id.id, nameOf(one)]),
  ]);
  return (
    <MultiSelect
      label={t(label)}
      searchable
      filter={({ options }) => options}
      nothingFoundMessage={nothingFound(found)}
      data={[...names].map(([id, label]) => ({ value: id, label }))}
      value={ids}
      searchValue={search}
      onSearchChange={setSearch}
      onChange={onChange}
    />
  );
}
