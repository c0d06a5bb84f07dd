// Alarms of the entities of a source, with the columns, filters and rights of the widget's settings.

import { Button, Group, TextInput } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useContext, useMemo, useState, type ReactElement } from "react";
import { useLocation } from "wouter";
import { rightsOf } from "@/alarms/actions";
import { originatorName, type Alarm } from "@/alarms/alarm";
import { AlarmFilters } from "@/alarms/AlarmFilters";
import { AlarmTable } from "@/alarms/AlarmTable";
import { usualColumns } from "@/alarms/columns";
import { conditionsOf, NO_FILTER, type AlarmFilter } from "@/alarms/filter";
import { useSession } from "@/app/session";
import { actionsOf } from "@/dashboard/actions";
import { BoardContext } from "@/dashboard/board";
import { list, object, text, type DataKey, type Json } from "@/dashboard/model";
import { askedBy } from "@/dashboard/questions";
import type { EntityValues } from "@/dashboard/source";
import { TimeContext } from "@/dashboard/time/control";
import { boundsOf, type TimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { useFunctions } from "@/sandbox/functions";
import gridClasses from "@/ui/grid/grid.module.css";
import type { WidgetProps } from "./registry";
import { alarmColumns, alarmRow, latestKeys } from "./table/alarmColumns";
import { functionContext, madeStyle } from "./table/cells";
import { RowActions, useActionsWidth } from "./table/RowActions";
import { readOrder, readTable } from "./table/settings";
import { Pager } from "./table/TableTools";

const NO_KEYS: DataKey[] = [];
const MINUTE = 60_000;

function initialFilter(stored: Json, me: string): AlarmFilter {
  const texts = (value: unknown): string[] => list(value).flatMap((one) => text(one) ?? []);
  const assignee = stored["assignedToCurrentUser"] === true ? me : (text(stored["assigneeId"]) ?? text(object(stored["assigneeId"])["id"]));
  return { ...NO_FILTER, states: texts(stored["statusList"]), severities: texts(stored["severityList"]), types: texts(stored["typeList"]), assignee, propagated: stored["searchPropagatedAlarms"] === true };
}

/** Returns where an alarm comes from as clicks know entities. */
function entityOf(alarm: Alarm): EntityValues {
  return { id: alarm.originator, name: originatorName(alarm), latest: new Map(text(alarm.originatorLabel) === undefined ? [] : [["ENTITY_FIELD/label", { ts: 0, value: String(alarm.originatorLabel) }]]), points: new Map() };
}

/** The ends of a window to the minute, so that what is asked for stays the same for a while. */
function startAndEnd(window: TimeWindow): { startTs: number; endTs?: number } {
  const [startTs, endTs] = boundsOf(window, Math.ceil(Date.now() / MINUTE) * MINUTE);
  return window.realtime ? { startTs } : { startTs, endTs };
}

export default function AlarmsTable({ widget, requests, act }: WidgetProps): ReactElement {
  const { settings, config, alarmSource } = widget;
  const session = useSession();
  const board = useContext(BoardContext);
  const time = useContext(TimeContext);
  const [location] = useLocation();
  const table = useMemo(() => readTable(settings, "-createdTime"), [settings]);
  const { ask, version } = useFunctions(useMemo(() => functionContext(widget), [widget]));
  const keys = alarmSource?.dataKeys ?? NO_KEYS;
  const leads = !location.startsWith("/dashboard/");
  const columns = useMemo(() => (keys.length === 0 ? usualColumns() : alarmColumns(keys, ask, leads)), [keys, ask, leads]);
  const [filter, setFilter] = useState(() => initialFilter(object(config["alarmFilterConfig"]), session.user.id.id));
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed, 200);
  const [more, { toggle }] = useDisclosure(false);
  const [page, setPage] = useState(0);
  const [pageSize, setPageSize] = useState(table.pageSize);
  const stored = readOrder(table.order);
  const may = rightsOf(session);
  const allows = (name: string): boolean => settings[name] !== false;
  const rights = { ...may, acknowledge: may.acknowledge && allows("allowAcknowledgment"), clear: may.clear && allows("allowClear"), assign: may.assign && allows("allowAssign"), comment: may.comment && allows("displayActivity") };
  const request = requests[0];
  const subscribe = useMemo(() => askedBy(widget.id), [widget.id]);
  const window = time?.window;
  const dated = filter.window !== undefined || filter.from !== undefined || filter.to !== undefined || window === undefined || window.all;
  // A window that ends now is told by its length, so that it needn't be asked for again each second.
  const inTime = dated ? {} : window.realtime && window.quick === undefined ? { timeWindow: window.length } : startAndEnd(window);
  const { propagated, ...others } = filter;
  const conditions = { ...conditionsOf({ ...others, propagated: false }), ...(propagated ? { searchPropagatedAlarms: true } : {}), ...inTime };
  const { entityFields, latestValues } = useMemo(() => latestKeys(keys), [keys]);
  const run = (source: string, alarm: Alarm, name?: string): void => act(source, entityOf(alarm), name, alarmRow(alarm, keys));
  const has = (source: string): boolean => actionsOf(config, source).length > 0;
  const actions = actionsOf(config, "actionCellButton");
  const actionsWidth = useActionsWidth(actions);
  const cellActions = actionsOf(config, "cellClick");
  return (
    <div className={gridClasses["frame"]}>
      {more && (
        <Group gap="xs" align="end" mb={4}>
          <AlarmFilters filter={filter} change={(next) => (setFilter(next), setPage(0))} choosesOriginator={false} />
        </Group>
      )}
      <div style={{ flex: 1, minHeight: 0 }}>
        <AlarmTable
          label={widget.title || t("Alarms")}
          query={{
            filters: request === undefined ? undefined : [request.filter],
            keyFilters: request?.keyFilters ?? [],
            anyKeyFilter: request?.any === true,
            conditions,
            search,
            entityFields,
            latestValues,
          }}
          subscribe={subscribe}
          columns={columns}
          sort={{ key: columns.find((column) => column.names.includes(stored.name))?.key ?? "createdTime", order: stored.order }}
          rights={{ ...rights, remove: false }}
          selects={settings["enableSelection"] !== false && rights.acknowledge}
          showsDetails={allows("displayDetails")}
          stored={board === undefined ? undefined : `${board.id}/${widget.id}`}
          page={table.pagination ? { from: page * pageSize, size: pageSize } : undefined}
          pager={table.pagination ? (total) => <Pager page={page} pageSize={pageSize} sizes={table.pageSizes} total={total} onPage={setPage} onSize={(size) => (setPageSize(size), setPage(0))} /> : undefined}
          rowStyle={table.rowStyle === undefined ? undefined : (alarm) => madeStyle(ask, table.rowStyle, ["alarm"], [alarmRow(alarm, keys)])}
          rowActionsWidth={Math.max(60, actionsWidth)}
          rowActions={actions.length === 0 ? undefined : (alarm) => <RowActions actions={actions} ask={ask} row={alarmRow(alarm, keys)} inMenu={table.actionsMenu && innerWidth < 600} run={(action) => run("actionCellButton", alarm, action.name)} />}
          onOpen={has("rowClick") ? (alarm) => run("rowClick", alarm) : undefined}
          onDoubleClick={has("rowDoubleClick") ? (alarm) => run("rowDoubleClick", alarm) : undefined}
          onCell={
            cellActions.length === 0
              ? undefined
              : (alarm, column) => {
                  const action = cellActions.find((one) => one.column === column) ?? cellActions.find((one) => one.column === undefined);
                  if (action !== undefined) {
                    run("cellClick", alarm, action.name);
                  }
                }
          }
          columnMenu={table.columnMenu}
          sticky={table.stickyHeader}
          tall={keys.some((key) => key.settings["useCellContentFunction"] === true)}
          version={version}
          tools={
            <>
              {table.search && <TextInput size="xs" w={150} aria-label={t("Search")} placeholder={t("Search")} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} />}
              {settings["enableFilter"] !== false && (
                <Button size="compact-sm" variant="subtle" aria-expanded={more} onClick={toggle}>
                  {t("Filters")}
                </Button>
              )}
            </>
          }
        />
      </div>
    </div>
  );
}

