// A widget type that a tenant wrote itself. Its code runs in a sandboxed frame that gets values and settings, and nothing else.

import { useQuery } from "@tanstack/react-query";
import { useContext, useEffect, useRef, useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { actionsOf, bodyOf } from "@/dashboard/actions";
import { BoardContext } from "@/dashboard/board";
import { list, object, text, type Json } from "@/dashboard/model";
import { plural, t } from "@/i18n";
import { SANDBOX_PAGE } from "@/sandbox/calls";
import { modulesIn, type CodeModule } from "@/sandbox/modules";
import { WIDGET_PRELUDE } from "@/sandbox/program";
import { useBridge } from "@/sandbox/useBridge";
import { EmptyState, messageOf, Waiting } from "@/ui/feedback";
import { ActionGate } from "./actionGate";
import { contextData } from "./contextData";
import type { WidgetProps } from "./registry";
import classes from "./widgets.module.css";

/** Code that draws a widget. */
export interface DrawingCode {
  html: string;
  css: string;
  js: string;
}

export default function CustomWidget(props: WidgetProps): ReactElement {
  const { fqn } = props.widget;
  const type = useQuery({ queryKey: ["widget type", fqn], queryFn: () => api.get<Json>("/api/widgetType", { fqn }), retry: false });
  if (type.isPending) {
    return <Waiting />;
  }
  if (type.isError) {
    return <EmptyState>{t("The widget type {type} can't be had: {problem}", { type: fqn, problem: messageOf(type.error) })}</EmptyState>;
  }
  const descriptor = object(type.data["descriptor"]);
  const code = { html: text(descriptor["templateHtml"]) ?? "", css: text(descriptor["templateCss"]) ?? "", js: bodyOf(descriptor["controllerScript"]) ?? "" };
  return <SandboxedCode {...props} code={code} resources={list(descriptor["resources"]).length} />;
}

/** Draws a widget by code, in a frame that the code can't leave. */
export function SandboxedCode({ widget, sources, entities, act, code: drawing, resources }: WidgetProps & { code: DrawingCode; resources: number }): ReactElement {
  const frame = useRef<HTMLIFrameElement>(null);
  const [gate] = useState(() => new ActionGate());
  const [loaded, setLoaded] = useState(false);
  const [failure, setFailure] = useState<string>();
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
  const board = useContext(BoardContext);
  const code = JSON.stringify(drawing);
  const [modules, setModules] = useState<readonly CodeModule[]>();
  useEffect(() => {
    let wanted = true;
    modulesIn(drawing.js).then((found) => wanted && setModules(found), (error: unknown) => wanted && setFailure(messageOf(error)));
    return () => {
      wanted = false;
    };
  }, [code]);
  // What somebody allows, they allow to the modules, too.
  useBridge(frame, modules === undefined || modules.length === 0 ? code : JSON.stringify([code, modules]));
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
      if (source !== undefined && text(action) !== undefined && gate.passes()) {
        click(source, known.find((one) => one.id.id === entityId), text(action));
      }
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, [widget, gate]);
  useEffect(() => {
    if (loaded && modules !== undefined) {
      const drawing = JSON.parse(code) as { html: string; css: string; js: string };
      post({ kind: "start", ...drawing, js: WIDGET_PRELUDE + drawing.js, modules, state: { ...(JSON.parse(newest.current.state) as Json), statePath: board?.path() ?? [] } });
    }
  }, [loaded, code, modules]);
  useEffect(() => {
    if (loaded) {
      post({ kind: "data", state: { ...(JSON.parse(state) as Json), statePath: board?.path() ?? [] } });
    }
  }, [loaded, state]);
  return (
    <>
      {failure !== undefined && <EmptyState>{t("The code of this widget failed: {problem}", { problem: failure })}</EmptyState>}
      {resources > 0 && <EmptyState>{plural(resources, "This widget loads {n} library from elsewhere, which its sandbox doesn't let it do.", "This widget loads {n} libraries from elsewhere, which its sandbox doesn't let it do.")}</EmptyState>}
      <iframe ref={frame} className={classes["frameless"]} sandbox="allow-scripts" src={SANDBOX_PAGE} title={widget.title || widget.fqn} onLoad={() => setLoaded(true)} />
    </>
  );
}
