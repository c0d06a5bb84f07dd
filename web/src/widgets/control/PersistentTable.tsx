// The commands that the server keeps for a device: how each stands, sending more, taking back what has not gone yet.

import { Button, Code, Modal, Select, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { EntityId } from "@/api/types";
import { useSession } from "@/app/session";
import { list, object, text, type Json } from "@/dashboard/model";
import { formatTime, t } from "@/i18n";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { EmptyState, notify } from "@/ui/feedback";
import { FieldsForm, type FormField, type FormValues } from "@/ui/FieldsForm";
import { wordsOf } from "@/ui/form/values";
import type { WidgetProps } from "../registry";
import { COLUMNS } from "./olderSettings";
import type { Setter } from "./settings";
import { lockOf, type Target } from "./useControl";
import classes from "../widgets.module.css";

interface StoredCommand {
  id: EntityId;
  createdTime: number;
  expirationTime: number;
  status: string;
  request: Json;
  response: unknown;
  additionalInfo: unknown;
}

const STATUSES = ["QUEUED", "SENT", "DELIVERED", "SUCCESSFUL", "TIMEOUT", "EXPIRED", "FAILED"];
const REFRESH_MS = 5_000;
const ASKS = { action: "EXECUTE_RPC" } as Setter;

const bodyOf = (row: StoredCommand): Json => object(row.request["body"]);
const isOneWay = (row: StoredCommand): boolean => row.request["oneway"] === true;

const CELLS: Record<(typeof COLUMNS)[number]["value"], (row: StoredCommand) => string> = {
  rpcId: (row) => row.id.id,
  messageType: (row) => t(isOneWay(row) ? "Without an answer" : "With an answer"),
  status: (row) => t(wordsOf(row.status)),
  method: (row) => text(bodyOf(row)["method"]) ?? "",
  createdTime: (row) => formatTime(row.createdTime),
  expirationTime: (row) => formatTime(row.expirationTime),
};

/** Returns the columns that settings want, all of them if they name none. */
export function columnsOf(settings: Json): Column<StoredCommand>[] {
  const wanted = list(settings["displayColumns"]).map(String);
  const shown = COLUMNS.filter(({ value }) => wanted.length === 0 || wanted.includes(value));
  return shown.map(({ value, label }) => ({ key: value, label: t(label), ...(value.endsWith("Time") ? { sortable: true } : {}), text: CELLS[value] }));
}

const FIELDS: FormField[] = [
  { name: "method", label: "Method", required: true },
  { name: "params", label: "Parameters (JSON)", type: "json", initial: {} },
  { name: "twoWay", label: "Wait for the device's answer", type: "boolean", initial: true },
  { name: "minutes", label: "Keep it for (minutes)", type: "number", initial: 10 },
  { name: "retries", label: "Send again, at most (times)", type: "number" },
];

function Details({ row }: { row: StoredCommand }): ReactElement {
  const show = (value: unknown): string => JSON.stringify(value, null, 2);
  return (
    <Stack gap="xs">
      <Text size="sm">{row.id.id}</Text>
      <Text size="sm">{`${t("Status")}: ${t(wordsOf(row.status))}`}</Text>
      <Text size="sm">{t("Command")}</Text>
      <Code block>{show(bodyOf(row))}</Code>
      <Text size="sm">{t("Answer")}</Text>
      <Code block>{row.response === null || row.response === undefined ? t("none yet") : show(row.response)}</Code>
    </Stack>
  );
}

async function remove(rows: StoredCommand[]): Promise<void> {
  for (const row of rows) {
    await api.delete(`/api/rpc/persistent/${row.id.id}`);
  }
}

function Commands({ target, settings, mayDelete }: { target: Target; settings: Json; mayDelete: boolean }): ReactElement {
  const cache = useQueryClient();
  const [status, setStatus] = useState<string | null>(null);
  const [opened, setOpened] = useState<StoredCommand>();
  const [sending, setSending] = useState(false);
  const path = `/api/rpc/persistent/device/${target.id.id}`;
  const refresh = (): Promise<void> => cache.invalidateQueries({ queryKey: ["list", path] });
  const send = async ({ method, params, twoWay, minutes, retries }: FormValues): Promise<void> => {
    const timeout = Math.max(1, Number(minutes) || 10) * 60_000;
    await api.post(`/api/rpc/${twoWay === true ? "twoway" : "oneway"}/${target.id.id}`, {
      method, params, persistent: true, timeout, ...(typeof retries === "number" ? { retries } : {}),
    });
    setSending(false);
    await refresh();
  };
  const take = async (rows: StoredCommand[], done: () => void): Promise<void> => {
    try {
      await remove(rows);
      done();
    } catch (error) {
      notify.error(error);
    }
    await refresh();
  };
  return (
    <div className={classes["scroll"]}>
      <DataTable<StoredCommand>
        label={t("Stored commands")}
        path={path}
        columns={columnsOf(settings)}
        rowKey={(row) => row.id.id}
        sort={{ key: "createdTime", order: settings["defaultSortOrder"] === "createdTime" ? "ASC" : "DESC" }}
        query={status === null ? {} : { rpcStatus: status }}
        every={REFRESH_MS}
        searchable={false}
        {...(settings["displayDetails"] === false ? {} : { onOpen: setOpened })}
        {...(mayDelete && settings["allowDelete"] !== false
          ? { bulk: (rows: StoredCommand[], done: () => void) => <Button variant="default" onClick={() => void take(rows, done)}>{t("Delete")}</Button> }
          : {})}
        filters={
          <>
            {settings["enableFilter"] !== false && <Select aria-label={t("Status")} w={140} clearable clearButtonProps={{ "aria-label": t("Clear the choice") }} placeholder={t("any status")} data={STATUSES.map((value) => ({ value, label: t(wordsOf(value)) }))} value={status} onChange={setStatus} />}
            {settings["allowSendRequest"] !== false && (
              <Button variant="default" onClick={() => setSending(true)}>
                {t("Send a command")}
              </Button>
            )}
          </>
        }
      />
      <Modal opened={opened !== undefined} onClose={() => setOpened(undefined)} title={t("Stored command")} closeButtonProps={{ "aria-label": t("Close") }}>
        {opened !== undefined && <Details row={opened} />}
      </Modal>
      <Modal opened={sending} onClose={() => setSending(false)} title={t("A command for {name}", { name: target.name })} closeButtonProps={{ "aria-label": t("Close") }}>
        <FieldsForm fields={FIELDS} values={{}} action="Send" onSave={send} onCancel={() => setSending(false)} />
      </Modal>
    </div>
  );
}

export default function PersistentTable({ widget, entities }: WidgetProps): ReactElement {
  const { authority } = useSession();
  const first = entities[0];
  const target = first === undefined ? undefined : { id: first.id, name: first.name };
  const locked = lockOf(target, ASKS);
  return target === undefined || locked !== undefined ? <EmptyState>{locked}</EmptyState> : <Commands target={target} settings={widget.settings} mayDelete={authority === "TENANT_ADMIN"} />;
}
