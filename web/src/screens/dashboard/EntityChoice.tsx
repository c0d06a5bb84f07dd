// Chooses the entity of each alias that stands for one entity at a time.

import { Button, Popover, Select, Stack } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { EntityId } from "@/api/types";
import { findQuery, readFound, type FoundPage } from "@/dashboard/find";
import { isChoice, type Choices } from "@/dashboard/aliases";
import type { Alias, Dashboard, Json } from "@/dashboard/model";
import { resolveAlias } from "@/dashboard/state";
import { t } from "@/i18n";
import { nothingFound } from "@/ui/form/nothingFound";

/** More are found by searching. */
const OFFERED = 50;

function AliasSelect({ alias, filter, value, onChange }: { alias: Alias; filter: Json; value: EntityId | undefined; onChange: (entity: EntityId | undefined) => void }): ReactElement {
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const found = useQuery({
    queryKey: ["entities of alias", filter, wanted],
    queryFn: async (): Promise<FoundPage> => readFound(await api.post("/api/entitiesQuery/find", findQuery(filter, OFFERED, wanted))),
  });
  const own = useQuery({
    queryKey: ["entity of alias", value],
    enabled: value !== undefined,
    queryFn: async (): Promise<FoundPage> => readFound(await api.post("/api/entitiesQuery/find", findQuery({ type: "singleEntity", singleEntity: value }, 1))),
  });
  const known = [...(own.data?.entities ?? []), ...(found.data?.entities ?? [])];
  const first = found.data?.entities[0];
  const rows = [...new Map(known.map((one) => [one.id.id, one])).values()];
  return (
    <Select
      label={alias.alias}
      searchable
      clearable={value !== undefined}
      clearButtonProps={{ "aria-label": t("Clear the choice") }}
      placeholder={first === undefined ? t("nothing found") : first.label}
      filter={({ options }) => options}
      nothingFoundMessage={nothingFound(found)}
      comboboxProps={{ withinPortal: false }}
      data={rows.map((one) => ({ value: one.id.id, label: one.label }))}
      value={value?.id ?? null}
      onSearchChange={(text) => setSearch(rows.some((one) => one.label === text) ? "" : text)}
      onChange={(id) => onChange(rows.find((one) => one.id.id === id)?.id)}
    />
  );
}

interface ChoiceProps {
  model: Dashboard;
  params: Json;
  choices: Choices;
  onChange: (choices: Choices) => void;
}

export default function EntityChoice({ model, params, choices, onChange }: ChoiceProps): ReactElement | null {
  const offered = [...model.aliases.values()].filter(isChoice).flatMap((alias) => {
    const filter = resolveAlias(alias.filter, params);
    return filter === undefined ? [] : [{ alias, filter }];
  });
  if (offered.length === 0) {
    return null;
  }
  return (
    <Popover width={280} position="bottom-end" trapFocus shadow="md">
      <Popover.Target>
        <Button variant="default">{t("Entities")}</Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={t("Entities that are shown")}>
        <Stack gap="xs">
          {offered.map(({ alias, filter }) => (
            <AliasSelect
              key={alias.id}
              alias={alias}
              filter={filter}
              value={choices.get(alias.id)}
              onChange={(entity) => {
                const next = new Map(choices);
                next.delete(alias.id);
                onChange(entity === undefined ? next : next.set(alias.id, entity));
              }}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
