// The drawings of icons, which are named as in dashboards: `device_thermostat`, `mdi:gauge`. They come in parts, when they are needed.

import { useMemo, useSyncExternalStore } from "react";
import { PARTS } from "virtual:icon-packs";

/** What draws an icon in a square of 24. */
export interface IconDrawing {
  path: string;
  rule: "nonzero" | "evenodd";
}

/** How long it takes until a part that could not be had is asked for again. */
const RETRY_MS = 30_000;

type Part = Readonly<Record<string, string>>;

/** Returns the part that a name is in: the last one that doesn't begin behind it. */
export function partOf(name: string, parts: typeof PARTS = PARTS): string | undefined {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((parts[middle]?.[0] ?? "") <= name) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return parts[low - 1]?.[1];
}

const loading = new Map<string, Promise<Part | undefined>>();
const loaded = new Map<string, Part | undefined>();
const listeners = new Set<() => void>();
let version = 0;

async function fetchPart(url: string): Promise<Part | undefined> {
  try {
    const answer = await fetch(url);
    return answer.ok ? ((await answer.json()) as Part) : undefined;
  } catch {
    return undefined;
  }
}

function load(url: string): Promise<Part | undefined> {
  const begun = loading.get(url);
  if (begun !== undefined) {
    return begun;
  }
  const part = fetchPart(url).then((found) => {
    loaded.set(url, found);
    if (found === undefined) {
      loading.delete(url);
      setTimeout(() => loaded.delete(url), RETRY_MS);
    }
    version += 1;
    listeners.forEach((hear) => hear());
    return found;
  });
  loading.set(url, part);
  return part;
}

function drawn(part: Part | undefined, name: string): IconDrawing | undefined {
  const path = part !== undefined && Object.hasOwn(part, name) ? part[name] : undefined;
  return path === undefined ? undefined : path.startsWith("E") ? { path: path.slice(1), rule: "evenodd" } : { path, rule: "nonzero" };
}

/** Returns the drawing of an icon, once it has come. There is none for a name that no set has. */
export async function loadDrawing(name: string): Promise<IconDrawing | undefined> {
  const url = partOf(name);
  return url === undefined ? undefined : drawn(await load(url), name);
}

const subscribe = (hear: () => void): (() => void) => {
  listeners.add(hear);
  return () => listeners.delete(hear);
};

/** Returns the drawing of an icon if it is there; else it is on its way. */
function drawingOf(name: string): IconDrawing | undefined {
  const url = name === "" ? undefined : partOf(name);
  if (url === undefined) {
    return undefined;
  }
  if (!loaded.has(url)) {
    void load(url);
  }
  return drawn(loaded.get(url), name);
}

/** Returns a function for drawings that are there. The component is rendered again when one that it asked for has come. */
export function useDrawings(): (name: string) => IconDrawing | undefined {
  useSyncExternalStore(subscribe, () => version);
  return drawingOf;
}

/** Returns whether no set has an icon; while its part is on its way, that isn't known. */
export function isMissing(name: string, url: string | undefined, part: Part | undefined): boolean {
  return name !== "" && (url === undefined || (part !== undefined && !Object.hasOwn(part, name)));
}

/** Returns a function for names that no set has, another one whenever more is known. */
export function useMissingIcons(): (name: string) => boolean {
  const known = useSyncExternalStore(subscribe, () => version);
  return useMemo(
    () => (name) => {
      drawingOf(name);
      const url = partOf(name);
      return isMissing(name, url, url === undefined ? undefined : loaded.get(url));
    },
    [known],
  );
}
