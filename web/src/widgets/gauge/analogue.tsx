// Analogue gauges: a needle over a dial, a compass, a thermometer.

import type { CSSProperties, ReactElement } from "react";
import { list, number, object, text } from "@/dashboard/json";
import { LETTERS_ON } from "@/dashboard/look";
import { chosen, inkColor, safeColor, schemeOn } from "../color";
import { onCircle, ringPath, ticksOf } from "../shapes";
import { shareOf } from "../values";
import { inkOf, LETTERS, short, type FaceProps } from "./digital";
import classes from "../gauge.module.css";

const LINE = "var(--mantine-color-default-border)";

/** A plate of the usual white or black follows the theme. */
function plateOf(value: unknown): string | undefined {
  const color = chosen(value);
  return color === undefined || /^#(fff(fff)?|000(000)?)$/i.test(color) ? undefined : color;
}

/** What is drawn on a plate of its own keeps the colours that were chosen for it, whatever the theme. */
function onPlate(plate: string | undefined): CSSProperties {
  const scheme = plate === undefined ? undefined : schemeOn(plate);
  return scheme === undefined ? {} : { colorScheme: scheme, color: LETTERS_ON[scheme] };
}

const tickColor = (value: unknown): string => inkColor(chosen(value) ?? "currentColor");

function Needle({ shown, value, settings, scale, color }: FaceProps): ReactElement {
  const sweep = number(settings["ticksAngle"]) ?? 270;
  const start = (number(settings["startAngle"]) ?? 45) - 180;
  const angle = (at: number): number => start + sweep * shareOf(at, scale);
  const [tipX, tipY] = onCircle(50, 50, 36, angle(value));
  const major = ticksOf(...scale, Math.min(12, Math.max(2, number(settings["majorTicksCount"]) ?? 10)));
  const step = (major[1] ?? scale[1]) - (major[0] ?? scale[0]);
  const between = Math.min(10, Math.max(0, number(settings["minorTicks"]) ?? 2));
  const minor = between < 2 ? [] : major.flatMap((tick) => Array.from({ length: between - 1 }, (_, n) => tick + (step * (n + 1)) / between)).filter((tick) => tick <= scale[1]);
  const width = Math.min(15, Math.max(1, (number(settings["highlightsWidth"]) ?? 15) / 4));
  const mark = (tick: number, length: number): [[number, number], [number, number]] => [onCircle(50, 50, 45, angle(tick)), onCircle(50, 50, 45 - length, angle(tick))];
  const plate = plateOf(settings["colorPlate"]);
  return (
    <g style={onPlate(plate)}>
      <circle cx="50" cy="50" r="48" fill={plate ?? "none"} stroke={settings["showBorder"] === false ? "none" : LINE} strokeWidth="1.5" />
      {list(settings["highlights"]).map((stored, n) => {
        const { from, to, color: own } = object(stored);
        return <path key={n} d={ringPath(50, 50, 45, 45 - width, angle(number(from) ?? scale[0]), angle(number(to) ?? scale[1]))} fill={safeColor(own) ?? "transparent"} />;
      })}
      {minor.map((tick) => {
        const [[x1, y1], [x2, y2]] = mark(tick, 2.5);
        return <line key={tick} x1={x1} y1={y1} x2={x2} y2={y2} style={{ stroke: tickColor(settings["colorMinorTicks"]) }} strokeWidth="0.4" />;
      })}
      {major.map((tick) => {
        const [[x1, y1], [x2, y2]] = mark(tick, 5);
        const [x, y] = onCircle(50, 50, 33, angle(tick));
        return (
          <g key={tick}>
            <line x1={x1} y1={y1} x2={x2} y2={y2} style={{ stroke: tickColor(settings["colorMajorTicks"]) }} strokeWidth="0.8" />
            <text x={x} y={y + 1.6} className={classes["tick"]} style={inkOf(settings, "numbersFont", LETTERS.analogue)}>
              {short(tick)}
            </text>
          </g>
        );
      })}
      {settings["showUnitTitle"] !== false && text(settings["unitTitle"]) !== undefined && (
        <text x="50" y="34" className={classes["small"]} style={inkOf(settings, "unitsFont", LETTERS.analogue)}>
          {text(settings["unitTitle"])}
        </text>
      )}
      {Number.isFinite(value) && <line x1="50" y1="50" x2={tipX} y2={tipY} stroke={color} strokeWidth="2" strokeLinecap="round" />}
      <circle cx="50" cy="50" r="3" fill={color} />
      {settings["valueBox"] !== false && (
        <text x="50" y="76" className={classes["middle"]} style={inkOf(settings, "valueFont", LETTERS.analogue)}>
          {shown}
        </text>
      )}
    </g>
  );
}

