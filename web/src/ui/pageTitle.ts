// The title of the page in tabs, bookmarks and the history: what is looked at, the screen, the product.

import { useEffect } from "react";

const PRODUCT = "Fieldline";
const parts: { thing?: string | undefined; screen?: string | undefined } = {};

/** Returns the parts that there are, from the nearest to the most general; none stands there twice. */
export function titleOf(...named: (string | undefined)[]): string {
  const known = [...named, PRODUCT].filter((part): part is string => part !== undefined && part.trim() !== "");
  return known.filter((part, n) => known.indexOf(part) === n).join(" · ");
}

function usePart(name: "thing" | "screen", value: string | undefined): void {
  useEffect(() => {
    parts[name] = value;
    document.title = titleOf(parts.thing, parts.screen);
    return () => {
      parts[name] = undefined;
    };
  }, [name, value]);
}

/** Names the screen of the present path. */
export const useScreenTitle = (label: string): void => usePart("screen", label);

/** Names the one thing that the screen shows, once it is known. */
export const useThingTitle = (name: string | null | undefined): void => usePart("thing", name ?? undefined);
