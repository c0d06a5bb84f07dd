// Chooses an entity by searching for it on the server.

import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId, PageData } from "@/api/types";
import { nameOf, NULL_ID } from "@/entities/kinds";
import { onePath } from "@/entities/onePath";
import { t } from "@/i18n";
import { nothingFound } from "./nothingFound";

const OFFERED = 50;

interface EntityPickerProps {
  label: string;
  description?: string;
  required?: boolean;
  /** Where entities are listed. */
  list: string;
  value: unknown;
  /** The property that is the value, instead of the id with its type; `id` is the plain id. */
  pick?: string;
  /** What stands before a plain id in the path of one. */
  one?: string;
  onChange: (value: EntityId | string | null) => void;
}

export function EntityPicker({ label, description, required, list, value, pick, one, onChange }: EntityPickerProps): ReactElement {
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const stored = typeof value === "object" && value !== null ? (value as Partial<EntityId>) : {};
  const id = typeof stored.id === "string" && stored.id !== NULL_ID ? (stored as EntityId) : undefined;
  const chosen = pick === undefined ? (id?.id ?? null) : typeof value === "string" && value !== "" ? value : null;
  const ownPath = id !== undefined ? onePath(id) : one !== undefined && chosen !== null ? one + chosen : undefined;
  const own = useQuery({ queryKey: ["picked", ownPath], enabled: ownPath !== undefined, queryFn: () => api.get<Entity>(ownPath ?? "") });
  const [path, query] = list.split("?");
  const found = useQuery({
    queryKey: ["picker", list, wanted],
    // What is offered can be chosen until the next answer is there.
    placeholderData: (before: PageData<Entity> | undefined, query) => (query?.queryKey[1] === list ? before : undefined),
    queryFn: () =>
      api.get<PageData<Entity>>(path ?? list, { ...Object.fromEntries(new URLSearchParams(query)), pageSize: OFFERED, page: 0, textSearch: wanted }),
  });
  const keyOf = (row: Entity): string => (pick === undefined || pick === "id" ? row.id.id : String(row[pick]));
  const rows = found.data?.data ?? [];
  const data = rows.map((row) => ({ value: keyOf(row), label: nameOf(row) }));
  if (chosen !== null && !data.some((one) => one.value === chosen)) {
    data.unshift({ value: chosen, label: own.data === undefined ? (pick === undefined && !own.isError ? "…" : chosen) : nameOf(own.data) });
  }
  return (
    <Select
      label={label}
      {...(description === undefined ? {} : { description })}
      required={required ?? false}
      withAsterisk={required ?? false}
      searchable
      clearable={required !== true}
      clearButtonProps={{ "aria-label": t("Clear the choice") }}
      filter={({ options }) => options}
      nothingFoundMessage={nothingFound(found)}
      value={chosen}
      data={data}
      onSearchChange={setSearch}
      onChange={(next) => {
        const row = rows.find((one) => keyOf(one) === next);
        onChange(next === null ? null : pick !== undefined ? next : (row?.id ?? id ?? null));
      }}
    />
  );
}
