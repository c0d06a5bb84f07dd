// Live alarms with what can be done about them: by key, by button, one or many at once.

import { ActionIcon, Button, Group, Kbd, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, Suspense, useCallback, useMemo, useState, type CSSProperties, type ReactElement, type ReactNode } from "react";
import { t } from "@/i18n";
import { saveRows, type Saving } from "@/ui/rowsFile";
import { EmptyState, Waiting } from "@/ui/feedback";
import { shownColumns, useArrangement } from "@/ui/grid/columns";
import { Grid } from "@/ui/grid/Grid";
import gridClasses from "@/ui/grid/grid.module.css";
import { TableMenu } from "@/ui/grid/TableMenu";
import { acknowledge, clear, remove, withEach, type AlarmAct, type AlarmRights } from "./actions";
import type { Alarm } from "./alarm";
import type { AlarmColumn } from "./columns";
import { alarmPages, MOST_ALARMS, useAlarms, type AlarmFeedQuery, type Subscribe } from "./feed";
import { grouped, type Grouping } from "./grouping";

const AlarmDrawer = lazy(() => import("./AlarmDrawer"));
const AssignMany = lazy(() => import("./AssignMany"));

/** Alarms that are asked for at first; scrolling to their end doubles them. */
const FIRST = 100;

export interface AlarmTableProps {
  label: string;
  query: Omit<AlarmFeedQuery, "sort" | "size">;
  /** How it asks, where somebody may look at that; always the same. */
  subscribe?: Subscribe;
  columns: readonly AlarmColumn[];
  /** Column to sort by at first. */
  sort: { key: string; order: "ASC" | "DESC" };
  rights: AlarmRights;
  selects: boolean;
  showsDetails: boolean;
  /** Under which name the arrangement of columns is kept. */
  stored: string | undefined;
  group?: Grouping | undefined;
  /** Search and filters. */
  tools?: ReactNode;
  /** Whether the keys are told below. */
  help?: boolean;
  /** Turns pages of so many rows instead of scrolling. */
  pager?: ((total: number) => ReactElement | null) | undefined;
  page?: { from: number; size: number } | undefined;
  rowStyle?: ((alarm: Alarm) => CSSProperties | undefined) | undefined;
  rowActions?: ((alarm: Alarm) => ReactNode) | undefined;
  /** How wide these are, pixels. */
  rowActionsWidth?: number;
  onOpen?: ((alarm: Alarm) => void) | undefined;
  onDoubleClick?: ((alarm: Alarm) => void) | undefined;
  onCell?: ((alarm: Alarm, column: number) => void) | undefined;
  columnMenu?: boolean;
  sticky?: boolean;
  tall?: boolean;
  version?: unknown;
}

function Help({ rights, selects }: { rights: AlarmRights; selects: boolean }): ReactElement {
  const keys: [string, string][] = [
    ["j k", "next, previous"],
    ...(selects ? [["Space", "select"] as [string, string]] : []),
    ...(rights.acknowledge ? [["a", "acknowledge"] as [string, string]] : []),
    ...(rights.clear ? [["c", "clear"] as [string, string]] : []),
    ["Enter", "details"],
  ];
  return (
    <Group className={gridClasses["keys"] ?? ""} gap="md" p={6} aria-label={t("Keys")} role="note">
      {keys.map(([key, what]) => (
        <Text key={key} size="xs">
          <Kbd size="xs">{t(key)}</Kbd> {t(what)}
        </Text>
      ))}
    </Group>
  );
}

interface BulkProps {
  alarms: readonly Alarm[];
  rights: AlarmRights;
  act: (alarms: readonly Alarm[], act: AlarmAct, done: string) => Promise<void>;
  busy: number | undefined;
}

