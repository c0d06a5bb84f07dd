// Fields of a node's configuration that are chosen from what there is: chains, queues, entities, keys, message types, severities.

import { Autocomplete, Select, Stack, TagsInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { SEVERITIES } from "@/alarms/alarm";
import { api } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { KINDS } from "@/entities/kinds";
import { t } from "@/i18n";
import { EntityPicker } from "@/ui/form/EntityPicker";
import { TextLink } from "@/ui/feedback";
import { nameOf } from "@/ui/schemaForm/constants";
import { typeOf } from "@/ui/schemaForm/schema";
import type { FieldProps } from "@/ui/schemaForm/SchemaForm";

/** The types of messages that the platform makes; scripts may make others. */
const MESSAGE_TYPES = [
  "POST_TELEMETRY_REQUEST",
  "POST_ATTRIBUTES_REQUEST",
  "TO_SERVER_RPC_REQUEST",
  "RPC_CALL_FROM_SERVER_TO_DEVICE",
  "ACTIVITY_EVENT",
  "INACTIVITY_EVENT",
  "CONNECT_EVENT",
  "DISCONNECT_EVENT",
  "ENTITY_CREATED",
  "ENTITY_UPDATED",
  "ENTITY_DELETED",
  "ENTITY_ASSIGNED",
  "ENTITY_UNASSIGNED",
  "ATTRIBUTES_UPDATED",
  "ATTRIBUTES_DELETED",
  "TIMESERIES_UPDATED",
  "TIMESERIES_DELETED",
  "ALARM",
  "ALARM_ACKNOWLEDGED",
  "ALARM_CLEARED",
  "ALARM_ASSIGNED",
  "ALARM_UNASSIGNED",
  "COMMENT_CREATED",
  "COMMENT_UPDATED",
  "RELATION_ADD_OR_UPDATE",
  "RELATION_DELETED",
  "REST_API_REQUEST",
  "ENTITY_ASSIGNED_FROM_TENANT",
  "ENTITY_ASSIGNED_TO_TENANT",
  "PROVISION_SUCCESS",
  "PROVISION_FAILURE",
];

const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : []);

/** A choice among the tenant's rule chains, or names of its queues. */
export function Picker({ field, path, by }: { field: FieldProps; path: string; by: "id" | "name" }): ReactElement {
  const found = useQuery({ queryKey: ["picker", path], queryFn: () => api.get<PageData<Entity>>(path, { pageSize: 100, page: 0, ...(path === "/api/queues" ? { serviceType: "TB_RULE_ENGINE" } : {}) }) });
  const data = (found.data?.data ?? []).map((one) => ({ value: by === "id" ? one.id.id : (one.name ?? ""), label: one.name ?? one.id.id }));
  const value = typeof field.value === "string" ? field.value : null;
  const missing = value !== null && value !== "" && !data.some((one) => one.value === value) ? [{ value, label: value }] : [];
  return <Select size="xs" label={field.label} searchable clearable clearButtonProps={{ "aria-label": t("Clear the choice") }} data={[...data, ...missing]} value={value} onChange={field.onChange} />;
}

function ChainField(field: FieldProps): ReactElement {
  return (
    <Stack gap={2}>
      <Picker field={field} path="/api/ruleChains" by="id" />
      {typeof field.value === "string" && field.value !== "" && <TextLink to={`/ruleChains/${field.value}`}>{t("Open this chain")}</TextLink>}
    </Stack>
  );
}

/** One text or a list of texts, with what is known offered. */
function Suggested({ field, known }: { field: FieldProps; known: string[] }): ReactElement {
  const common = { size: "xs" as const, label: field.label, ...(field.schema.description === undefined ? {} : { description: t(field.schema.description) }) };
  if (typeOf(field.schema) === "array" || Array.isArray(field.value)) {
    return <TagsInput {...common} data={known} value={textsOf(field.value)} onChange={field.onChange} splitChars={[","]} />;
  }
  return <Autocomplete {...common} data={known} limit={100} value={typeof field.value === "string" ? field.value : ""} onChange={field.onChange} />;
}

/** A severity has its name; where it is a pattern, it is written as one. */
function SeverityField(field: FieldProps): ReactElement {
  const value = typeof field.value === "string" ? field.value : "";
  if (field.siblings["dynamicSeverity"] === true || (value !== "" && !SEVERITIES.some((one) => one === value))) {
    return <Suggested field={field} known={[...SEVERITIES]} />;
  }
  return <Select size="xs" label={field.label} data={SEVERITIES.map((one) => ({ value: one, label: t(nameOf(one)) }))} value={value === "" ? null : value} allowDeselect={false} onChange={field.onChange} />;
}

/** Keys of the tenant's devices are offered; messages may have others. */
function KeyField(field: FieldProps): ReactElement {
  const keys = useQuery({
    queryKey: ["keys of devices"],
    staleTime: 60_000,
    queryFn: async () => {
      const both = await Promise.all((["timeseries", "attributes"] as const).map((what) => api.get<string[]>(`/api/deviceProfile/devices/keys/${what}`)));
      return [...new Set(both.flat())].sort();
    },
  });
  return <Suggested field={field} known={keys.data ?? []} />;
}

function ProfilesField(field: FieldProps): ReactElement {
  const found = useQuery({ queryKey: ["picker", "device profile names"], queryFn: () => api.get<PageData<Entity>>("/api/deviceProfileInfos", { pageSize: 100, page: 0 }) });
  return <Suggested field={field} known={(found.data?.data ?? []).map(({ name }) => name ?? "")} />;
}

/** An entity by its plain id; its type is set in the field beside it. */
function EntityField(field: FieldProps): ReactElement {
  const type = field.siblings["entityType"] ?? field.siblings["originatorType"];
  const kind = KINDS.find((one) => one.type === type);
  const list = kind?.list.TENANT_ADMIN;
  if (kind === undefined || list === undefined) {
    // Such as the node itself, which needs no id.
    return <></>;
  }
  return <EntityPicker label={field.label} list={list} one={`${kind.one}/`} pick="id" value={field.value} onChange={field.onChange} />;
}

/** Returns the field for what a schema hints at; `undefined` where the common ones will do. */
export function nodeField(field: FieldProps): ReactElement | undefined {
  const { siblings, name } = field;
  switch (field.schema["x-editor"]) {
    case "script": {
      const language = siblings["scriptLang"];
      const isOther = (language === "JS" || language === "TBEL") && /(js|tbel)/i.test(name) && /js/i.test(name) !== (language === "JS");
      return isOther ? <></> : undefined;
    }
    case "ruleChainId":
      return <ChainField {...field} />;
    case "queue":
    case "queueName":
      return <Picker field={field} path="/api/queues" by="name" />;
    case "key":
      return <KeyField {...field} />;
    case "messageType":
      return <Suggested field={field} known={MESSAGE_TYPES} />;
    case "deviceProfile":
      return <ProfilesField {...field} />;
    case "severity":
      return <SeverityField {...field} />;
    case "entityId":
      return <EntityField {...field} />;
    default:
      return undefined;
  }
}
