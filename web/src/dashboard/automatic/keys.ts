// What is known of the keys that automatic dashboards are made of: their kind, their unit, which belong together.

import type { Scope } from "@/api/types";

/** A key with its newest value, which tells what it is. */
export interface KnownKey {
  name: string;
  /** Of which attributes; telemetry has none. */
  scope?: Scope;
  /** The newest value of whichever entity. */
  sample: unknown;
  /** How many of the sampled entities have it. */
  count: number;
}

/** How a key is shown. */
export interface Look {
  units?: string;
  decimals?: number;
  icon?: string;
  /** The ends of a scale that the unit has by itself. */
  scale?: [number, number];
}

/** What the server keeps of a device's connection, which its page says already. */
const OF_THE_SERVER = new Set(["active", "lastActivityTime", "lastConnectTime", "lastDisconnectTime", "inactivityAlarmTime", "inactivityTimeout"]);

/** Whether a key says something of the thing, and not of its connection. */
export const isOwn = (key: KnownKey): boolean => key.scope === undefined || !OF_THE_SERVER.has(key.name);

/** Returns where the newest value of a key is asked for: attributes of one name in several scopes are one there. */
export const placeOf = ({ name, scope }: Pick<KnownKey, "name" | "scope">): { type: string; key: string } => ({ type: scope === undefined ? "TIME_SERIES" : "ATTRIBUTE", key: name });

export const samePlace = (a: KnownKey, b: KnownKey): boolean => a.name === b.name && (a.scope === undefined) === (b.scope === undefined);

/** Returns keys of which each is shown as something else: the first one of a name counts. */
export const distinct = (keys: readonly KnownKey[]): KnownKey[] => keys.filter((key, n) => keys.findIndex((one) => samePlace(one, key)) === n);

export function kindOf({ sample }: KnownKey): "number" | "boolean" | "text" {
  if (typeof sample === "boolean" || sample === "true" || sample === "false") {
    return "boolean";
  }
  const text = typeof sample === "string" ? sample.trim() : "";
  return typeof sample === "number" || (text !== "" && Number.isFinite(Number(text))) ? "number" : "text";
}

/** Splits a name such as `batteryLevel_pct` into its words. */
function wordsIn(name: string): string[] {
  return name.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase().split(/[^a-z\d]+/).filter((word) => word !== "");
}

const PERCENT: Look = { units: "%", decimals: 1, scale: [0, 100] };
const CELSIUS: Look = { units: "°C", decimals: 1, icon: "thermostat" };

/** Units that are words of a name themselves. */
const UNITS: Record<string, Look> = {
  celsius: CELSIUS, fahrenheit: { units: "°F", decimals: 1, icon: "thermostat" }, percent: PERCENT, percentage: PERCENT, pct: PERCENT,
  kw: { units: "kW" }, kwh: { units: "kWh" }, wh: { units: "Wh" }, mwh: { units: "MWh" }, mv: { units: "mV" }, ma: { units: "mA" }, hz: { units: "Hz" },
  ppm: { units: "ppm" }, ppb: { units: "ppb" }, hpa: { units: "hPa" }, kpa: { units: "kPa" }, mbar: { units: "mbar" }, bar: { units: "bar" }, psi: { units: "psi" },
  dbm: { units: "dBm" }, db: { units: "dB" }, lux: { units: "lx" }, lx: { units: "lx" }, rpm: { units: "rpm" }, kmh: { units: "km/h" }, mm: { units: "mm" }, cm: { units: "cm" }, kg: { units: "kg" }, ms: { units: "ms" },
};
/** What has only one usual unit. */
const QUANTITIES: Record<string, Look> = {
  temperature: CELSIUS, temp: CELSIUS, humidity: { ...PERCENT, icon: "water_drop" }, moisture: { ...PERCENT, icon: "water_drop" },
  battery: { ...PERCENT, icon: "battery_full" }, soc: { ...PERCENT, icon: "battery_full" }, voltage: { units: "V", icon: "bolt" }, rssi: { units: "dBm", icon: "network_cell" }, snr: { units: "dB", icon: "network_cell" },
  co2: { units: "ppm", icon: "co2" }, illuminance: { units: "lx", icon: "light_mode" }, luminosity: { units: "lx", icon: "light_mode" },
};
/** What would mean something else as a part of a longer name: `currentSpeed` is no current. */
const LAST: Record<string, Look> = { current: { units: "A", icon: "bolt" }, frequency: { units: "Hz" } };
/** Names that end so count or date something. */
const UNITLESS = new Set(["count", "counter", "id", "index", "time", "timestamp", "ts", "state", "status", "mode", "alarm", "version", "ratio", "factor"]);
const ICONS: Record<string, string> = { power: "bolt", energy: "bolt", consumption: "bolt", pressure: "speed", speed: "speed", level: "water_drop", flow: "water_drop", wind: "air", noise: "volume_up", light: "light_mode", signal: "network_cell" };

