// A symbol of a plant. Its drawing and its scripts live in a sandboxed frame; values go in, clicks come out.

import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, type ReactElement } from "react";
import { object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { SANDBOX_PAGE } from "@/sandbox/calls";
import { modulesIn } from "@/sandbox/modules";
import prelude from "@/sandbox/prelude.js?raw";
import program from "@/sandbox/symbol.js?raw";
import { EmptyState, messageOf, Waiting } from "@/ui/feedback";
import { drawingText } from "@/ui/images";
import { ActionGate } from "../actionGate";
import { ControlFrame } from "../control/ControlFrame";
import { loadDrawing, type IconDrawing } from "@/icons/drawings";
import { getterOf, setterOf } from "../control/settings";
import { useControl, type Target } from "../control/useControl";
import { useReading, type Reading } from "../control/useReading";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import svgLibrary from "../../../node_modules/@svgdotjs/svg.js/dist/svg.min.js?raw";
import { emptyValue, readSymbol, symbolAction, type Behavior, type Property, type SymbolModel } from "./symbol";
import classes from "../widgets.module.css";

const SOURCE = `${svgLibrary}\n${prelude}\n${program}`;

interface ReaderProps {
  behavior: Behavior;
  target: Target | undefined;
  onReading: (id: string, reading: Reading) => void;
}

/** Follows the value of one behaviour. A component each, since symbols have any number of them. */
function BehaviorReader({ behavior, target, onReading }: ReaderProps): null {
  const getter = useMemo(() => getterOf(behavior.settings, behavior.valueType === "BOOLEAN" ? "state" : "value", "DO_NOTHING"), [behavior]);
  const reading = useReading(getter, target);
  const newest = useRef(reading);
  newest.current = reading;
  const { version, waiting, problem } = reading;
  useEffect(() => onReading(behavior.id, newest.current), [behavior.id, version, waiting, problem, onReading]);
  return null;
}

async function iconsOf(properties: Record<string, Property>): Promise<Record<string, IconDrawing>> {
  const names = Object.values(properties).flatMap(({ type, value }) => (type === "icon" && typeof value === "string" ? [value] : []));
  const drawings = await Promise.all(names.map(async (name) => ({ name, drawing: await loadDrawing(name) })));
  return Object.fromEntries(drawings.flatMap(({ name, drawing }) => (drawing === undefined ? [] : [[name, drawing]])));
}

/** Values that somebody tries a symbol with, instead of those of devices. */
export interface SymbolTest {
  values: Json;
  onAction: (id: string, value: unknown) => void;
}

interface DrawnProps extends Pick<WidgetProps, "entities" | "act"> {
  symbol: SymbolModel;
  title: string;
  test?: SymbolTest;
}

export function DrawnSymbol({ symbol, title, entities, act, test }: DrawnProps): ReactElement {
  const frame = useRef<HTMLIFrameElement>(null);
  const [gate] = useState(() => new ActionGate());
  const [loaded, setLoaded] = useState(false);
  const [failure, setFailure] = useState<string>();
  const [readings, setReadings] = useState<ReadonlyMap<string, Reading>>(new Map());
  const onReading = useCallback((id: string, reading: Reading) => setReadings((before) => new Map(before).set(id, reading)), []);
  const setters = useMemo(() => new Map(symbol.behaviors.filter(({ type }) => type === "action").map(({ id, settings, valueType }) => [id, setterOf(settings, valueType === "BOOLEAN" ? { data: "CONSTANT", constant: false } : { data: "VALUE" })])), [symbol]);
  const control = useControl(entities, [...setters.values()][0]);
  const values = JSON.stringify(
    test?.values ?? Object.fromEntries(symbol.behaviors.filter(({ type }) => type === "value").map(({ id, valueType, settings }) => [id, readings.get(id)?.value ?? settings["defaultValue"] ?? emptyValue(valueType)])),
  );
  const newest = useRef({ values, control, act, entity: entities[0], test });
  newest.current = { values, control, act, entity: entities[0], test };
  const post = (message: Json): void => {
    // The frame has no origin, so no narrower target than all can be named; it is the one that is addressed.
    frame.current?.contentWindow?.postMessage(message, "*");
  };
  useEffect(() => {
    const hear = (event: MessageEvent<unknown>): void => {
      if (event.source !== frame.current?.contentWindow) {
        return;
      }
      const { error, symbolAction: id, value, call } = object(event.data);
      setFailure((before) => text(error)?.slice(0, 300) ?? before);
      const behavior = symbol.behaviors.find((one) => one.id === id);
      const setter = setters.get(String(id));
      const done = (problem?: string): void => post({ kind: "news", news: { done: { call, error: problem } } });
      if (behavior?.type !== "widgetAction" && setter === undefined) {
        return;
      }
      if (newest.current.test !== undefined) {
        newest.current.test.onAction(String(id), value);
        done();
        return;
      }
      // Scripts of symbols act only after a click: the rights are those of whoever looks.
      if (!gate.passes()) {
        done(t("This was not done."));
      } else if (behavior?.type === "widgetAction") {
        newest.current.act(symbolAction(behavior.id), newest.current.entity);
        done();
      } else if (setter !== undefined) {
        void newest.current.control.put(setter, value).then((succeeded) => done(succeeded ? undefined : t("This was not done.")));
      }
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, [symbol, setters, gate]);
  useEffect(() => {
    if (!loaded) {
      return undefined;
    }
    let wanted = true;
    const { drawing, render, tags, properties } = symbol;
    const functions = [render, ...tags.flatMap((tag) => [tag.render, ...Object.values(tag.actions)])].join("\n");
    void Promise.all([iconsOf(properties), modulesIn(functions)]).then(([icons, modules]) => {
      if (wanted) {
        post({ kind: "program", source: SOURCE, modules, state: { drawing, render, tags, properties, icons, values: JSON.parse(newest.current.values) as Json } });
      }
    }).catch((error: unknown) => setFailure(messageOf(error)));
    return () => {
      wanted = false;
    };
  }, [loaded, symbol]);
  useEffect(() => {
    if (loaded) {
      post({ kind: "news", news: { values: JSON.parse(values) as Json } });
    }
  }, [loaded, values]);
  const drawing = <iframe ref={frame} className={classes["symbol"]} sandbox="allow-scripts" src={SANDBOX_PAGE} title={title || symbol.title || t("Symbol")} onLoad={() => setLoaded(true)} />;
  return (
    <>
      {test === undefined && symbol.behaviors.map((behavior) => (behavior.type === "value" ? <BehaviorReader key={behavior.id} behavior={behavior} target={control.target} onReading={onReading} /> : null))}
      {failure !== undefined && <EmptyState>{t("The code of this widget failed: {problem}", { problem: failure })}</EmptyState>}
      {test === undefined ? (
        <ControlFrame control={control} readings={[...readings.values()]} readOnly={setters.size === 0}>
          {drawing}
        </ControlFrame>
      ) : (
        drawing
      )}
    </>
  );
}

export default function SymbolWidget({ widget, entities, act }: WidgetProps): ReactElement {
  const { settings } = widget;
  const own = text(settings["scadaSymbolContent"]);
  const link = text(settings["scadaSymbolUrl"]) ?? "";
  const drawing = useQuery({ queryKey: ["drawing", link], queryFn: () => drawingText(link), enabled: own === undefined && link !== "", staleTime: Infinity, retry: false });
  const content = own ?? drawing.data;
  const name = entities[0]?.name;
  const symbol = useMemo(
    () => (content === undefined ? undefined : readSymbol(content, object(settings["scadaSymbolObjectSettings"]), (pattern) => fillPattern(pattern, name === undefined ? undefined : { id: { entityType: "", id: "" }, name, latest: new Map(), points: new Map() }, []))),
    [content, settings, name],
  );
  if (own === undefined && link === "") {
    return <EmptyState>{t("No symbol is chosen yet.")}</EmptyState>;
  }
  if (drawing.isError) {
    return <EmptyState>{t("The drawing of this symbol can't be had: {problem}", { problem: messageOf(drawing.error) })}</EmptyState>;
  }
  if (content === undefined) {
    return <Waiting />;
  }
  // The frame begins anew with another symbol, since its scripts may have changed anything.
  return symbol === undefined ? <EmptyState>{t("This is no drawing that can be shown as a symbol.")}</EmptyState> : <DrawnSymbol key={JSON.stringify([content.length, symbol.properties])} symbol={symbol} title={widget.title} entities={entities} act={act} />;
}
