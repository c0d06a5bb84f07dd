// The card around a widget: its title, its data, and what is wrong with it if something is.

import { Suspense, type ReactElement } from "react";
import type { Dashboard, Json, Widget } from "@/dashboard/model";
import { text } from "@/dashboard/model";
import { actionsOf, type Action } from "@/dashboard/actions";
import { filterOf, useSource, type EntityValues } from "@/dashboard/source";
import { boundsOf, type TimeWindow } from "@/dashboard/timeWindow";
import { AlarmsTab } from "@/entities/RecordTabs";
import { t } from "@/i18n";
import { EmptyState, Waiting } from "@/ui/feedback";
import { isAlarms, rendererOf } from "@/widgets/registry";
import { fillPattern } from "@/widgets/text";
import classes from "./dashboard.module.css";

interface FrameProps {
  widget: Widget;
  model: Dashboard;
  params: Json;
  window: TimeWindow;
  now: number;
  act: (action: Action, entity: EntityValues | undefined) => void;
}

export function WidgetFrame({ widget, model, params, window, now, act }: FrameProps): ReactElement {
  const renderer = rendererOf(widget.fqn);
  const source = widget.datasources[0];
  const filter = source === undefined ? undefined : filterOf(source, model, params);
  const keyFilters = source?.filterId === undefined ? [] : (model.keyFilters.get(source.filterId) ?? []);
  const request = source === undefined || filter === undefined || isAlarms(widget.fqn) ? undefined : { source, filter, keyFilters, window: renderer.points ? window : undefined };
  const { entities, problem } = useSource(request);
  const unresolved = source !== undefined && filter === undefined && (source.type === "entity" || source.type === "device");
  const title = fillPattern(widget.title, entities[0], source?.dataKeys ?? []);
  const background = text(widget.config["backgroundColor"]);
  const Draw = renderer.draw;
  const click = (where: string, entity: EntityValues | undefined): void => {
    const [action] = actionsOf(widget.config, where);
    if (action !== undefined) {
      act(action, entity);
    }
  };
  const onCard = actionsOf(widget.config, "cardClick").length > 0;
  return (
    <section className={classes["frame"]} aria-label={title || widget.fqn} style={background === undefined || /^(#fff(fff)?|rgb\(255, ?255, ?255\)|white)$/i.test(background) ? {} : { background }}>
      {widget.showTitle && title !== "" && <h2 className={classes["title"]}>{title}</h2>}
      {onCard && (
        <button type="button" className={classes["open"]} onClick={() => click("cardClick", entities[0])}>
          {t("Open")}
        </button>
      )}
      <div className={classes["body"]}>
        {problem !== undefined && <EmptyState>{t("The server refused this: {problem}", { problem })}</EmptyState>}
        {unresolved ? (
          <EmptyState>{t("No entity is chosen for this.")}</EmptyState>
        ) : isAlarms(widget.fqn) ? (
          <AlarmsTab />
        ) : (
          <Suspense fallback={<Waiting />}>
            <Draw widget={widget} entities={entities} bounds={boundsOf(window, now)} act={click} />
          </Suspense>
        )}
      </div>
    </section>
  );
}
