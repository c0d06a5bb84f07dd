// What a dashboard shows: states, time window, live widgets.

import { Breadcrumbs, Button, Group } from "@mantine/core";
import { useCallback, useMemo, type ReactElement, type ReactNode } from "react";
import { useLocation, useSearchParams } from "wouter";
import { BoardContext, type Embedded } from "@/dashboard/board";
import { readDashboard } from "@/dashboard/model";
import { encodeStates, readStatePath, writeStatePath, type OpenState } from "@/dashboard/state";
import { TimeContext } from "@/dashboard/time/control";
import { rulesOf } from "@/dashboard/time/rules";
import { asChosen, readChoices, readValues, writeChoices, writeValues } from "@/dashboard/viewer";
import { t } from "@/i18n";
import { useImage } from "@/ui/images";
import { safeColor } from "@/widgets/color";
import { useBoard } from "./actions/ActionHost";
import { stateName } from "./actions/stateName";
import { Board } from "./Board";
import { EntityChoice } from "./EntityChoice";
import { FilterValues } from "./FilterValues";
import { useAddressWindow, useZoomKeys } from "./time/hooks";
import { WindowPicker } from "./time/WindowPicker";
import { useFill } from "./useFill";
import { useScopedCss } from "./useScopedCss";
import classes from "./dashboard.module.css";

interface ViewProps {
  id: string;
  /** Name of the dashboard as text. */
  name: string;
  title: ReactNode;
  configuration: unknown;
  tools: ReactNode;
  /** Whether only the widgets are shown. */
  hideToolbar?: boolean;
  /** What stays where the dashboard itself hides its toolbar. */
  corner?: ReactNode;
}

export function DashboardView({ id, name, title, configuration, tools, hideToolbar, corner }: ViewProps): ReactElement {
  const stored = useMemo(() => readDashboard(configuration), [configuration]);
  const [search, setSearch] = useSearchParams();
  const choices = useMemo(() => readChoices(search, stored), [search, stored]);
  const values = useMemo(() => readValues(search, stored), [search, stored]);
  const model = useMemo(() => asChosen(stored, choices, values), [stored, choices, values]);
  const { settings } = stored;
  const scope = useScopedCss(settings.css);
  const logo = useImage(settings.logo);
  const time = useAddressWindow(model.timeWindow);
  const rules = useMemo(() => rulesOf(model.timeWindow), [model]);
  useZoomKeys(time, true);
  const [location, goTo] = useLocation();
  const fill = useFill();
  const path = useMemo(() => readStatePath(search.get("state"), model), [search, model]);
  const current = path.at(-1) ?? { id: "", params: {} };
  const go = useCallback(
    (next: OpenState[]): void => {
      const written = writeStatePath(model.settings.isFlat ? next.slice(-1) : next, model);
      setSearch((before) => {
        const after = new URLSearchParams(before);
        after.delete("state");
        return written === undefined ? after : new URLSearchParams([...after, ["state", written]]);
      });
    },
    [model, setSearch],
  );
  const openDashboard = useCallback(
    (target: string | undefined, opened: OpenState | undefined, newTab: boolean): void => {
      const publicId = search.get("publicId");
      const isBare = location.startsWith("/dashboard/");
      const query = new URLSearchParams({ ...(isBare && publicId !== null ? { publicId } : {}), ...(opened === undefined ? {} : { state: encodeStates([opened]) }) }).toString();
      const address = `${isBare ? "/dashboard" : "/dashboards"}/${target ?? id}${query === "" ? "" : `?${query}`}`;
      if (newTab) {
        open(address, "_blank", "noopener");
      } else {
        goTo(address);
      }
    },
    [id, goTo, location, search],
  );
  const draw = (shown: OpenState, embedded?: Embedded): ReactNode => {
    const state = model.states.find((one) => one.id === shown.id);
    return state === undefined ? null : <Board key={shown.id} model={model} state={state} open={shown} window={time.window} {...(embedded === undefined ? {} : { embedded })} />;
  };
  const { board, host } = useBoard({ id, title: name, model, configuration, path, go, openDashboard }, draw);
  const titleColor = settings.showTitle ? safeColor(settings.titleColor) : undefined;
  const view = (
    <div className={classes["board"]} data-scope={scope} data-styled={settings.css !== "" || undefined} data-filled={fill.filled || undefined}>
      {hideToolbar !== true && settings.hideToolbar && corner}
      {hideToolbar !== true && !settings.hideToolbar && (
        <Group mb="sm" gap="sm">
          {logo.url !== undefined && <img className={classes["logo"]} src={logo.url} alt={t("Logo")} />}
          {titleColor === undefined ? title : <div style={{ color: titleColor }}>{title}</div>}
          {path.length > 1 && (
            <Breadcrumbs>
              {path.map((open, n) => (
                <Button key={`${open.id} ${n}`} size="compact-sm" variant="subtle" onClick={() => go(path.slice(0, n + 1))}>
                  {stateName(model, open)}
                </Button>
              ))}
            </Breadcrumbs>
          )}
          <Group ms="auto" gap="xs" className={classes["tools"] ?? ""}>
            {settings.showEntitiesSelect && <EntityChoice model={stored} params={current.params} choices={choices} onChange={(next) => setSearch((before) => writeChoices(before, stored, next))} />}
            {settings.showFilters && <FilterValues model={stored} values={values} onChange={(next) => setSearch((before) => writeValues(before, stored, next))} />}
            {settings.showTimeWindow && <WindowPicker control={time} rules={rules} />}
            <Button variant="default" aria-pressed={fill.filled} onClick={fill.toggle}>
              {t(fill.filled ? "Leave full screen" : "Full screen")}
            </Button>
            {tools}
          </Group>
        </Group>
      )}
      <BoardContext value={board}>{draw(current)}</BoardContext>
    </div>
  );
  // Styles of the dashboard reach neither what its code may do nor what that asks.
  return (
    <TimeContext value={time}>
      {view}
      <div className={classes["hosts"]}>{host}</div>
    </TimeContext>
  );
}
