// The recent course of a live value, whose line is drawn anew by itself.

import { useEffect, useRef, useState, type ReactElement } from "react";
import type { LatestValues } from "@/live/latest";
import { Sparkline, sparkline } from "@/ui/Sparkline";

export function LiveSparkline({ values, name }: { values: LatestValues; name: string }): ReactElement | null {
  const line = useRef<SVGPathElement>(null);
  const read = (): number[] => values.history(name).map((point) => Number(point.value));
  // A line begins with two numbers, and ends where a value is none any more.
  const [isLine, setLine] = useState(() => sparkline(read()) !== "");
  useEffect(() => {
    let wasLine: boolean | undefined;
    const draw = (): void => {
      const path = sparkline(read());
      line.current?.setAttribute("d", path);
      // React keeps each update that says nothing new until something else draws the component, which nothing may do for hours.
      if (wasLine !== (path !== "")) {
        wasLine = path !== "";
        setLine(wasLine);
      }
    };
    draw();
    return values.watch(name, draw);
  }, [values, name]);
  return isLine ? <Sparkline values={read()} line={line} /> : null;
}
