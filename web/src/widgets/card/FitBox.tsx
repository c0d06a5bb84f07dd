// Content that is as large as its card permits.

import { useEffect, useRef, useState, type ReactElement, type ReactNode } from "react";
import classes from "./card.module.css";

/** Nothing grows beyond this, however large its card is. */
const LARGEST = 3;

export function FitBox({ enabled, children }: { enabled: boolean; children: ReactNode }): ReactElement {
  const outer = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState(1);
  useEffect(() => {
    const [box, content] = [outer.current, inner.current];
    if (!enabled || box === null || content === null) {
      setScale(1);
      return undefined;
    }
    const fit = (): void => {
      const { offsetWidth: width, offsetHeight: height } = content;
      if (width > 0 && height > 0) {
        setScale(Math.round(Math.min(LARGEST, box.clientWidth / width, box.clientHeight / height) * 100) / 100);
      }
    };
    const observer = new ResizeObserver(fit);
    observer.observe(box);
    observer.observe(content);
    return () => observer.disconnect();
  }, [enabled]);
  return (
    <div ref={outer} className={classes["outer"]} data-fits={enabled || undefined}>
      <div ref={inner} className={classes["inner"]} style={enabled ? { transform: `scale(${scale})` } : {}}>
        {children}
      </div>
    </div>
  );
}
