// What narrows a table of alarms.

import { Checkbox, MultiSelect, Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { PageData } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { EntityPicker } from "@/ui/form/EntityPicker";
import { SEVERITIES, STATE_LABELS, type Assignee } from "./alarm";
import type { AlarmFilter } from "./filter";

const MINUTE = 60_000;
const TIMES = [
  { value: 60 * MINUTE, label: "last hour" },
  { value: 24 * 60 * MINUTE, label: "last day" },
  { value: 7 * 24 * 60 * MINUTE, label: "last 7 days" },
  { value: 30 * 24 * 60 * MINUTE, label: "last 30 days" },
] as const;

interface FilterProps {
  filter: AlarmFilter;
  change: (filter: AlarmFilter) => void;
  /** Whether alarms of one originator can be chosen. */
  choosesOriginator: boolean;
  /** Whether a time can be chosen. */
  choosesTime?: boolean;
}

function OriginatorPicker({ filter, change }: Pick<FilterProps, "filter" | "change">): ReactElement {
  const { authority, customerId } = useSession();
  const base = authority === "CUSTOMER_USER" ? `/api/customer/${customerId}` : "/api/tenant";
  const lists = [
    { value: `${base}/deviceInfos`, label: "Device" },
    { value: `${base}/assetInfos`, label: "Asset" },
    { value: `${base}/entityViewInfos`, label: "Entity view" },
    ...(authority === "CUSTOMER_USER" ? [] : [{ value: "/api/customers", label: "Customer" }]),
  ];
  const [list, setList] = useState(lists[0]?.value ?? "");
  return (
    <>
      <Select size="xs" w={120} label={t("Kind of originator")} allowDeselect={false} data={lists.map((one) => ({ value: one.value, label: t(one.label) }))} value={list} onChange={(value) => setList(value ?? list)} />
      <EntityPicker label={t("Originator")} list={list} value={filter.originator ?? null} onChange={(originator) => change({ ...filter, originator: originator === null || typeof originator === "string" ? undefined : originator })} />
      {filter.originator !== undefined && <Checkbox size="xs" label={t("Also alarms that propagate to it")} checked={filter.propagated} onChange={(event) => change({ ...filter, propagated: event.currentTarget.checked })} />}
    </>
  );
}

/** The states and the search, which are always shown, and the rest on demand. */
export function AlarmFilters({ filter, change, choosesOriginator, choosesTime = true }: FilterProps): ReactElement {
  const { user, authority, customerId } = useSession();
  const types = useQuery({ queryKey: ["alarm types"], queryFn: () => api.get<PageData<{ type?: string } | string>>("/api/alarm/types", { pageSize: 500, page: 0, sortOrder: "ASC" }) });
  const users = useQuery({
    queryKey: ["assignees", authority],
    queryFn: () => api.get<PageData<Assignee>>(authority === "CUSTOMER_USER" ? `/api/customer/${customerId}/users` : "/api/users", { pageSize: 200, page: 0, sortProperty: "email", sortOrder: "ASC" }).catch(() => undefined),
  });
  const known = (types.data?.data ?? []).flatMap((type) => (typeof type === "string" ? type : (type.type ?? [])));
  const others = (users.data?.data ?? []).filter((one) => one.id.id !== user.id.id);
  const clear = { "aria-label": t("Clear the choice") };
  return (
    <>
      <MultiSelect size="xs" w={200} label={t("Status")} placeholder={filter.states.length === 0 ? t("any") : ""} data={STATE_LABELS.map(({ value, label }) => ({ value, label: t(label) }))} value={filter.states} clearable clearButtonProps={clear} onChange={(states) => change({ ...filter, states })} />
      <MultiSelect size="xs" w={180} label={t("Severity")} placeholder={filter.severities.length === 0 ? t("any") : ""} data={SEVERITIES.map((severity) => ({ value: severity, label: t(severity) }))} value={filter.severities} clearable clearButtonProps={clear} onChange={(severities) => change({ ...filter, severities })} />
      <MultiSelect size="xs" w={180} label={t("Type")} placeholder={filter.types.length === 0 ? t("any") : ""} searchable data={[...new Set([...known, ...filter.types])]} value={filter.types} clearable clearButtonProps={clear} onChange={(chosen) => change({ ...filter, types: chosen })} />
      <Select
        size="xs"
        w={180}
        label={t("Assignee")}
        placeholder={t("anybody")}
        clearable
        searchable
        clearButtonProps={clear}
        data={[{ value: user.id.id, label: t("me") }, ...others.map((one) => ({ value: one.id.id, label: one.email }))]}
        value={filter.assignee ?? null}
        onChange={(assignee) => change({ ...filter, assignee: assignee ?? undefined })}
      />
      {choosesTime && (
        <>
          <Select size="xs" w={140} label={t("Created")} placeholder={t("any time")} clearable clearButtonProps={clear} data={TIMES.map((time) => ({ value: String(time.value), label: t(time.label) }))} value={filter.window === undefined ? null : String(filter.window)} onChange={(value) => change({ ...filter, window: value === null ? undefined : Number(value), from: undefined, to: undefined })} />
          <TextInput size="xs" w={190} type="datetime-local" label={t("From")} value={filter.from ?? ""} onChange={(event) => change({ ...filter, from: event.currentTarget.value || undefined, window: undefined })} />
          <TextInput size="xs" w={190} type="datetime-local" label={t("Until")} value={filter.to ?? ""} onChange={(event) => change({ ...filter, to: event.currentTarget.value || undefined, window: undefined })} />
        </>
      )}
      {choosesOriginator && <OriginatorPicker filter={filter} change={change} />}
    </>
  );
}
