// A widget type that a tenant wrote itself. Its code runs in a sandboxed frame that gets values and settings, and nothing else.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { actionsOf } from "@/dashboard/actions";
import { list, object, text, type Json } from "@/dashboard/model";
import { latestOf, type SourceValues } from "@/dashboard/source";
import { t } from "@/i18n";
import { SANDBOX_PAGE } from "@/sandbox/calls";
import { EmptyState, messageOf, Waiting } from "@/ui/feedback";
import { numeric } from "./postProcessing";
import type { WidgetProps } from "./registry";
import classes from "./widgets.module.css";

/** Returns values as ThingsBoard hands them to widgets: for each key of each entity its points as `[ts, value]`. */
export function contextData(sources: SourceValues[]): Json[] {
  return sources.flatMap(({ source, entities }) =>
    entities.flatMap((entity) =>
      source.dataKeys.map((key) => {
        const latest = latestOf(entity, key);
        const points = entity.points.get(key.name) ?? (latest === undefined ? [] : [latest]);
        const datasource = { type: source.type, name: entity.name, entityName: entity.name, entityId: entity.id.id, entityType: entity.id.entityType };
        return { datasource, dataKey: key.raw, data: points.map(({ ts, value }) => [ts, numeric(value)]) };
      }),
    ),
  );
}

export default function CustomWidget({ widget, sources, entities, act }: WidgetProps): ReactElement {
  const frame = useRef<HTMLIFrameElement>(null);
  const [loaded, setLoaded] = useState(false);
  const [failure, setFailure] = useState<string>();
  const type = useQuery({ queryKey: ["widget type", widget.fqn], queryFn: () => api.get<Json>("/api/widgetType", { fqn: widget.fqn }), retry: false });
  const descriptor = object(type.data?.["descriptor"]);
  const data = contextData(sources);
  const state = JSON.stringify({
    data,
    datasources: data.map((one) => one["datasource"]),
    settings: widget.settings,
    widgetConfig: { title: widget.title },
    actions: Object.fromEntries(Object.keys(object(widget.config["actions"])).map((source) => [source, actionsOf(widget.config, source).map(({ name }) => ({ name }))])),
  });
  const newest = useRef({ state, entities, act });
  newest.current = { state, entities, act };
  const code = JSON.stringify({ html: text(descriptor["templateHtml"]) ?? "", css: text(descriptor["templateCss"]) ?? "", js: text(descriptor["controllerScript"]) ?? "" });
  const post = (message: Json): void => {
    // The frame has no origin, so no narrower target than all can be named; it is the one that is addressed.
    frame.current?.contentWindow?.postMessage(message, "*");
  };
  useEffect(() => {
    const hear = (event: MessageEvent<unknown>): void => {
      if (event.source !== frame.current?.contentWindow) {
        return;
      }
      const { error, action, entityId } = object(event.data);
      setFailure((before) => text(error)?.slice(0, 300) ?? before);
      const { act: click, entities: known, ...rest } = newest.current;
      const sourcesOfActions = Object.keys(object((JSON.parse(rest.state) as Json)["actions"]));
      const source = sourcesOfActions.find((one) => actionsOf(widget.config, one).some(({ name }) => name === action));
      if (source !== undefined && text(action) !== undefined) {
        click(source, known.find((one) => one.id.id === entityId), text(action));
      }
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, [widget]);
  useEffect(() => {
    if (loaded) {
      post({ kind: "start", ...(JSON.parse(code) as Json), state: JSON.parse(newest.current.state) as Json });
    }
  }, [loaded, code]);
  useEffect(() => {
    if (loaded) {
      post({ kind: "data", state: JSON.parse(state) as Json });
    }
  }, [loaded, state]);
  if (type.isPending) {
    return <Waiting />;
  }
  if (type.isError) {
    return <EmptyState>{t("The widget type {type} can't be had: {problem}", { type: widget.fqn, problem: messageOf(type.error) })}</EmptyState>;
  }
  const resources = list(descriptor["resources"]).length;
  return (
    <>
      {failure !== undefined && <EmptyState>{t("The code of this widget failed: {problem}", { problem: failure })}</EmptyState>}
      {resources > 0 && <EmptyState>{t("This widget loads {n} libraries from elsewhere, which its sandbox doesn't let it do.", { n: resources })}</EmptyState>}
      <iframe ref={frame} className={classes["frameless"]} sandbox="allow-scripts" src={SANDBOX_PAGE} title={widget.title || widget.fqn} onLoad={() => setLoaded(true)} />
    </>
  );
}
