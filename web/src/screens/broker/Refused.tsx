// The clients that were refused last, and why.

import { Drawer, Group, Stack } from "@mantine/core";
import { useState, type ReactElement } from "react";
import type { UnauthorizedClient } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { formatTime, t } from "@/i18n";
import type { FormField } from "@/ui/form/values";
import type { GridSort } from "@/ui/grid/sorting";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { FilterForm } from "@/ui/list/FilterForm";
import { TIME_FILTERS, timesOf } from "@/ui/list/filterValues";
import { useListState } from "@/ui/list/state";
import { BlockButton } from "./Blocking";
import { LIST_EVERY_MS, YES_NO, yesNo } from "./model";
import { AskFirst, AskForMany, Facts } from "./parts";

const COLUMNS: Column<UnauthorizedClient>[] = [
  { key: "clientId", label: "Client ID", px: 220, least: 120, hideable: false, sortable: true, text: (row) => row.clientId },
  { key: "ts", label: "Time", px: 184, sortable: true, text: (row) => formatTime(row.ts), value: (row) => row.ts },
  { key: "ipAddress", label: "IP address", px: 140, yields: 1, sortable: true, text: (row) => row.ipAddress },
  { key: "username", label: "User name", px: 150, least: 90, yields: 2, sortable: true, text: (row) => row.username ?? "" },
  { key: "passwordProvided", label: "With a password", px: 120, yields: 3, sortable: true, text: (row) => yesNo(row.passwordProvided) },
  { key: "tlsUsed", label: "With TLS", px: 100, yields: 4, sortable: true, text: (row) => yesNo(row.tlsUsed) },
  { key: "reason", label: "Reason", px: 300, least: 140, sortable: true, text: (row) => row.reason },
];

const FIELDS: readonly FormField[] = [
  { name: "ip", label: "IP address" },
  { name: "user", label: "User name" },
  { name: "reason", label: "Reason" },
  { name: "password", label: "With a password", type: "select", options: YES_NO },
  { name: "tls", label: "With TLS", type: "select", options: YES_NO },
  ...TIME_FILTERS,
];
const FILTERS = FIELDS.map(({ name }) => name);
const SORT: GridSort = { key: "ts", order: "DESC" };

function RefusedDrawer({ client, onClose }: { client: UnauthorizedClient; onClose: () => void }): ReactElement {
  const { clientId } = client;
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={clientId} closeButtonProps={{ "aria-label": t("Close") }}>
      <Stack>
        <Facts
          facts={[
            [t("Time"), formatTime(client.ts)],
            [t("IP address"), client.ipAddress],
            [t("User name"), client.username ?? ""],
            [t("With a password"), yesNo(client.passwordProvided)],
            [t("With TLS"), yesNo(client.tlsUsed)],
          ]}
        />
        <Facts facts={[[t("Reason"), client.reason]]} />
        <Group gap="xs">
          <BlockButton values={{ type: "CLIENT_ID", value: clientId }} />
          <AskFirst
            text={t("Remove from the list")}
            heading={t("Remove {name} from the list?", { name: clientId })}
            note={t("The client comes back to the list when it is refused again.")}
            told={t("{n} removed", { n: 1 })}
            run={() => ask("DELETE /api/unauthorized/client", { query: { clientId } })}
            onDone={onClose}
          />
        </Group>
      </Stack>
    </Drawer>
  );
}

export function Refused(): ReactElement {
  const [opened, setOpened] = useState<UnauthorizedClient>();
  const control = useListState(SORT, FILTERS, true);
  const { filters } = control.state;
  return (
    <>
      <Group justify="flex-end">
        <AskFirst
          text={t("Clear the list")}
          heading={t("Clear the list of refused clients?")}
          note={t("Clients come back to the list when they are refused again.")}
          told={t("The list is cleared")}
          run={() => ask("DELETE /api/unauthorized/client")}
        />
      </Group>
      <DataTable<UnauthorizedClient>
        label={t("Refused clients")}
        name="BROKER_REFUSED"
        path="/api/unauthorized/client/v2"
        query={{ ...timesOf(filters, undefined, 0), ipAddress: filters["ip"], username: filters["user"], reason: filters["reason"], passwordProvidedList: filters["password"], tlsUsedList: filters["tls"] }}
        every={LIST_EVERY_MS}
        columns={COLUMNS}
        rowKey={(row) => row.clientId}
        sort={SORT}
        control={control}
        filterNames={FILTERS}
        onOpen={setOpened}
        whenEmpty={t("No client was refused lately. If one can't connect and is not here, it has not reached the broker, or it is blocked.")}
        bulk={(rows, done) => (
          <AskForMany
            text={t("Remove {n}", { n: rows.length })}
            heading={t("Remove {n} from the list?", { n: rows.length })}
            note={t("Clients come back to the list when they are refused again.")}
            told={t("{n} removed", { n: rows.length })}
            rows={rows}
            nameOf={({ clientId }) => clientId}
            act={({ clientId }) => ask("DELETE /api/unauthorized/client", { query: { clientId } })}
            done={done}
          />
        )}
        filters={<FilterForm fields={FIELDS} texts={filters} change={(texts) => control.change({ filters: { ...filters, ...texts } })} />}
      />
      {opened !== undefined && <RefusedDrawer client={opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}
