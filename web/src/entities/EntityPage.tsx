// The one page for any entity: its tabs are declared by its kind.

import { Badge, Breadcrumbs, Button, Group, Modal, Tabs, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, type ReactElement } from "react";
import { useLocation, useSearchParams } from "wouter";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { menuFor } from "@/app/menu";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { notify, Problem, TextLink, Waiting } from "@/ui/feedback";
import { valueAt } from "@/ui/form/values";
import { useThingTitle } from "@/ui/pageTitle";
import { AddDrawer } from "./AddDrawer";
import { hasTarget } from "./columns";
import { EntityActions } from "./EntityActions";
import { EntityFacts, useInfo } from "./EntityFacts";
import { EntityForm } from "./EntityForm";
import { EntityTable } from "./EntityTable";
import { EventsTab } from "./EventsTab";
import { FieldImportButton } from "./fields/FieldImportButton";
import { KINDS, mayChange, mayDelete, nameOf, type EntityKind, type EntityTab, type RelatedList } from "./kinds";
import { AuditTab } from "./RecordTabs";
import { RelationsTab } from "./RelationsTab";
import { CommandsTab, ConnectTab } from "./DeviceTabs";
import { AttributesTab, TelemetryTab } from "./ValueTabs";

const BundleTab = lazy(() => import("@/screens/widgets/BundleTab"));
const ReprocessTab = lazy(() => import("./fields/ReprocessTab"));
const AutomaticTab = lazy(() => import("@/screens/dashboard/AutomaticTab"));
const AlarmCentre = lazy(() => import("@/alarms/AlarmCentre").then(({ AlarmCentre: Centre }) => ({ default: Centre })));

const LABELS: Record<EntityTab, string> = {
  details: "Details",
  telemetry: "Latest telemetry",
  dashboard: "Dashboard",
  attributes: "Attributes",
  alarms: "Alarms",
  relations: "Relations",
  commands: "Commands",
  connect: "Connect",
  audit: "Audit log",
  events: "Events",
  calculatedFields: "Calculated fields",
  alarmRules: "Alarm rules",
  reprocess: "Reprocess",
  widgets: "Widgets",
};

/** Details can be changed in place by those who may. */
function DetailsTab({ kind, entity }: { kind: EntityKind; entity: Entity }): ReactElement {
  const { authority } = useSession();
  const cache = useQueryClient();
  const shown = useInfo(kind, entity);
  const description = valueAt(entity, "additionalInfo.description");
  if (mayChange(kind, entity, authority)) {
    return (
      <EntityForm
        kind={kind}
        entity={entity}
        onSaved={async () => {
          notify.ok(t("Saved"));
          await cache.invalidateQueries({ queryKey: ["entity", entity.id.id] });
        }}
      />
    );
  }
  return (
    <dl>
      {kind.columns.map((column) => (
        <div key={column.key}>
          <dt>
            <Text size="sm">{t(column.label)}</Text>
          </dt>
          <dd>{column.text(shown) || "–"}</dd>
        </div>
      ))}
      {typeof description === "string" && description !== "" && (
        <div>
          <dt>
            <Text size="sm">{t("Description")}</Text>
          </dt>
          <dd style={{ whiteSpace: "pre-wrap" }}>{description}</dd>
        </div>
      )}
    </dl>
  );
}

function DeleteButton({ kind, entity }: { kind: EntityKind; entity: Entity }): ReactElement {
  const [asked, { open, close }] = useDisclosure(false);
  const [, go] = useLocation();
  const cache = useQueryClient();
  const remove = async (): Promise<void> => {
    try {
      await api.delete(`${kind.one}/${entity.id.id}`);
      await cache.invalidateQueries({ queryKey: ["list"] });
      notify.ok(t("{name} is deleted", { name: nameOf(entity) }));
      go(kind.path);
    } catch (error) {
      close();
      notify.error(error);
    }
  };
  return (
    <>
      <Button variant="light" color="red" onClick={open}>
        {t("Delete")}
      </Button>
      <Modal opened={asked} onClose={close} title={t("Delete {name} for good?", { name: nameOf(entity) })} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{t("Its data goes with it. This can't be undone.")}</Text>
        <Button color="red" onClick={() => void remove()}>
          {t("Delete")}
        </Button>
      </Modal>
    </>
  );
}

function TabBody({ tab, kind, entity }: { tab: EntityTab; kind: EntityKind; entity: Entity }): ReactElement {
  const { authority } = useSession();
  switch (tab) {
    case "details":
      return <DetailsTab kind={kind} entity={entity} />;
    case "telemetry":
      return <TelemetryTab entity={entity} />;
    case "dashboard":
      return <AutomaticTab entity={entity} />;
    case "attributes":
      return <AttributesTab entity={entity} />;
    case "alarms":
      return <AlarmCentre id={entity.id} />;
    case "relations":
      return <RelationsTab id={entity.id} />;
    case "commands":
      return <CommandsTab id={entity.id} />;
    case "connect":
      return <ConnectTab entity={entity} />;
    case "audit":
      return <AuditTab id={entity.id} />;
    case "events":
      return <EventsTab entity={kind.type === "ALARM_RULE" ? { ...entity, id: { ...entity.id, entityType: "CALCULATED_FIELD" } } : entity} />;
    case "widgets":
      return <BundleTab entity={entity} mayWrite={mayChange(kind, entity, authority)} />;
    case "reprocess":
      return <ReprocessTab entity={entity} />;
    case "calculatedFields":
      return <RelatedTab entity={entity} related={fieldsOf("CALCULATED_FIELD", "/api/calculatedField")} />;
    case "alarmRules":
      return <RelatedTab entity={entity} related={fieldsOf("ALARM_RULE", "/api/alarm/rules")} />;
  }
}