/** Returns how a number is shown, as far as its name says it. */
export function lookOf({ name, sample }: Pick<KnownKey, "name" | "sample">): Look {
  const words = wordsIn(name);
  const last = words.at(-1) ?? "";
  const value = Number(sample);
  // Small numbers would be zero with two decimals.
  const decimals = value !== 0 && Math.abs(value) < 0.1 ? 5 : 2;
  const icon = [...words].reverse().map((word) => QUANTITIES[word]?.icon ?? LAST[word]?.icon ?? ICONS[word]).find((one) => one !== undefined);
  const plain: Look = { decimals, ...(icon === undefined ? {} : { icon }) };
  if (UNITLESS.has(last)) {
    return { decimals };
  }
  const own = /^[cf]$/.test(last) && /^temp/.test(words.at(-2) ?? "") ? UNITS[last === "c" ? "celsius" : "fahrenheit"] : undefined;
  const known = own ?? (words.length > 1 ? UNITS[last] : undefined) ?? LAST[last] ?? [...words].reverse().map((word) => QUANTITIES[word]).find((one) => one !== undefined);
  // What is called like a share and lies beyond one is something else.
  return known === undefined || (known.scale !== undefined && (value < known.scale[0] || value > known.scale[1])) ? plain : { ...plain, ...known };
}

/** The keys that have the place of an entity. */
export interface Coordinates {
  x: KnownKey;
  y: KnownKey;
}

const PAIRS = [["latitude", "longitude"], ["lat", "lon"], ["lat", "lng"]] as const;

/** Returns the place among keys: telemetry comes first, as that of a thing that moves. */
export function coordinatesIn(keys: readonly KnownKey[]): Coordinates | undefined {
  const numbers = keys.filter((key) => kindOf(key) === "number");
  for (const ofTelemetry of [true, false]) {
    const find = (name: string): KnownKey | undefined => numbers.find((key) => key.name === name && (key.scope === undefined) === ofTelemetry);
    for (const [lat, long] of PAIRS) {
      const [x, y] = [find(lat), find(long)];
      if (x !== undefined && y !== undefined) {
        return { x, y };
      }
    }
  }
  return undefined;
}

/** The most lines of one chart that can be told apart. */
const LINES = 6;
/** Values that differ more than this hide each other on one scale. */
const SPAN = 20;

/** Groups numbers that one scale can show: those of a unit, and of those without one the ones of similar size. */
export function chartGroups(keys: readonly KnownKey[]): KnownKey[][] {
  const groups = new Map<string, KnownKey[]>();
  const join = (name: string, key: KnownKey): void => void groups.set(name, [...(groups.get(name) ?? []), key]);
  keys.forEach((key) => {
    const { units } = lookOf(key);
    if (units !== undefined) {
      join(units, key);
    }
  });
  const size = ({ sample }: KnownKey): number => Math.abs(Number(sample));
  const unitless = keys.filter((key) => lookOf(key).units === undefined).sort((a, b) => size(a) - size(b));
  let least = -1;
  unitless.forEach((key) => {
    least = least >= 0 && size(key) <= Math.max(1, least) * SPAN ? least : size(key);
    join(`about ${least}`, key);
  });
  return [...groups.values()].flatMap((group) => Array.from({ length: Math.ceil(group.length / LINES) }, (_, n) => group.slice(n * LINES, (n + 1) * LINES)));
}
