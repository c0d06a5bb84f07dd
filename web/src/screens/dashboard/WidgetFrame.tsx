// The card around a widget: its title, its data, and what is wrong with it if something is.

import { useIntersection, useMergedRef } from "@mantine/hooks";
import { Suspense, useMemo, useRef, type ReactElement } from "react";
import type { Dashboard, Json, Widget } from "@/dashboard/model";
import { text } from "@/dashboard/model";
import { actionsOf, type Action } from "@/dashboard/actions";
import { filterOf, useSources, type EntityValues, type SourceRequest } from "@/dashboard/source";
import { boundsOf, type TimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { useConnection } from "@/live/socket";
import { EmptyState, Waiting } from "@/ui/feedback";
import { isImplicitWhite } from "@/widgets/color";
import { rendererOf } from "@/widgets/registry";
import { usePostProcessed } from "@/widgets/postProcessing";
import { fillPattern } from "@/widgets/text";
import { ExportMenu } from "./ExportMenu";
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
  const { ref, entry } = useIntersection({ rootMargin: "300px" });
  const section = useRef<HTMLElement>(null);
  const place = useMergedRef(ref, section);
  const visible = entry?.isIntersecting === true;
  const renderer = rendererOf(widget.fqn);
  const sources = widget.datasources;
  const wanted = useMemo(
    () =>
      sources.map((source): SourceRequest | undefined => {
        const filter = filterOf(source, model, params);
        const keyFilters = source.filterId === undefined ? [] : (model.keyFilters.get(source.filterId) ?? []);
        return filter === undefined ? undefined : { source, filter, keyFilters, window: renderer.points ? window : undefined };
      }),
    [sources, model, params, window, renderer],
  );
  // A widget that nobody sees asks for nothing; what it has shown stays.
  const asked = useSources(visible ? wanted : [], sources);
  const held = useRef(asked);
  if (visible) {
    held.current = asked;
  }
  const shown = usePostProcessed(held.current);
  const entities = useMemo(() => shown.flatMap((one) => one.entities), [shown]);
  const connection = useConnection();
  const problem = shown.find((one) => one.problem !== undefined)?.problem;
  const isEntity = sources.filter((source) => source.type === "entity" || source.type === "device");
  const unresolved = isEntity.length > 0 && wanted.every((one) => one === undefined);
  const title = fillPattern(widget.title, entities[0], sources.flatMap((source) => source.dataKeys));
  const background = text(widget.config["backgroundColor"]);
  const Draw = renderer.draw;
  const click = (where: string, entity: EntityValues | undefined, name?: string): void => {
    const actions = actionsOf(widget.config, where);
    const action = name === undefined ? actions[0] : actions.find((one) => one.name === name);
    if (action !== undefined) {
      act(action, entity);
    }
  };
  const onCard = actionsOf(widget.config, "cardClick").length > 0;
  const headers = actionsOf(widget.config, "headerButton");
  return (
    <section
      ref={place}
      className={classes["frame"]}
      aria-label={title || widget.fqn}
      data-stale={connection === "reconnecting" || undefined}
      style={background === undefined || isImplicitWhite(background) ? {} : { background }}
    >
      {widget.showTitle && title !== "" && <h2 className={classes["title"]}>{title}</h2>}
      {[...(onCard ? [undefined] : []), ...headers].map((action) => (
        <button
          key={action?.name ?? ""}
          type="button"
          className={classes["open"]}
          onClick={() => (action === undefined ? click("cardClick", entities[0]) : click("headerButton", entities[0], action.name))}
        >
          {action?.name ?? t("Open")}
        </button>
      ))}
      <ExportMenu title={title || widget.fqn} section={section} values={shown} />
      <div className={classes["body"]}>
        {problem !== undefined && <EmptyState>{t("The server refused this: {problem}", { problem })}</EmptyState>}
        {unresolved ? (
          <EmptyState>{t("No entity is chosen for this.")}</EmptyState>
        ) : (
          visible && (
            <Suspense fallback={<Waiting />}>
              <Draw widget={widget} entities={entities} sources={shown} bounds={boundsOf(window, now)} act={click} />
            </Suspense>
          )
        )}
      </div>
    </section>
  );
}
