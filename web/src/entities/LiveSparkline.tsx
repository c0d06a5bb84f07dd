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
    const draw = (): void => {
      const path = sparkline(read());
      line.current?.setAttribute("d", path);
      setLine(path !== "");
    };
    draw();
    return values.watch(name, draw);
  }, [values, name]);
  return isLine ? <Sparkline values={read()} line={line} /> : null;
}
