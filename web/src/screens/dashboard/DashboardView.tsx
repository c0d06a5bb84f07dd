// What a dashboard shows: states, time window, live widgets.

import { Breadcrumbs, Button, Group, Select } from "@mantine/core";
import { useElementSize, useInterval } from "@mantine/hooks";
import { useCallback, useMemo, useRef, useState, type ReactElement, type ReactNode } from "react";
import { useLocation, useSearchParams } from "wouter";
import { arrange } from "@/dashboard/layout";
import { readDashboard, type Dashboard as Model, type Layout } from "@/dashboard/model";
import { pathAfter, safeUrl, type Action } from "@/dashboard/actions";
import type { EntityValues } from "@/dashboard/source";
import { readStatePath, writeStatePath, type OpenState } from "@/dashboard/state";
import { intervalFor, readTimeWindow, type TimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { WidgetFrame } from "./WidgetFrame";
import { AGGREGATIONS, LENGTHS } from "./windows";
import classes from "./dashboard.module.css";

function WindowPicker({ window, onChange }: { window: TimeWindow; onChange: (window: TimeWindow) => void }): ReactElement {
  const known = window.quick === undefined && window.end === undefined && LENGTHS.some(([length]) => length === window.length);
  return (
    <Group gap="xs">
      <Select
        aria-label={t("Time")}
        w={170}
        allowDeselect={false}
        placeholder={t("As stored")}
        data={LENGTHS.map(([length, label]) => ({ value: String(length), label: t(label) }))}
        value={known ? String(window.length) : null}
        onChange={(value) => {
          const length = Number(value);
          onChange({ ...window, realtime: true, quick: undefined, end: undefined, length, interval: intervalFor(length) });
        }}
      />
      <Select
        aria-label={t("Aggregation")}
        w={110}
        allowDeselect={false}
        data={AGGREGATIONS}
        value={window.aggregation}
        onChange={(value) => onChange({ ...window, aggregation: value ?? window.aggregation })}
      />
    </Group>
  );
}

interface GridProps {
  model: Model;
  layout: Layout;
  state: OpenState;
  window: TimeWindow;
  act: (action: Action, entity: EntityValues | undefined) => void;
}

function WidgetGrid({ model, layout, state, window, act }: GridProps): ReactElement {
  const { ref, width, height } = useElementSize();
  const [now, setNow] = useState(Date.now);
  useInterval(() => setNow(Date.now()), 1_000, { autoInvoke: true });
  const arrangement = useMemo(() => (width === 0 ? undefined : arrange(layout, width, height)), [layout, width, height]);
  return (
    <div ref={ref} className={classes["grid"]}>
      <div style={{ position: "relative", height: arrangement?.height ?? 0 }}>
        {arrangement?.rects.map(({ id, ...rect }) => {
          const widget = model.widgets.get(id);
          return widget === undefined ? null : (
            <div key={id} className={classes["place"]} style={rect} data-widget={id}>
              <WidgetFrame widget={widget} model={model} params={state.params} window={widget.timeWindow === undefined ? window : readTimeWindow(widget.timeWindow)} now={now} act={act} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface ViewProps {
  id: string;
  title: ReactNode;
  configuration: unknown;
  tools: ReactNode;
  /** Whether only the widgets are shown. */
  hideToolbar?: boolean;
}

export function DashboardView({ id, title, configuration, tools, hideToolbar }: ViewProps): ReactElement {
  const model = useMemo(() => readDashboard(configuration), [configuration]);
  const [search, setSearch] = useSearchParams();
  const [window, setWindow] = useState(() => readTimeWindow(model.timeWindow));
  const [location, goTo] = useLocation();
  const frame = useRef<HTMLDivElement>(null);
  const path = useMemo(() => readStatePath(search.get("state"), model), [search, model]);
  const current = path.at(-1) ?? { id: "", params: {} };
  const state = model.states.find((one) => one.id === current.id);
  const go = useCallback(
    (next: OpenState[]): void => {
      const written = writeStatePath(next, model);
      setSearch((before) => {
        const after = new URLSearchParams(before);
        after.delete("state");
        return written === undefined ? after : new URLSearchParams([...after, ["state", written]]);
      });
    },
    [model, setSearch],
  );
  const act = useCallback(
    (action: Action, entity: EntityValues | undefined): void => {
      const url = safeUrl(action.url);
      if (action.type === "openURL") {
        if (url !== undefined) {
          open(url, "_blank", "noopener");
        }
      } else if (action.type === "openDashboard") {
        const publicId = search.get("publicId");
        const other = action.dashboardId ?? id;
        goTo(location.startsWith("/dashboard/") ? `/dashboard/${other}${publicId === null ? "" : `?publicId=${encodeURIComponent(publicId)}`}` : `/dashboards/${other}`);
      } else {
        go(pathAfter(action, path, entity));
      }
    },
    [id, go, goTo, location, path, search],
  );
  const stateName = (open: OpenState): string => {
    const name = model.states.find((one) => one.id === open.id)?.name ?? open.id;
    return name.replaceAll("${entityName}", typeof open.params["entityName"] === "string" ? open.params["entityName"] : "");
  };
  return (
    <div ref={frame} className={classes["board"]}>
      {hideToolbar !== true && (
        <Group mb="sm">
          {title}
          {path.length > 1 && (
            <Breadcrumbs>
              {path.map((open, n) => (
                <Button key={`${open.id} ${n}`} size="compact-sm" variant="subtle" onClick={() => go(path.slice(0, n + 1))}>
                  {stateName(open)}
                </Button>
              ))}
            </Breadcrumbs>
          )}
          <Group ml="auto" gap="xs">
            <WindowPicker window={window} onChange={setWindow} />
            <Button variant="default" onClick={() => void frame.current?.requestFullscreen()}>
              {t("Full screen")}
            </Button>
            {tools}
          </Group>
        </Group>
      )}
      {state !== undefined && (
        <div className={classes["layouts"]}>
          {[state.main, state.right].map((layout, n) =>
            layout === undefined ? null : <WidgetGrid key={`${state.id} ${n}`} model={model} layout={layout} state={current} window={window} act={act} />,
          )}
        </div>
      )}
    </div>
  );
}
