// A number that is set by turning a knob, by pointer or keys.

import { useRef, useState, type KeyboardEvent, type PointerEvent, type ReactElement } from "react";
import { number, text } from "@/dashboard/model";
import { t } from "@/i18n";
import type { WidgetProps } from "../registry";
import { onCircle } from "../shapes";
import { scaleOf, shareOf } from "../values";
import { ControlFrame } from "./ControlFrame";
import { numberOf, shownNumber, snapped, stepFor, type Limits } from "./numbers";
import { getterOf, olderGetter, olderSetter, setterOf } from "./settings";
import { useControl, useSetting } from "./useControl";
import { useReading } from "./useReading";
import classes from "./control.module.css";

/** The knob turns this far, degrees; its beginning lies to the left below. */
const TURN = 270;
const BEGIN = 225;

/** Returns the share of the turn that a pointer beside the middle stands for; at the open bottom the nearer end. */
export function shareAt(dx: number, dy: number): number {
  const degrees = (Math.atan2(dx, -dy) * 180) / Math.PI;
  const turned = (degrees - BEGIN + 720) % 360;
  return turned <= TURN ? turned / TURN : turned < TURN + (360 - TURN) / 2 ? 1 : 0;
}

const KEYS: Record<string, (value: number, limits: Limits) => number> = {
  ArrowUp: (value, { step }) => value + step,
  ArrowRight: (value, { step }) => value + step,
  ArrowDown: (value, { step }) => value - step,
  ArrowLeft: (value, { step }) => value - step,
  PageUp: (value, { low, high }) => value + (high - low) / 10,
  PageDown: (value, { low, high }) => value - (high - low) / 10,
  Home: (_value, { low }) => low,
  End: (_value, { high }) => high,
};

export default function Knob({ widget, entities }: WidgetProps): ReactElement {
  const { settings, config } = widget;
  const [low, high] = scaleOf(settings);
  const format = { valueUnits: config["units"], valueDecimals: number(config["decimals"]) ?? 0 };
  const limits = { low, high, step: stepFor(format.valueDecimals) };
  const isOlder = settings["initialState"] === undefined && (settings["getValueMethod"] !== undefined || settings["setValueMethod"] !== undefined);
  const change = isOlder ? olderSetter(settings) : setterOf(settings["valueChange"]);
  const getter = isOlder ? { ...olderGetter(settings, "rpc"), on: undefined, defaultValue: settings["initialValue"] } : getterOf(settings["initialState"], "value");
  const control = useControl(entities, change);
  const state = useReading(getter, control.target);
  const setting = useSetting(control, state);
  const [held, setHeld] = useState<number>();
  const drawing = useRef<SVGSVGElement>(null);
  const known = numberOf(setting.value);
  const value = held ?? known ?? low;
  const still = control.locked !== undefined;
  const send = (next: number | undefined): void => {
    if (next !== undefined && next !== known) {
      setting.set(change, next);
    }
    setHeld(undefined);
  };
  const at = (event: PointerEvent): number => {
    const box = drawing.current?.getBoundingClientRect() ?? { left: 0, top: 0, width: 0, height: 0 };
    return snapped(low + shareAt(event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2) * (high - low), limits);
  };
  const keys = (event: KeyboardEvent): void => {
    const move = KEYS[event.key];
    if (move !== undefined && !still) {
      event.preventDefault();
      send(snapped(move(value, limits), limits));
    }
  };
  const turned = BEGIN + shareOf(value, [low, high]) * TURN;
  const [x, y] = onCircle(50, 50, 27, turned);
  const arc = (from: number, to: number): string => {
    const [x1, y1] = onCircle(50, 50, 42, from);
    const [x2, y2] = onCircle(50, 50, 42, to);
    return `M${x1} ${y1}A42 42 0 ${to - from > 180 ? 1 : 0} 1 ${x2} ${y2}`;
  };
  return (
    <ControlFrame control={control} readings={[state]}>
      <svg
        ref={drawing}
        className={classes["knob"]}
        viewBox="0 0 100 100"
        role="slider"
        tabIndex={0}
        aria-label={text(settings["title"]) ?? (widget.title || t("Value"))}
        aria-valuemin={low}
        aria-valuemax={high}
        aria-valuenow={value}
        aria-valuetext={shownNumber(held ?? known, format)}
        aria-disabled={still || undefined}
        onKeyDown={keys}
        onPointerDown={(event) => {
          if (!still && event.button === 0) {
            event.currentTarget.setPointerCapture(event.pointerId);
            setHeld(at(event));
          }
        }}
        onPointerMove={(event) => held !== undefined && setHeld(at(event))}
        onPointerUp={() => send(held)}
        onPointerCancel={() => setHeld(undefined)}
      >
        <path d={arc(BEGIN, BEGIN + TURN)} fill="none" stroke="light-dark(#d5dbd8, #3b4541)" strokeWidth="6" strokeLinecap="round" style={{ stroke: "light-dark(#d5dbd8, #3b4541)" }} />
        {turned > BEGIN && <path d={arc(BEGIN, turned)} fill="none" strokeWidth="6" strokeLinecap="round" style={{ stroke: "var(--mantine-color-anchor)" }} />}
        <circle cx="50" cy="50" r="34" style={{ fill: "light-dark(#f2f5f3, #262e2b)", stroke: "light-dark(#8b9791, #6b7570)" }} />
        <circle cx={x} cy={y} r="4" style={{ fill: "var(--mantine-color-anchor)" }} />
        <text x="50" y="54" fontSize="13" fontWeight="600" data-value>
          {shownNumber(held ?? known, format)}
        </text>
        <text x="20" y="97" fontSize="7">{low}</text>
        <text x="80" y="97" fontSize="7">{high}</text>
        {text(settings["title"]) !== undefined && <text x="50" y="97" fontSize="7">{text(settings["title"])}</text>}
      </svg>
    </ControlFrame>
  );
}
