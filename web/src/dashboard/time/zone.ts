// Moments and what a calendar and a clock say of them, in a time zone or in that of the browser.

export interface WallClock {
  year: number;
  /** From 0. */
  month: number;
  date: number;
  hour: number;
  minute: number;
  second: number;
  /** From 0 for Sunday. */
  weekday: number;
}

const formats = new Map<string, Intl.DateTimeFormat | undefined>();

function formatOf(zone: string): Intl.DateTimeFormat | undefined {
  if (!formats.has(zone)) {
    let format: Intl.DateTimeFormat | undefined;
    try {
      format = new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" });
    } catch {
      // A zone that this browser doesn't know is read as its own.
    }
    formats.set(zone, format);
  }
  return formats.get(zone);
}

/** Whether the browser knows a time zone. */
export function isZone(zone: string): boolean {
  return formatOf(zone) !== undefined;
}

/** The first and last moment that windows reach: clocks and calendars are of no use far beyond. */
const [FIRST, LAST] = [Date.UTC(1900, 0, 1), Date.UTC(9999, 11, 31)];

/** Returns a moment, or the nearest one of those that clocks can show. */
export function knownMoment(ts: number): number {
  return Number.isFinite(ts) ? Math.min(LAST, Math.max(FIRST, ts)) : 0;
}

/** Returns by how much the clocks of a zone are ahead of UTC at a moment, milliseconds. */
export function offsetOf(moment: number, zone: string | undefined): number {
  const ts = knownMoment(moment);
  const format = zone === undefined ? undefined : formatOf(zone);
  if (format === undefined) {
    return -new Date(ts).getTimezoneOffset() * 60_000;
  }
  const parts = Object.fromEntries(format.formatToParts(ts).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ts / 1_000) * 1_000;
}

export function clockAt(ts: number, zone: string | undefined): WallClock {
  const at = new Date(ts + offsetOf(ts, zone));
  return {
    year: at.getUTCFullYear(),
    month: at.getUTCMonth(),
    date: at.getUTCDate(),
    hour: at.getUTCHours(),
    minute: at.getUTCMinutes(),
    second: at.getUTCSeconds(),
    weekday: at.getUTCDay(),
  };
}

/** Returns the moment at which the clocks of a zone show something. Days, months and hours may run over. */
export function momentOf(zone: string | undefined, year: number, month: number, date = 1, hour = 0, minute = 0, second = 0): number {
  const shown = Date.UTC(year, month, date, hour, minute, second);
  // The offset is that of the moment itself, which is only known once there is a guess of it.
  const guess = shown - offsetOf(shown, zone);
  const found = shown - offsetOf(guess, zone);
  // What the clocks leave out in spring is the moment at which they go on.
  return found < guess && offsetOf(found, zone) !== offsetOf(guess, zone) ? guess : found;
}

/** Writes a moment as the value of a field for date and time. */
export function fieldText(ts: number, zone: string | undefined): string {
  return new Date(knownMoment(ts) + offsetOf(ts, zone)).toISOString().slice(0, 19);
}

/** Reads the value of a field for date and time. */
export function fieldMoment(text: string, zone: string | undefined): number | undefined {
  const match = /^(\d{4,6})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?/.exec(text);
  if (match === null) {
    return undefined;
  }
  const [year = 0, month = 1, date = 1, hour = 0, minute = 0, second = 0] = match.slice(1).map((part) => Number(part ?? 0));
  return momentOf(zone, year, month - 1, date, hour, minute, second);
}
