// Dates in the patterns that settings hold: those of Angular, such as `dd MMM yyyy HH:mm`.

import { currentLanguage } from "@/i18n";
import { dateFormat } from "@/i18n/formats";
import { object, text } from "@/dashboard/json";
import { clockAt, offsetOf } from "@/dashboard/time/zone";

const pad = (n: number, width = 2): string => String(Math.abs(n)).padStart(width, "0");

function named(ts: number, zone: string | undefined, options: Intl.DateTimeFormatOptions): string {
  return dateFormat(currentLanguage(), { ...options, ...(zone === undefined ? {} : { timeZone: zone }) }).format(ts);
}

function offsetText(ts: number, zone: string | undefined): string {
  const minutes = Math.round(offsetOf(ts, zone) / 60_000);
  return `${minutes < 0 ? "-" : "+"}${pad(Math.trunc(minutes / 60))}:${pad(minutes % 60)}`;
}

const PARTS = /'((?:[^']|'')*)'|y+|Q+|M+|L+|d+|E+|a+|H+|h+|m+|s+|S+|Z+|z+|w+/g;

/** Names of whole patterns. */
const PATTERNS: Record<string, Intl.DateTimeFormatOptions> = {
  short: { dateStyle: "short", timeStyle: "short" },
  medium: { dateStyle: "medium", timeStyle: "medium" },
  long: { dateStyle: "long", timeStyle: "long" },
  shortDate: { dateStyle: "short" },
  mediumDate: { dateStyle: "medium" },
  longDate: { dateStyle: "long" },
  fullDate: { dateStyle: "full" },
  shortTime: { timeStyle: "short" },
  mediumTime: { timeStyle: "medium" },
};

/** Shows a moment in a pattern, as clocks of a zone do; letters that mean nothing stay. */
export function datePattern(ts: number, pattern: string, zone?: string): string {
  const whole = PATTERNS[pattern];
  if (whole !== undefined) {
    return named(ts, zone, whole);
  }
  const at = clockAt(ts, zone);
  const hour12 = at.hour % 12 === 0 ? 12 : at.hour % 12;
  return pattern.replace(PARTS, (part, quoted: string | undefined) => {
    if (quoted !== undefined) {
      return quoted === "" ? "'" : quoted.replaceAll("''", "'");
    }
    const n = part.length;
    switch (part[0]) {
      case "y":
        return n === 2 ? pad(at.year % 100) : pad(at.year, n);
      case "Q":
        return `${n > 2 ? "Q" : ""}${Math.floor(at.month / 3) + 1}`;
      case "M":
      case "L":
        return n >= 4 ? named(ts, zone, { month: "long" }) : n === 3 ? named(ts, zone, { month: "short" }) : pad(at.month + 1, n);
      case "d":
        return pad(at.date, n);
      case "E":
        return named(ts, zone, { weekday: n >= 4 ? "long" : "short" });
      case "a":
        return at.hour < 12 ? "AM" : "PM";
      case "H":
        return pad(at.hour, n);
      case "h":
        return pad(hour12, n);
      case "m":
        return pad(at.minute, n);
      case "s":
        return pad(at.second, n);
      case "S":
        return pad(((ts % 1_000) + 1_000) % 1_000, 3).slice(0, n);
      case "Z":
      case "z":
        return offsetText(ts, zone);
      default:
        return part;
    }
  });
}

/** The finest unit that a moment shows. */
export type TimeUnit = "millisecond" | "second" | "minute" | "hour" | "day" | "month" | "year";

const AUTO: Record<TimeUnit, string> = { millisecond: "MMM dd yyyy HH:mm:ss.SSS", second: "MMM dd yyyy HH:mm:ss", minute: "MMM dd yyyy HH:mm", hour: "MMM dd yyyy HH:mm", day: "MMM dd yyyy", month: "MMM yyyy", year: "yyyy" };

/** Returns the finest unit of a moment that isn't zero. */
export function unitOf(ts: number, zone: string | undefined): TimeUnit {
  const { month, date, hour, minute, second } = clockAt(ts, zone);
  return ts % 1_000 !== 0 ? "millisecond" : second !== 0 ? "second" : minute !== 0 ? "minute" : hour !== 0 ? "hour" : date !== 1 ? "day" : month !== 0 ? "month" : "year";
}

/** Whether a stored format of dates shows how long ago something was. */
export function isAgo(format: unknown): boolean {
  return object(format)["lastUpdateAgo"] === true;
}

/** Shows a moment in a stored format of dates; in the usual one of the language if there is none. */
export function formattedDate(ts: number, format: unknown, zone?: string): string {
  const stored = object(format);
  const pattern = text(format) ?? text(stored["format"]);
  if (stored["auto"] === true) {
    const unit = unitOf(ts, zone);
    return datePattern(ts, text(object(stored["autoDateFormatSettings"])[unit]) ?? AUTO[unit], zone);
  }
  return datePattern(ts, pattern ?? "medium", zone);
}
