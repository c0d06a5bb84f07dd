// The pins of a board: switches that ask and tell the device, or lamps that show keys named after the pins.

import { Fragment, useEffect, useState, type ReactElement } from "react";
import { list, number, object, text, type Json } from "@/dashboard/model";
import { usePlace } from "@/dashboard/place";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { begunWith } from "../beginnings";
import { safeColor, schemeOn } from "../color";
import { bodyOf } from "@/dashboard/actions";
import type { WidgetProps } from "../registry";
import { readings } from "../values";
import { ControlFrame } from "./ControlFrame";
import { applied, parsed } from "./convert";
import { GPIO } from "./olderSettings";
import { rpcOf, type RpcOptions, type Setter } from "./settings";
import { useControl } from "./useControl";
import classes from "./control.module.css";

export interface Pin {
  pin: number;
  label: string;
  color: string;
}

/** Returns the pins of a board, row by row; a place without one stays empty. */
export function pinsOf(settings: Json): (Pin | undefined)[][] {
  const pins = list(settings["gpioList"]).map(object);
  const height = pins.reduce((most, pin) => Math.max(most, (number(pin["row"]) ?? 0) + 1), 0);
  return Array.from({ length: Math.min(100, height) }, (_, row) =>
    [0, 1].map((col) => {
      const found = pins.find((pin) => (number(pin["row"]) ?? 0) === row && (number(pin["col"]) ?? 0) === col);
      const pin = number(found?.["pin"]);
      return found === undefined || pin === undefined ? undefined : { pin, label: text(found["label"]) ?? String(pin), color: safeColor(found["color"]) ?? "#4caf50" };
    }),
  );
}

/** Fills the pin and its new state into the parameters of a request. */
export function pinParams(body: string, pin: number, enabled: boolean): unknown {
  return parsed(body.replaceAll('"{$pin}"', String(pin)).replaceAll('"{$enabled}"', String(enabled)));
}

export interface Board {
  pins: (Pin | undefined)[][];
  rpc: RpcOptions;
  /** How the states of all pins are asked for, and how one is changed. */
  ask: { method: string; params: string };
  tell: { method: string; params: string };
  /** Function that says whether a pin is on. */
  parse: string;
  ground: string | undefined;
}

/** Reads a board of pins; `part` is what it consists of. */
export function readBoard(stored: Json, part: "switch" | "led"): Board {
  const settings = begunWith(GPIO, stored);
  const request = (name: string): Board["ask"] => {
    const { method, paramsBody } = object(settings[name]);
    return { method: text(method) ?? "", params: text(paramsBody) ?? "{}" };
  };
  return {
    pins: pinsOf(settings),
    rpc: { ...rpcOf(settings, ""), timeoutMs: number(settings["requestTimeout"]) ?? 1_000 },
    ask: request("gpioStatusRequest"),
    tell: request("gpioStatusChangeRequest"),
    parse: bodyOf(settings["parseGpioStatusFunction"]) ?? "",
    ground: safeColor(settings[`${part}PanelBackgroundColor`]),
  };
}

const ASKS = { action: "EXECUTE_RPC" } as Setter;

/** Small letters on boards in strong colours need all the contrast there is. */
const INK_ON = { light: "#000", dark: "#fff" };

function Pins({ board: { pins, ground }, cell }: { board: Board; cell: (pin: Pin) => ReactElement }): ReactElement {
  if (pins.length === 0) {
    return <EmptyState>{t("This board has no pins yet.")}</EmptyState>;
  }
  const scheme = ground === undefined ? undefined : schemeOn(ground);
  return (
    <div className={classes["pins"]} style={scheme === undefined ? {} : { background: ground, color: INK_ON[scheme], padding: 8, borderRadius: 4 }}>
      {pins.map(([left, right], n) => (
        <Fragment key={n}>
          <span>{left?.label}</span>
          <span className={classes["pin"]}>{left !== undefined && <>{left.pin} {cell(left)}</>}</span>
          <span className={classes["pin"]}>{right !== undefined && <>{cell(right)} {right.pin}</>}</span>
          <span>{right?.label}</span>
        </Fragment>
      ))}
    </div>
  );
}

function Panel({ widget, sources, entities }: WidgetProps): ReactElement {
  const control = useControl(entities, undefined);
  const lit = new Set(readings(sources).filter(({ point }) => point?.value === "true").map(({ key }) => key.label));
  return (
    <ControlFrame control={control} readOnly>
      <Pins
        board={readBoard(widget.settings, "led")}
        cell={({ pin, label, color }) => {
          const isOn = lit.has(String(pin));
          return <i role="img" aria-label={`${label}: ${t(isOn ? "On" : "Off")}`} data-on={isOn} style={{ background: isOn ? color : "transparent" }} />;
        }}
      />
    </ControlFrame>
  );
}

function Switches({ widget, entities }: WidgetProps): ReactElement {
  const { settings } = widget;
  const { editing } = usePlace();
  const control = useControl(entities, ASKS);
  const [states, setStates] = useState<ReadonlyMap<number, boolean>>(new Map());
  const board = readBoard(settings, "switch");
  const { ask, tell, parse } = board;
  const rpc = { ...board.rpc, twoWay: true };
  const take = async (answer: unknown, pins: number[]): Promise<void> => {
    const found = await Promise.all(pins.map(async (pin) => [pin, await applied(parse, ["body", "pin"], answer, pin)] as const));
    const failed = found.find(([, made]) => made.problem !== undefined);
    if (failed !== undefined) {
      throw new Error(failed[1].problem);
    }
    setStates((before) => new Map([...before, ...found.map(([pin, made]) => [pin, made.value === true] as const)]));
  };
  const all = (): Promise<boolean> =>
    control.run(async () => take(await control.call({ ...rpc, method: ask.method, params: parsed(ask.params) }), board.pins.flat().flatMap((pin) => pin?.pin ?? [])), rpc.timeoutMs);
  const id = control.target?.id.id;
  useEffect(() => {
    if (id !== undefined && control.locked === undefined && !editing) {
      void all();
    }
  }, [id, control.locked, editing, JSON.stringify(settings)]);
  const flip = (pin: number, enabled: boolean): Promise<boolean> =>
    control.run(async () => take(await control.call({ ...rpc, method: tell.method, params: pinParams(tell.params, pin, enabled) }), [pin]), rpc.timeoutMs);
  return (
    <ControlFrame control={control}>
      <Pins
        board={board}
        cell={({ pin, label }) => (
          <input
            type="checkbox"
            role="switch"
            className={classes["switch"]}
            aria-label={label}
            aria-disabled={control.locked !== undefined || undefined}
            checked={states.get(pin) === true}
            onChange={() => control.pending || void flip(pin, states.get(pin) !== true)}
          />
        )}
      />
    </ControlFrame>
  );
}

export default function Gpio(props: WidgetProps): ReactElement {
  return props.widget.fqn.endsWith("_panel") ? <Panel {...props} /> : <Switches {...props} />;
}