/** The calculated fields or alarm rules of an entity, as a list of their own. */
function fieldsOf(type: string, path: string): RelatedList {
  return { type, label: "", list: `${path}/{entityType}/{id}`, preset: (id) => ({ entityId: id, "entityId.entityType": id.entityType }) };
}

function RelatedTab({ entity, related }: { entity: Entity; related: RelatedList }): ReactElement | null {
  const { authority } = useSession();
  const kind = KINDS.find((candidate) => candidate.type === related.type);
  if (kind === undefined) {
    return null;
  }
  const mayWrite = kind.writers.includes(authority);
  const path = related.list.replace("{id}", entity.id.id).replace("{entityType}", entity.id.entityType);
  return (
    <>
      {mayWrite && related.preset !== undefined && (
        <Group mb="sm">
          <AddDrawer kind={kind} preset={related.preset(entity.id)} />
          {hasTarget(kind.type) && <FieldImportButton kind={kind} target={entity.id} />}
        </Group>
      )}
      <EntityTable kind={kind} path={path} mayWrite={mayWrite} ofOneTarget={hasTarget(kind.type)} {...(related.label === "" ? {} : { label: t(related.label) })} />
    </>
  );
}

/** Where the page is: the part of the menu, and the list that it belongs to. */
function Way({ kind }: { kind: EntityKind }): ReactElement {
  const { authority } = useSession();
  const section = menuFor(authority).find(({ items }) => items.some(({ path }) => path === kind.path))?.section;
  return (
    <nav aria-label={t("Way to this page")}>
      <Breadcrumbs>
        {section !== undefined && (
          <Text size="sm" c="var(--soft-text)">
            {t(section)}
          </Text>
        )}
        <TextLink to={kind.path}>{t(kind.plural)}</TextLink>
      </Breadcrumbs>
    </nav>
  );
}

/** Of a row of tabs that is wider than a phone, the chosen one is in view. */
function showIt(tab: HTMLButtonElement | null): void {
  tab?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

export default function EntityPage({ kind, id }: { kind: EntityKind; id: string }): ReactElement {
  const { authority } = useSession();
  const [search, setSearch] = useSearchParams();
  const entity = useQuery({ queryKey: ["entity", id], queryFn: () => api.get<Entity>(`${kind.one}/${id}`) });
  useThingTitle(entity.data === undefined ? undefined : nameOf(entity.data));
  const tabs = kind.tabs.filter((tab) => (tab !== "audit" && tab !== "calculatedFields" && tab !== "alarmRules" && tab !== "events") || authority === "TENANT_ADMIN");
  const related = (kind.related ?? []).filter((one) => KINDS.some((other) => other.type === one.type && (other.writers.includes(authority) || authority in other.list)));
  const wanted = search.get("tab");
  const shownList = related.find((one) => one.type === wanted);
  const tab = tabs.find((candidate) => candidate === wanted) ?? tabs[0] ?? "details";
  const current = shownList?.type ?? tab;
  if (entity.isPending) {
    return <Waiting />;
  }
  if (entity.isError) {
    return <Problem error={entity.error} />;
  }
  return (
    <>
      <Way kind={kind} />
      <Group mb={4} mt="xs">
        <Title order={1} size="h2">
          {nameOf(entity.data)}
        </Title>
        <Badge variant="light">{t(kind.singular)}</Badge>
        <Group ms="auto" gap="xs">
          <EntityActions kind={kind} entity={entity.data} mayWrite={mayChange(kind, entity.data, authority)} />
          {mayDelete(kind, entity.data, authority) && <DeleteButton kind={kind} entity={entity.data} />}
        </Group>
      </Group>
      <EntityFacts kind={kind} entity={entity.data} />
      <Tabs value={current} onChange={(next) => setSearch({ tab: next ?? "details" })} keepMounted={false}>
        <Tabs.List mb="md">
          {tabs.map((name) => (
            <Tabs.Tab key={name} value={name} {...(name === current ? { ref: showIt } : {})}>
              {t(LABELS[name])}
            </Tabs.Tab>
          ))}
          {related.map((one) => (
            <Tabs.Tab key={one.type} value={one.type} {...(one.type === current ? { ref: showIt } : {})}>
              {t(one.label)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={current}>
          <Suspense fallback={<Waiting />}>
            {shownList === undefined ? <TabBody tab={tab} kind={kind} entity={entity.data} /> : <RelatedTab key={shownList.type} entity={entity.data} related={shownList} />}
          </Suspense>
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
