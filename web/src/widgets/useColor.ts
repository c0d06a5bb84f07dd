// A colour that settings give a value, also by a function of theirs, which runs in the sandbox.

import { useEffect, useRef, useState } from "react";
import { bodyOf } from "@/dashboard/actions";
import { object } from "@/dashboard/json";
import { callInSandbox } from "@/sandbox/calls";
import { chosen, colorOf, safeColor } from "./color";

/** Returns the colour of a value; the one that is given where settings name none or that of a light theme. */
export function useColor(settings: unknown, value: unknown, otherwise: string): string {
  const stored = object(settings);
  const body = stored["type"] === "function" ? bodyOf(stored["colorFunction"]) : undefined;
  const [made, setMade] = useState<string>();
  const turn = useRef({ begun: 0, shown: 0 });
  const argument = JSON.stringify(value ?? null);
  useEffect(() => {
    if (body !== undefined) {
      const mine = ++turn.current.begun;
      // A slow answer is shown unless a later one was first: values that change all the time would else never show.
      void callInSandbox({ body, names: ["value"], calls: [[JSON.parse(argument)]] }).then(([result]) => {
        if (mine > turn.current.shown) {
          turn.current.shown = mine;
          setMade(safeColor(result?.value));
        }
      });
    }
  }, [body, argument]);
  const found = body === undefined ? undefined : made;
  const plain = colorOf(settings, typeof value === "number" ? value : Number(value), "");
  // What a gradient mixes was made here of safe colours.
  return found ?? (plain.startsWith("color-mix(") ? plain : chosen(plain)) ?? otherwise;
}
