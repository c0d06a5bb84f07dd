// The card around a widget: its title, its data, and what is wrong with it if something is.

import { useIntersection, useMergedRef } from "@mantine/hooks";
import { memo, useContext, useMemo, useRef, useState, type ReactElement } from "react";
import { SessionContext } from "@/app/session";
import type { Dashboard, Json, Widget } from "@/dashboard/model";
import { text } from "@/dashboard/model";
import { actionsOf, type Act } from "@/dashboard/actions";
import { aggregationIn } from "@/dashboard/aggregated";
import { isConnected, isWaitingFor, problemText } from "@/dashboard/emptiness";
import { cardStyle, titleStyle } from "@/dashboard/look";
import { planOf, type Planned } from "@/dashboard/plan";
import { keysOf, useSources, type EntityValues, type SourceRequest } from "@/dashboard/source";
import { TimeContext } from "@/dashboard/time/control";
import { rulesOf } from "@/dashboard/time/rules";
import { boundsOf, type TimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { useConnection } from "@/live/socket";
import { EmptyState } from "@/ui/feedback";
import { drawing, loadable } from "@/ui/loadable";
import { Backdrop } from "@/widgets/card/Backdrop";
import { inSystem, systemOf, type UnitSystem } from "@/widgets/units";
import { widgetInSystem } from "@/widgets/unitSettings";
import { sourcesOf } from "@/widgets/ahead";
import { rendererOf } from "@/widgets/registry";
import { usePostProcessed } from "@/widgets/postProcessing";
import { fillPattern } from "@/widgets/text";
import { useFill } from "./useFill";
import { useScopedCss } from "./useScopedCss";
import { WidgetBoundary } from "./WidgetBoundary";
import { HeaderActions } from "./HeaderActions";
import { StaleAge } from "./StaleAge";
import { TitleIcon } from "./TitleIcon";
import { WidgetTools } from "./WidgetTools";
import { useNow, useWidgetWindow } from "./time/hooks";
import { WindowPicker } from "./time/WindowPicker";
import classes from "./dashboard.module.css";

interface FrameProps {
  widget: Widget;
  model: Dashboard;
  params: Json;
  /** That of the dashboard. */
  window: TimeWindow;
  act: Act;
}

const ChartTable = loadable(() => import("@/widgets/timeChart/ChartTable"));

/** Widgets that ask for their data themselves have none here. */
const NONE: (SourceRequest | undefined)[] = [];

interface Asked {
  plan: Planned[];
  wanted: (SourceRequest | undefined)[];
  asks: Planned["source"][];
}

/** Returns the system of units of whoever reads. */
function useSystem(): UnitSystem {
  return systemOf(useContext(SessionContext)?.user.additionalInfo?.unitSystem, navigator.language);
}

/** Keeps a plan as the object that it was as long as it says the same, however often it is made. */
function usePlan(plan: Planned[]): Asked {
  const text = JSON.stringify(plan);
  const kept = useRef<{ text: string; asked: Asked }>(undefined);
  if (kept.current?.text !== text) {
    kept.current = { text, asked: { plan, wanted: plan.map(({ request }) => request), asks: plan.map(({ source }) => source) } };
  }
  return kept.current.asked;
}

/** Drawn anew only when something of its own is another. */
export const WidgetFrame = memo(function WidgetFrame({ widget: stored, model, params, window: shared, act }: FrameProps): ReactElement {
  const { ref, entry } = useIntersection({ rootMargin: "300px" });
  const section = useRef<HTMLElement>(null);
  const system = useSystem();
  const widget = useMemo(() => widgetInSystem(stored, system), [stored, system]);
  const place = useMergedRef(ref, section);
  const visible = entry?.isIntersecting === true;
  const renderer = rendererOf(widget.fqn);
  const sources = useMemo(() => sourcesOf(widget, renderer), [widget, renderer]);
  const time = useWidgetWindow(widget, useContext(TimeContext), shared);
  const { window } = time;
  const isDated = renderer.points || sources.some((source) => keysOf(source).some((key) => aggregationIn(key) !== undefined));
  const now = useNow(window, visible && isDated);
  const bounds = useMemo(() => boundsOf(window, now), [window, now]);
  const { plan, wanted, asks } = usePlan(planOf(widget, model, params, window, now, renderer, sources));
  // A widget that nobody sees asks for nothing; what it has shown stays.
  const asked = useSources(visible && !renderer.asksItself ? wanted : NONE, asks);
  const held = useRef(asked);
  const wasSeen = useRef(false);
  if (visible) {
    held.current = asked;
    wasSeen.current = true;
  }
  const processed = usePostProcessed(held.current);
  const made = useMemo(() => inSystem(processed, stored.config["units"], system), [processed, stored, system]);
  const shown = useMemo(() => made.map((one, n) => ({ ...one, role: plan[n]?.role ?? ("shown" as const), shift: plan[n]?.shift ?? 0 })), [made, plan]);
  const entities = useMemo(() => shown.filter((one) => one.role === "shown").flatMap((one) => one.entities), [shown]);
  const isStale = useConnection() === "reconnecting" && isConnected(sources);
  const isWaiting = visible && isWaitingFor(shown, wanted);
  const refused = shown.find((one) => one.problem !== undefined);
  const problem = refused === undefined ? undefined : problemText(refused);
  // A table of alarms without a source shows all of them.
  const isEntity = sources.filter((source) => (source.type === "entity" || source.type === "device") && !(source === widget.alarmSource && source.aliasId === undefined && source.deviceId === undefined));
  const unresolved = isEntity.length > 0 && plan.every(({ role, request }) => role !== "shown" || request === undefined);
  const title = fillPattern(widget.title, entities[0], sources.flatMap((source) => source.dataKeys));
  const style = useMemo(() => cardStyle(widget.fqn, widget.config, widget.settings), [widget]);
  const fill = useFill();
  const scope = useScopedCss(text(widget.config["widgetCss"]) ?? "");
  const [asTable, setAsTable] = useState(false);
  const drawn = useMemo(() => drawing(renderer.part), [renderer]);
  const Draw = asTable && renderer.lines === true ? ChartTable : drawn;
  const click = (where: string, entity: EntityValues | undefined, name?: string, extra?: unknown): void => {
    const actions = actionsOf(widget.config, where);
    const action = name === undefined ? actions[0] : actions.find((one) => one.name === name);
    if (action !== undefined) {
      act(action, entity, { widget, sources: shown, extra });
    }
  };
  const hasActions = ["headerButton", "cardClick"].some((where) => actionsOf(widget.config, where).length > 0);
  return (
    <section
      ref={place}
      className={classes["frame"]}
      aria-label={title || widget.fqn}
      data-stale={isStale || undefined}
      aria-busy={isWaiting}
      data-scope={scope}
      data-filled={fill.filled || undefined}
      style={style}
    >
      <Backdrop settings={widget.settings} />
      <header className={classes["head"]}>
        {widget.showTitle && title !== "" && (
          <h2 className={classes["title"]} style={titleStyle(widget.config)} title={text(widget.config["titleTooltip"])}>
            {widget.config["showTitleIcon"] === true && <TitleIcon config={widget.config} />}
            {title}
          </h2>
        )}
        {hasActions && <HeaderActions widget={widget} values={shown} run={(name) => click(name === undefined ? "cardClick" : "headerButton", entities[0], name)} />}
        {widget.timeWindow !== undefined && widget.config["displayTimewindow"] !== false && (isDated || widget.alarmSource !== undefined) && (
          <WindowPicker control={time} rules={rulesOf(widget.timeWindow)} small name={title || widget.fqn} />
        )}
      </header>
      <WidgetTools id={widget.id} title={title || widget.fqn} section={section} values={renderer.asksItself ? undefined : shown.filter(({ role }) => role !== "least" && role !== "greatest")} requests={wanted} fill={widget.config["enableFullscreen"] === false ? undefined : fill} table={renderer.lines === true ? { shown: asTable, toggle: () => setAsTable(!asTable) } : undefined} />
      <div className={classes["body"]} data-body>
        {problem !== undefined && <EmptyState>{problem}</EmptyState>}
        {unresolved ? (
          <EmptyState>{t("No entity is chosen for this.")}</EmptyState>
        ) : (
          (visible || (renderer.keeps === true && wasSeen.current)) && (
            <WidgetBoundary key={widget.fqn}>
              <TimeContext value={time}>
                <Draw widget={widget} entities={entities} sources={shown} requests={wanted} bounds={bounds} act={click} />
              </TimeContext>
            </WidgetBoundary>
          )
        )}
      </div>
      {isStale && <StaleAge entities={renderer.asksItself ? undefined : shown.filter(({ role, source }) => role === "shown" && source.type !== "function").flatMap((one) => one.entities)} />}
    </section>
  );
});
