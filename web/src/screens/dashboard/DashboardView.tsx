// What a dashboard shows: states, time window, live widgets.

import { Button } from "@mantine/core";
import { useCallback, useMemo, useState, type ReactElement, type ReactNode } from "react";
import { useLocation, useSearchParams } from "wouter";
import { BoardContext } from "@/dashboard/board";
import { readDashboard } from "@/dashboard/model";
import { encodeStates, readStatePath, writeStatePath, type OpenState } from "@/dashboard/state";
import { TimeContext } from "@/dashboard/time/control";
import { readChoices, readValues, writeChoices, writeValues } from "@/dashboard/viewer";
import { t } from "@/i18n";
import { useImage } from "@/ui/images";
import { safeColor } from "@/widgets/color";
import { useBoard } from "./actions/ActionHost";
import { drawOn } from "./Board";
import { BoardTools } from "./BoardTools";
import { useShown } from "./shown";
import { useAddressWindow, useZoomKeys } from "./time/hooks";
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
  const { settings } = stored;
  const scope = useScopedCss(settings.css);
  const logo = useImage(settings.logo);
  const time = useAddressWindow(stored.timeWindow);
  const shown = useShown(stored, choices, values, time);
  const { model } = shown;
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
  const { board, host } = useBoard({ id, title: name, shown, configuration, path, go, openDashboard });
  const folds = hideToolbar !== true && !settings.hideToolbar && settings.isToolbarFolded;
  const [unfolded, setUnfolded] = useState(false);
  const titleColor = settings.showTitle ? safeColor(settings.titleColor) : undefined;
  const view = (
    <div className={classes["board"]} data-scope={scope} data-styled={settings.css !== "" || undefined} data-filled={fill.filled || undefined}>
      {hideToolbar !== true && settings.hideToolbar && corner}
      {folds && (
        <Button size="compact-xs" variant="subtle" display="block" ms="auto" aria-expanded={unfolded} onClick={() => setUnfolded(!unfolded)}>
          {t(unfolded ? "Fold the toolbar" : "Open the toolbar")}
        </Button>
      )}
      {hideToolbar !== true && !settings.hideToolbar && (!folds || unfolded) && (
        <BoardTools
          shown={shown}
          path={path}
          go={go}
          fill={fill}
          onChoices={(next) => setSearch((before) => writeChoices(before, stored, next))}
          onValues={(next) => setSearch((before) => writeValues(before, stored, next))}
          head={
            <>
              {logo.url !== undefined && <img className={classes["logo"]} src={logo.url} alt={t("Logo")} />}
              {titleColor === undefined ? title : <div style={{ color: titleColor }}>{title}</div>}
            </>
          }
        >
          {tools}
        </BoardTools>
      )}
      <BoardContext value={board}>{drawOn(model, time.window)(current)}</BoardContext>
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
