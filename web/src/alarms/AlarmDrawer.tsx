// One alarm: what it is, who takes care of it, what was said and done about it.

import { Button, Code, Drawer, Group, Modal, Stack, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { formatTime, t } from "@/i18n";
import { acknowledge, assignTo, clear, remove, withEach, type AlarmAct, type AlarmRights } from "./actions";
import { Activity } from "./Activity";
import { durationOf, statusText, type Alarm } from "./alarm";
import { AlarmHistory } from "./AlarmHistory";
import { AssigneePicker } from "./AssigneePicker";
import { Originator } from "./columns";
import { SeverityChip } from "./SeverityChip";

const UNITS: [number, string][] = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1_000, "s"]];

/** Returns a length of time in its two largest units. */
export function lengthText(ms: number): string {
  const parts = UNITS.map(([length, unit], n) => ({ unit, count: Math.floor((n === 0 ? ms : ms % (UNITS[n - 1]?.[0] ?? 1)) / length) }));
  const first = parts.findIndex(({ count }) => count > 0);
  return first < 0 ? "0 s" : parts.slice(first, first + 2).filter(({ count }) => count > 0).map(({ count, unit }) => `${count} ${unit}`).join(" ");
}

/** Where an alarm propagates to. */
function propagation(alarm: Alarm): string {
  const types = alarm.propagateRelationTypes ?? [];
  const where = [
    ...(alarm.propagate === true ? [types.length === 0 ? t("related entities") : t("entities related by {types}", { types: types.join(", ") })] : []),
    ...(alarm.propagateToOwner === true ? [t("the owner")] : []),
    ...(alarm.propagateToTenant === true ? [t("the tenant")] : []),
  ];
  return where.length === 0 ? t("nowhere") : where.join(", ");
}

function Facts({ alarm }: { alarm: Alarm }): ReactElement {
  const facts: [string, ReactElement | string][] = [
    ["Originator", <Originator key="originator" alarm={alarm} />],
    ["Severity", <SeverityChip key="severity" severity={alarm.severity} />],
    ["Status", statusText(alarm.status)],
    ["Started", formatTime(alarm.startTs)],
    ["Duration", lengthText(durationOf(alarm, Date.now()))],
    ...(alarm.endTs > alarm.startTs ? [["Last raised", formatTime(alarm.endTs)] as [string, string]] : []),
    ...(alarm.acknowledged ? [["Acknowledged at", formatTime(alarm.ackTs)] as [string, string]] : []),
    ...(alarm.cleared ? [["Cleared at", formatTime(alarm.clearTs)] as [string, string]] : []),
    ["Propagates to", propagation(alarm)],
  ];
  return (
    <dl style={{ display: "grid", gridTemplateColumns: "minmax(6rem, 10rem) minmax(0, 1fr)", gap: "6px 12px", margin: 0 }}>
      {facts.map(([label, value]) => (
        <div key={label} style={{ display: "contents" }}>
          <dt>
            <Text size="sm" c="var(--soft-text)">
              {t(label)}
            </Text>
          </dt>
          <dd style={{ margin: 0, overflowWrap: "anywhere" }}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface DrawerProps {
  alarm: Alarm;
  rights: AlarmRights;
  onClose: () => void;
  /** The tab that is shown first. */
  tab?: "details" | "activity";
}

export default function AlarmDrawer({ alarm: listed, rights, onClose, tab = "details" }: DrawerProps): ReactElement {
  const [busy, setBusy] = useState(false);
  const [asked, ask] = useDisclosure(false);
  const stored = useQuery({ queryKey: ["alarm", listed.id.id, listed.status, listed.assigneeId?.id], queryFn: () => api.get<Alarm>(`/api/alarm/info/${listed.id.id}`) });
  const alarm = { ...listed, ...stored.data };
  const act = async (what: AlarmAct, done: string): Promise<void> => {
    setBusy(true);
    const well = await withEach([alarm], what, done);
    setBusy(false);
    if (well && what === remove) {
      onClose();
    } else {
      void stored.refetch();
    }
  };
  const written = JSON.stringify(alarm.details ?? {}, null, 2);
  const details = written === "{}" ? "" : written;
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={alarm.type} closeButtonProps={{ "aria-label": t("Close") }}>
      <Tabs defaultValue={tab} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="details">{t("Details")}</Tabs.Tab>
          <Tabs.Tab value="activity">{t("Activity")}</Tabs.Tab>
          <Tabs.Tab value="history">{t("History")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="details">
          <Stack>
            <Facts alarm={alarm} />
            {rights.assign && <AssigneePicker alarm={alarm} value={alarm.assigneeId?.id ?? undefined} onChange={(user) => void act(assignTo(user), user === undefined ? "Taken back" : "Assigned")} />}
            <Group>
              {rights.acknowledge && !alarm.acknowledged && (
                <Button loading={busy} onClick={() => void act(acknowledge, "{n} acknowledged")}>
                  {t("Acknowledge")}
                </Button>
              )}
              {rights.clear && !alarm.cleared && (
                <Button variant="default" loading={busy} onClick={() => void act(clear, "{n} cleared")}>
                  {t("Clear")}
                </Button>
              )}
              {rights.remove && (
                <Button variant="light" color="red" disabled={busy} onClick={ask.open}>
                  {t("Delete")}
                </Button>
              )}
            </Group>
            <Text size="sm" fw={600}>
              {t("Details of the alarm")}
            </Text>
            {details === "" ? <Text size="sm">{t("none")}</Text> : <Code block tabIndex={0}>{details}</Code>}
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="activity">
          <Activity alarm={alarm} mayWrite={rights.comment} />
        </Tabs.Panel>
        <Tabs.Panel value="history">
          <AlarmHistory alarm={alarm} />
        </Tabs.Panel>
      </Tabs>
      <Modal opened={asked} onClose={ask.close} title={t("Delete {n} for good?", { n: 1 })} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{t("Their comments and history go with them. This can't be undone.")}</Text>
        <Button color="red" onClick={() => (ask.close(), void act(remove, "{n} deleted"))}>
          {t("Delete")}
        </Button>
      </Modal>
    </Drawer>
  );
}