function Compass({ shown, value, color, settings }: FaceProps): ReactElement {
  const names = list(settings["majorTicks"]).flatMap((one) => text(one) ?? []);
  const plate = plateOf(settings["colorPlate"]);
  const shownNames = names.length === 8 ? names : ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
  const [between, middle] = [Math.min(45, Math.max(0, Math.floor(number(settings["minorTicks"]) ?? 22))), Math.min(50, Math.max(0, number(settings["needleCircleSize"]) ?? 15)) / 5];
  const lines = Array.from({ length: 8 * (between + 1) }, (_, n) => ({ angle: (n * 45) / (between + 1), isMajor: n % (between + 1) === 0 }));
  return (
    <g style={onPlate(plate)}>
      <circle cx="50" cy="50" r="47" fill={plate ?? "none"} stroke={settings["showBorder"] === false ? "none" : (chosen(settings["colorBorder"]) ?? LINE)} strokeWidth="1.5" />
      {lines.map(({ angle, isMajor }) => {
        const [[x1, y1], [x2, y2]] = [onCircle(50, 50, 46, angle), onCircle(50, 50, isMajor ? 43 : 44.5, angle)];
        return <line key={angle} x1={x1} y1={y1} x2={x2} y2={y2} style={{ stroke: tickColor(settings[isMajor ? "colorMajorTicks" : "colorMinorTicks"]) }} strokeWidth={isMajor ? 0.8 : 0.3} />;
      })}
      {shownNames.map((name, n) => {
        const [x, y] = onCircle(50, 50, 37, n * 45);
        return (
          <text key={n} x={x} y={y + 2.5} className={n % 2 === 0 ? classes["middle"] : classes["small"]} style={{ ...(plate === undefined ? {} : { fill: "#ccc" }), ...inkOf(settings, "majorTickFont", LETTERS.analogue) }}>
            {name}
          </text>
        );
      })}
      <g transform={`rotate(${Number.isFinite(value) ? value : 0} 50 50)`}>
        <path d="M 50 20 L 55 50 L 45 50 Z" fill={color} />
        <path d="M 50 80 L 55 50 L 45 50 Z" fill="var(--mantine-color-dimmed)" />
        {middle > 0 && <circle cx="50" cy="50" r={middle} fill={chosen(settings["colorNeedleCircle"]) ?? "#e8e8e8"} />}
      </g>
      <rect x="33" y="57" width="34" height="11" rx="2" fill="var(--mantine-color-body)" opacity="0.85" />
      <text x="50" y="65" className={classes["middle"]}>
        {shown}
      </text>
    </g>
  );
}

function Upright({ shown, value, scale, color, settings, bulb }: FaceProps & { bulb: boolean }): ReactElement {
  const height = 70 * shareOf(value, scale);
  const letters = bulb ? LETTERS.analogue : LETTERS.digital;
  return (
    <>
      <rect x="32" y="8" width="12" height="70" rx={bulb ? 6 : 2} fill={LINE} />
      <rect x="32" y={78 - height} width="12" height={height} rx={bulb ? 6 : 2} fill={color} />
      {bulb && <circle cx="38" cy="82" r="10" fill={color} />}
      {ticksOf(...scale, 5).map((tick) => (
        <text key={tick} x="48" y={80 - 70 * shareOf(tick, scale)} className={classes["side"]} style={inkOf(settings, "numbersFont", letters)}>
          {short(tick)}
        </text>
      ))}
      <text x="50" y={bulb ? 99 : 93} className={classes["middle"]} style={inkOf(settings, "valueFont", letters)}>
        {shown}
      </text>
    </>
  );
}

type AnalogueProps = FaceProps & { look: "needle" | "compass" | "thermometer" | "verticalBar" };

export default function Analogue({ look, ...face }: AnalogueProps): ReactElement {
  switch (look) {
    case "needle":
      return <Needle {...face} />;
    case "compass":
      return <Compass {...face} />;
    default:
      return <Upright {...face} bulb={look === "thermometer"} />;
  }
}