function Bulk({ alarms, rights, act, busy }: BulkProps): ReactElement {
  const [asked, { open, close }] = useDisclosure(false);
  const [assigning, assign] = useDisclosure(false);
  const n = alarms.length;
  return (
    <>
      {rights.acknowledge && (
        <Button size="compact-sm" disabled={busy !== undefined} onClick={() => void act(alarms.filter((alarm) => !alarm.acknowledged), acknowledge, "{n} acknowledged")}>
          {t("Acknowledge {n}", { n })}
        </Button>
      )}
      {rights.clear && (
        <Button size="compact-sm" variant="default" disabled={busy !== undefined} onClick={() => void act(alarms.filter((alarm) => !alarm.cleared), clear, "{n} cleared")}>
          {t("Clear {n}", { n })}
        </Button>
      )}
      {rights.assign && (
        <Button size="compact-sm" variant="default" disabled={busy !== undefined} onClick={assign.open}>
          {t("Assign {n}", { n })}
        </Button>
      )}
      {rights.remove && (
        <Button size="compact-sm" color="red" disabled={busy !== undefined} onClick={open}>
          {t("Delete {n}", { n })}
        </Button>
      )}
      {busy !== undefined && <Text size="xs" role="status">{t("{n} of {all}", { n: busy, all: n })}</Text>}
      <Modal opened={asked} onClose={close} title={t("Delete {n} for good?", { n })} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{t("Their comments and history go with them. This can't be undone.")}</Text>
        <Group>
          <Button color="red" onClick={() => (close(), void act(alarms, remove, "{n} deleted"))}>
            {t("Delete")}
          </Button>
          <Button variant="default" onClick={close}>
            {t("Cancel")}
          </Button>
        </Group>
      </Modal>
      {assigning && (
        <Suspense>
          <AssignMany alarms={alarms} onClose={assign.close} act={(chosen) => act(alarms, chosen, "{n} changed")} />
        </Suspense>
      )}
    </>
  );
}

