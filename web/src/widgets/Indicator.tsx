// A battery, the strength of a signal, a state or the wind, each as a picture.

import type { ReactElement } from "react";
import { number, object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { colorOf, safeColor } from "./color";
import type { WidgetProps } from "./registry";
import { onCircle } from "./shapes";
import { singleOf, type Single } from "./values";
import classes from "./gauge.module.css";

interface PictureProps {
  single: Single;
  settings: Json;
}

const GREY = "var(--mantine-color-default-border)";
/** The strengths in dBm from which one, two, three and four bars are lit. */
const BARS = [-100, -85, -70, -55];

/** Returns how many of four bars a strength lights. */
export function litBars(value: number, none: number): number {
  return value <= none || !Number.isFinite(value) ? 0 : BARS.filter((limit) => value > limit).length;
}

function Battery({ single, settings }: PictureProps): ReactElement {
  const sections = Math.min(20, Math.max(2, number(settings["sectionsCount"]) ?? 4));
  const lit = Math.ceil((Math.min(100, Math.max(0, single.value || 0)) / 100) * sections);
  const color = colorOf(settings["batteryLevelColor"], single.value, single.value > 20 ? "#5cb85c" : "#e5484d");
  const width = 66 / sections;
  return (
    <>
      <rect x="10" y="25" width="72" height="34" rx="4" fill="none" stroke="currentColor" strokeWidth="2" />
      <rect x="84" y="35" width="5" height="14" rx="1" fill="currentColor" />
      {Array.from({ length: sections }, (_, n) => (
        <rect key={n} x={13 + n * width} y="28" width={width - 1} height="28" fill={n < lit ? color : GREY} />
      ))}
    </>
  );
}

function Signal({ single, settings }: PictureProps): ReactElement {
  const lit = litBars(single.value, number(settings["noSignalRssiValue"]) ?? -100);
  const color = colorOf(settings["activeBarsColor"], single.value, "#5cb85c");
  return (
    <>
      {BARS.map((_, n) => (
        <rect key={n} x={18 + n * 17} y={48 - n * 12} width="12" height={12 + n * 12} rx="2" fill={n < lit ? color : GREY} />
      ))}
    </>
  );
}

function Wind({ single, second }: { single: Single; second: string | undefined }): ReactElement {
  const [x, y] = onCircle(50, 38, 24, single.value || 0);
  return (
    <>
      <circle cx="50" cy="38" r="30" fill="none" stroke={GREY} strokeWidth="3" />
      {["N", "E", "S", "W"].map((name, n) => {
        const [left, top] = onCircle(50, 38, 24, n * 90);
        return (
          <text key={name} x={left} y={top + 2} className={classes["small"]}>
            {name}
          </text>
        );
      })}
      <line x1="50" y1="38" x2={x} y2={y} stroke="#2196f3" strokeWidth="2.5" strokeLinecap="round" />
      <text x="50" y="46" className={classes["small"]}>
        {second ?? ""}
      </text>
    </>
  );
}

export default function Indicator({ widget, sources }: WidgetProps): ReactElement {
  const single = singleOf(widget, sources);
  const { settings } = widget;
  if (/status_widget/.test(widget.fqn)) {
    const on = ["true", "1", "on"].includes((single.point?.value ?? "").toLowerCase());
    const state = object(settings[on ? "onState" : "offState"]);
    const status = single.point === undefined ? "–" : (text(state["status"]) ?? t(on ? "On" : "Off"));
    return (
      <figure className={classes["gauge"]}>
        <svg viewBox="0 0 100 80" role="img" aria-label={status} data-value={status} data-drawing>
          <circle cx="50" cy="34" r="22" fill={on ? (safeColor(object(state["icon"])["color"]) ?? "#5cb85c") : GREY} />
          <text x="50" y="74" className={classes["big"]}>
            {status}
          </text>
        </svg>
        <figcaption>{text(state["label"]) ?? single.label}</figcaption>
      </figure>
    );
  }
  const isWind = /wind/.test(widget.fqn);
  const keys = sources[0]?.source.dataKeys ?? [];
  const speed = keys[1] === undefined ? undefined : singleOf(widget, [{ ...sources[0], source: { ...sources[0]?.source, dataKeys: [keys[1]] } }] as typeof sources).text;
  return (
    <figure className={classes["gauge"]}>
      <svg viewBox="0 0 100 80" role="img" aria-label={`${single.label}: ${single.text}`} data-value={single.text} data-drawing>
        {isWind ? <Wind single={single} second={speed} /> : /battery/.test(widget.fqn) ? <Battery single={single} settings={settings} /> : <Signal single={single} settings={settings} />}
        <text x="50" y="76" className={classes["big"]}>
          {single.text}
        </text>
      </svg>
      <figcaption>{single.label}</figcaption>
    </figure>
  );
}
