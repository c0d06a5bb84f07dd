// The home of whoever has devices: what is online, what alarms, what changed, what to do next.

import { SimpleGrid, Stack, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { SeverityChip } from "@/alarms/SeverityChip";
import type { EntityId } from "@/api/types";
import { useSession } from "@/app/session";
import { pathOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { Ago, TextLink } from "@/ui/feedback";
import { wordsOf } from "@/ui/form/values";
import { loadable } from "@/ui/loadable";
import { Figure, Newest, NewestOfKind, NextSteps, Panel, Soft, useShortest, useTotal } from "./parts";

const Activity = loadable(() => import("./Activity"));
const LinkList = loadable(() => import("@/widgets/home/LinkList"));

interface Alarm {
  id: EntityId;
  createdTime: number;
  type: string;
  severity: string;
  originator: EntityId;
  originatorName?: string | null;
}

interface Change {
  id: EntityId;
  createdTime: number;
  entityId?: EntityId;
  entityName?: string | null;
  userName?: string | null;
  actionType: string;
}

/** Log-ins and the like change nothing. */
const CHANGES = "ADDED,UPDATED,DELETED,ATTRIBUTES_UPDATED,ATTRIBUTES_DELETED,CREDENTIALS_UPDATED,ASSIGNED_TO_CUSTOMER,UNASSIGNED_FROM_CUSTOMER,RELATION_ADD_OR_UPDATE";

function ActiveAlarms(): ReactElement | null {
  return (
    <Newest<Alarm>
      title="Active alarms"
      path="/api/v2/alarms"
      query={{ statusList: "ACTIVE" }}
      empty="No alarms."
      rowKey={(alarm) => alarm.id.id}
      row={(alarm) => (
        <>
          <span>
            <SeverityChip severity={alarm.severity} />{" "}
            <TextLink to={pathOf(alarm.originator) ?? "/alarms/alarms"}>{alarm.originatorName ?? alarm.originator.id}</TextLink>
            <Text span size="sm">{` ${alarm.type}`}</Text>
          </span>
          <Soft><Ago ts={alarm.createdTime} /></Soft>
        </>
      )}
    />
  );
}

/** What people have changed, of which only administrators may read. */
function Changes(): ReactElement | null {
  return (
    <Newest<Change>
      title="What changed"
      path="/api/audit/logs"
      query={{ actionTypes: CHANGES }}
      empty="Nothing is here yet."
      rowKey={(change) => change.id.id}
      row={({ entityId, entityName, actionType, userName, createdTime }) => {
        const path = entityId === undefined || actionType === "DELETED" ? undefined : pathOf(entityId);
        const name = entityName ?? "";
        return (
          <>
            <span>
              {path === undefined ? name : <TextLink to={path}>{name}</TextLink>}
              <Text span size="sm">{` ${t(wordsOf(actionType)).toLowerCase()} · ${userName ?? ""}`}</Text>
            </span>
            <Soft><Ago ts={createdTime} /></Soft>
          </>
        );
      }}
    />
  );
}

function TenantSteps({ devices, online }: { devices: number | undefined; online: number | undefined }): ReactElement | null {
  const dashboards = useTotal("/api/tenant/dashboards");
  const rules = useTotal("/api/alarm/rules");
  const customers = useTotal("/api/customers");
  const newest = useShortest("/api/tenant/deviceInfos", { sortProperty: "createdTime", sortOrder: "DESC" })?.data[0];
  const some = (n: number | undefined): boolean | undefined => (n === undefined ? undefined : n > 0);
  return (
    <NextSteps
      steps={[
        { label: "Add a device", to: "/entities/devices?add=true", done: some(devices) },
        { label: "Let a device send its first value", to: newest === undefined ? "/entities/devices" : `${pathOf(newest.id)}?tab=connect`, done: some(online) },
        { label: "Build a dashboard", to: "/dashboards?add=true", done: some(dashboards) },
        { label: "Be told when a value is wrong: add an alarm rule", to: "/alarms/alarm-rules?add=true", done: some(rules) },
        { label: "Let a customer see their devices", to: "/customers?add=true", done: some(customers) },
      ]}
    />
  );
}

export default function ThingsHome(): ReactElement {
  const { authority, customerId } = useSession();
  const isTenant = authority === "TENANT_ADMIN";
  const list = isTenant ? "/api/tenant/deviceInfos" : `/api/customer/${customerId}/deviceInfos`;
  const devices = useTotal(list);
  const online = useTotal(list, { active: true });
  return (
    <Stack>
      <SimpleGrid cols={{ base: 2, md: 4 }}>
        <Figure label="Devices" value={devices} to="/entities/devices" />
        <Figure label="Devices online" value={online} to="/entities/devices?active=true" />
        <Figure label="Active alarms" value={useTotal("/api/v2/alarms", { statusList: "ACTIVE" })} to="/alarms/alarms" bad />
        <Figure label="Critical alarms" value={useTotal("/api/v2/alarms", { statusList: "ACTIVE", severityList: "CRITICAL" })} to="/alarms/alarms?severity=CRITICAL" bad />
      </SimpleGrid>
      {isTenant && <TenantSteps devices={devices} online={online} />}
      {isTenant && <Activity />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <ActiveAlarms />
        {isTenant ? <Changes /> : <NewestOfKind title="Dashboards" type="DASHBOARD" />}
        <NewestOfKind title="Newest devices" type="DEVICE" />
        {isTenant && <NewestOfKind title="Newest dashboards" type="DASHBOARD" />}
        {isTenant && (
          <Panel title="Quick links">
            <LinkList columns={2} />
          </Panel>
        )}
      </SimpleGrid>
    </Stack>
  );
}
