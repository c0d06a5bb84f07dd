// Chooses the user who takes care of an alarm, among those who may.

import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { PageData } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { nothingFound } from "@/ui/form/nothingFound";
import { assigneeName, type Alarm, type Assignee } from "./alarm";

const OFFERED = 50;

export function AssigneePicker({ alarm, value, onChange }: { alarm: Alarm; value: string | undefined; onChange: (user: string | undefined) => void }): ReactElement {
  const { user } = useSession();
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed, 200);
  const found = useQuery({
    queryKey: ["assignable", alarm.id.id, search],
    queryFn: () => api.get<PageData<Assignee>>(`/api/users/assign/${alarm.id.id}`, { pageSize: OFFERED, page: 0, textSearch: search, sortProperty: "email", sortOrder: "ASC" }),
  });
  const data = (found.data?.data ?? []).map((one) => ({ value: one.id.id, label: one.id.id === user.id.id ? t("{email} (you)", { email: one.email }) : one.email }));
  if (value !== undefined && !data.some((one) => one.value === value)) {
    data.unshift({ value, label: value === alarm.assigneeId?.id ? assigneeName(alarm) : value });
  }
  return (
    <Select
      label={t("Assignee")}
      placeholder={t("nobody")}
      searchable
      clearable
      clearButtonProps={{ "aria-label": t("Clear the choice") }}
      filter={({ options }) => options}
      nothingFoundMessage={nothingFound(found)}
      data={data}
      value={value ?? null}
      onSearchChange={setTyped}
      onChange={(next) => onChange(next ?? undefined)}
    />
  );
}