export function AlarmTable(props: AlarmTableProps): ReactElement {
  const { columns, rights, selects, group } = props;
  const [sort, setSort] = useState(props.sort);
  const [wanted, setSize] = useState(FIRST);
  const size = props.page === undefined ? wanted : Math.max(FIRST, props.page.from + props.page.size);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<Alarm>();
  const [busy, setBusy] = useState<number>();
  const arrangement = useArrangement(props.stored, columns);
  const by = columns.find((column) => column.key === sort.key)?.sort ?? { property: "createdTime" };
  const asked = { ...props.query, sort: { ...by, order: sort.order }, size };
  const { alarms, total, isLoaded, problem } = useAlarms(asked, props.subscribe);
  const shown = useMemo(() => (props.page === undefined ? alarms : alarms.slice(props.page.from, props.page.from + props.page.size)), [alarms, props.page?.from, props.page?.size]);
  const items = useMemo(() => grouped(shown, group, closed), [shown, group, closed]);
  const count = items.length;
  const inView = useCallback(
    (_first: number, last: number) => {
      if (last >= count - 20) {
        setSize((before) => (alarms.length >= before && before < Math.min(total, MOST_ALARMS) ? Math.min(MOST_ALARMS, before * 2) : before));
      }
    },
    [count, alarms.length, total],
  );
  const chosen = shown.filter((alarm) => selected.has(alarm.id.id));
  const act = async (some: readonly Alarm[], what: AlarmAct, done: string): Promise<void> => {
    setBusy(0);
    if (await withEach(some, what, done, setBusy)) {
      setSelected(new Set());
    }
    setBusy(undefined);
  };
  const onKey = (key: string, alarm: Alarm): boolean => {
    const some = chosen.length > 0 ? chosen : [alarm];
    if (key === "a" && rights.acknowledge) {
      void act(some.filter((one) => !one.acknowledged), acknowledge, "{n} acknowledged");
    } else if (key === "c" && rights.clear) {
      void act(some.filter((one) => !one.cleared), clear, "{n} cleared");
    } else {
      return false;
    }
    return true;
  };
  const details = props.showsDetails ? setOpen : undefined;
  const buttons = 30 * ((rights.acknowledge ? 1 : 0) + (rights.clear ? 1 : 0) + (props.showsDetails ? 1 : 0));
  const rowActions = (alarm: Alarm): ReactNode => (
    <>
      {props.rowActions?.(alarm)}
      {rights.acknowledge && !alarm.acknowledged && (
        <ActionIcon size="sm" variant="subtle" aria-label={t("Acknowledge")} title={t("Acknowledge")} onClick={() => void act([alarm], acknowledge, "{n} acknowledged")}>
          ✓
        </ActionIcon>
      )}
      {rights.clear && !alarm.cleared && (
        <ActionIcon size="sm" variant="subtle" aria-label={t("Clear")} title={t("Clear")} onClick={() => void act([alarm], clear, "{n} cleared")}>
          ✕
        </ActionIcon>
      )}
      {props.showsDetails && (
        <ActionIcon size="sm" variant="subtle" aria-label={t("Details")} title={t("Details")} onClick={() => setOpen(alarm)}>
          ⋯
        </ActionIcon>
      )}
    </>
  );
  const save = (saving: Saving): Promise<void> => saveRows(props.label, shownColumns(columns, arrangement), alarmPages(asked), saving);
  return (
    <div className={gridClasses["frame"]}>
      <div className={gridClasses["tools"]} style={{ flexWrap: "wrap" }}>
        {props.tools}
        {chosen.length > 0 && <Bulk alarms={chosen} rights={rights} act={act} busy={busy} />}
        <div className={gridClasses["end"]}>
          <Text size="xs" role="status">
            {isLoaded ? t("{n} in all", { n: total }) : ""}
          </Text>
          <TableMenu columns={columns} arrangement={arrangement} chooses={props.columnMenu !== false} save={save} />
        </div>
      </div>
      {problem !== undefined && <EmptyState>{t("The server refused this: {problem}", { problem })}</EmptyState>}
      {total > MOST_ALARMS && <Text size="xs" px={4}>{t("The first {n} are shown; filters narrow them.", { n: MOST_ALARMS })}</Text>}
      {!isLoaded ? (
        <Waiting />
      ) : (
        <Grid
          label={props.label}
          columns={columns}
          arrangement={arrangement}
          count={count}
          at={(index) => items[index]}
          rowKey={(alarm) => alarm.id.id}
          version={props.version}
          sorts={[sort]}
          onSort={([next]) => next !== undefined && setSort(next)}
          {...(props.page === undefined ? { onRange: inView } : {})}
          selected={
            selects
              ? {
                  keys: selected,
                  toggle: (alarm) =>
                    setSelected((before) => {
                      const after = new Set(before);
                      return after.delete(alarm.id.id) ? after : after.add(alarm.id.id);
                    }),
                  state: chosen.length === 0 ? "none" : chosen.length >= shown.length ? "all" : "some",
                  toggleAll: () => setSelected(new Set(chosen.length >= shown.length ? [] : shown.map((alarm) => alarm.id.id))),
                }
              : undefined
          }
          onOpen={props.onOpen ?? details}
          onDoubleClick={props.onDoubleClick}
          onCell={props.onCell}
          onGroup={(one) =>
            setClosed((before) => {
              const after = new Set(before);
              return after.delete(one) ? after : after.add(one);
            })
          }
          onKey={onKey}
          rowStyle={props.rowStyle}
          actions={buttons === 0 && props.rowActions === undefined ? undefined : rowActions}
          actionsWidth={Math.max(80, buttons + 16 + (props.rowActions === undefined ? 0 : (props.rowActionsWidth ?? 60)))}
          sticky={props.sticky !== false}
          tall={props.tall === true}
          empty={t(props.query.search === "" ? "No alarms." : "Nothing matches the search.")}
        />
      )}
      {props.pager?.(total)}
      {props.help === true && <Help rights={rights} selects={selects} />}
      {open !== undefined && (
        <Suspense>
          <AlarmDrawer alarm={alarms.find((alarm) => alarm.id.id === open.id.id) ?? open} rights={rights} onClose={() => setOpen(undefined)} />
        </Suspense>
      )}
    </div>
  );
}
