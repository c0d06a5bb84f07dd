// Cells whose look and content functions of the dashboard make. As long as a result is not known, what was shown before stays.

import { useRef, type CSSProperties, type ReactElement } from "react";
import type { Json, Widget } from "@/dashboard/model";
import type { Ask } from "@/sandbox/functions";
import { cleanStyle } from "@/ui/cleanStyle";
import { loadable } from "@/ui/loadable";

const CleanHtml = loadable(() => import("@/ui/cleaned"));

/** What functions of a widget find in their context. */
export function functionContext(widget: Widget): Json {
  return { settings: widget.settings, widgetConfig: { title: widget.title, settings: widget.settings }, widgetTitle: widget.title, dashboardWidget: { widgetLayout: {} } };
}

interface CellProps {
  ask: Ask;
  body: string;
  names: readonly string[];
  args: unknown[];
  otherwise: string;
}

/** The content that a function makes: cleaned HTML, or the value itself if the function fails. */
export function MadeContent({ ask, body, names, args, otherwise }: CellProps): ReactElement {
  const before = useRef<string>(undefined);
  const result = ask(body, names, args);
  if (result !== undefined) {
    const made = result.value;
    before.current = result.error !== undefined ? undefined : made === null || made === undefined ? "" : typeof made === "object" ? JSON.stringify(made) : String(made);
  }
  const html = before.current;
  if (html === undefined) {
    return <>{otherwise}</>;
  }
  return /[<&]/.test(html) ? <CleanHtml html={html} /> : <>{html}</>;
}

/** The style that a function makes; none as long as it is not known. */
export function madeStyle(ask: Ask, body: string | undefined, names: readonly string[], args: unknown[]): CSSProperties | undefined {
  return body === undefined ? undefined : cleanStyle(ask(body, names, args)?.value);
}

/** What a function makes of a stored value; the value itself as long as that is not known. */
export function madeValue(ask: Ask, body: string | undefined, ts: number, value: unknown): unknown {
  if (body === undefined) {
    return value;
  }
  const result = ask(body, ["time", "value", "prevValue", "timePrev", "prevOrigValue"], [ts, value, 0, 0, 0]);
  return result === undefined || result.error !== undefined ? value : result.value;
}

