// The customers who see dashboards: several at once are added to one or many dashboards, or taken from them.

import { Button, Group, MultiSelect, Pill, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId, PageData } from "@/api/types";
import { t } from "@/i18n";
import { nameOf } from "./kinds";

const OFFERED = 50;

interface Assigned {
  customerId: EntityId;
  title?: string;
  public?: boolean;
}

const assignedOf = (row: Entity): Assigned[] => (Array.isArray(row["assignedCustomers"]) ? (row["assignedCustomers"] as Assigned[]) : []);

interface Props {
  rows: readonly Entity[];
  busy: boolean;
  run: (act: (row: Entity) => Promise<unknown>) => void;
}

/** Who sees a dashboard, each with a button that takes it back. */
function SeenBy({ row, busy, run }: { row: Entity } & Omit<Props, "rows">): ReactElement {
  const assigned = assignedOf(row);
  return (
    <div>
      <Text size="sm" fw={500}>
        {t("Who sees it now")}
      </Text>
      {assigned.length === 0 && <Text size="sm">{t("No customer")}</Text>}
      <Group gap={4}>
        {assigned.map(({ customerId, title, public: isPublic }) => {
          const name = isPublic === true ? t("Public") : (title ?? customerId.id);
          return (
            <Pill
              key={customerId.id}
              withRemoveButton
              disabled={busy}
              removeButtonProps={{ "aria-label": t("Take it from {name}", { name }), "aria-hidden": false, tabIndex: 0 }}
              onRemove={() => run((one) => api.post(`/api/dashboard/${one.id.id}/customers/remove`, [customerId.id]))}
            >
              {name}
            </Pill>
          );
        })}
      </Group>
    </div>
  );
}

export function DashboardCustomers({ rows, busy, run }: Props): ReactElement {
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const [chosen, setChosen] = useState<{ value: string; label: string }[]>([]);
  const found = useQuery({
    queryKey: ["customers by title", wanted],
    queryFn: () => api.get<PageData<Entity>>("/api/customers", { pageSize: OFFERED, page: 0, textSearch: wanted, sortProperty: "title", sortOrder: "ASC" }),
  });
  const offered = (found.data?.data ?? []).map((row) => ({ value: row.id.id, label: nameOf(row) }));
  const data = [...chosen, ...offered.filter(({ value }) => !chosen.some((one) => one.value === value))];
  const ids = chosen.map(({ value }) => value);
  const [row] = rows;
  const canTake = rows.some((one) => assignedOf(one).length > 0);
  const isPublic = (one: Entity): boolean => assignedOf(one).some((customer) => customer.public === true);
  return (
    <Stack>
      {rows.length === 1 && row !== undefined && <SeenBy row={row} busy={busy} run={run} />}
      <MultiSelect
        label={t("Customers")}
        searchable
        clearable
        clearButtonProps={{ "aria-label": t("Clear the choice") }}
        nothingFoundMessage={t("Nothing matches the search.")}
        filter={({ options }) => options}
        data={data}
        value={ids}
        searchValue={search}
        onSearchChange={setSearch}
        onChange={(next) => setChosen(next.flatMap((value) => data.find((one) => one.value === value) ?? []))}
      />
      <Group>
        <Button disabled={ids.length === 0 || busy} onClick={() => run((one) => api.post(`/api/dashboard/${one.id.id}/customers/add`, ids))}>
          {t("Let these customers see it")}
        </Button>
        <Button variant="default" disabled={ids.length === 0 || busy || !canTake} onClick={() => run((one) => api.post(`/api/dashboard/${one.id.id}/customers/remove`, ids))}>
          {t("Take it from these customers")}
        </Button>
      </Group>
      <Group>
        <Button variant="default" disabled={busy || rows.every(isPublic)} onClick={() => run((one) => api.post(`/api/customer/public/dashboard/${one.id.id}`))}>
          {t("Make public")}
        </Button>
        <Button variant="default" disabled={busy || !rows.some(isPublic)} onClick={() => run(async (one) => (isPublic(one) ? api.delete(`/api/customer/public/dashboard/${one.id.id}`) : undefined))}>
          {t("Make private")}
        </Button>
        <Button variant="default" disabled={busy || !canTake} onClick={() => run((one) => api.post(`/api/dashboard/${one.id.id}/customers`, []))}>
          {t("Take back from all")}
        </Button>
      </Group>
    </Stack>
  );
}
