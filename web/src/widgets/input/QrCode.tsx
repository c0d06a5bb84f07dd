// A text of values as a QR code.

import qrcode from "qrcode-generator";
import { useEffect, useMemo, useState, type ReactElement } from "react";
import { text } from "@/dashboard/model";
import { latestOf, type SourceValues } from "@/dashboard/source";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { applied } from "../control/convert";
import { bodyOf } from "@/dashboard/actions";
import { numeric } from "../postProcessing";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import classes from "./input.module.css";

/** Light squares around the code, which readers need. */
const MARGIN = 4;

/** Returns the drawing of a text as the path of its dark squares, and how many squares there are a side. */
export function codeOf(content: string): { path: string; size: number } | undefined {
  try {
    const code = qrcode(0, "M");
    code.addData(String.fromCharCode(...new TextEncoder().encode(content)), "Byte");
    code.make();
    const count = code.getModuleCount();
    const squares = Array.from({ length: count * count }, (_, n) => [Math.floor(n / count), n % count] as const).filter(([row, col]) => code.isDark(row, col));
    return { path: squares.map(([row, col]) => `M${col + MARGIN} ${row + MARGIN}h1v1h-1z`).join(""), size: count + 2 * MARGIN };
  } catch {
    // More text than the largest code holds.
    return undefined;
  }
}

/** Returns one object for each entity, as functions of dashboards expect them. */
function formatted(sources: SourceValues[]): Record<string, unknown>[] {
  return sources.flatMap(({ source, entities }) =>
    entities.map((entity) => ({
      entityName: entity.name,
      entityId: entity.id.id,
      entityType: entity.id.entityType,
      ...Object.fromEntries(source.dataKeys.map((key) => [key.label, numeric(latestOf(entity, key)?.value ?? "")])),
    })),
  );
}

function useText({ widget, sources, entities }: WidgetProps): { text: string; problem: string | undefined } {
  const { settings } = widget;
  const body = settings["useQrCodeTextFunction"] === true ? bodyOf(settings["qrCodeTextFunction"]) : undefined;
  const keys = sources.flatMap(({ source }) => source.dataKeys);
  const identity = body === undefined ? "" : JSON.stringify([body, formatted(sources)]);
  const [made, setMade] = useState<{ text: string; problem: string | undefined }>({ text: "", problem: undefined });
  useEffect(() => {
    let current = true;
    if (identity !== "") {
      const [code, data] = JSON.parse(identity) as [string, unknown];
      void applied(code, ["data"], data).then(({ value, problem }) => {
        if (current) {
          const fault = problem ?? (typeof value === "string" ? undefined : t("The function must return text."));
          setMade({ text: typeof value === "string" ? value : "", problem: fault });
        }
      });
    }
    return () => {
      current = false;
    };
  }, [identity]);
  const pattern = body === undefined ? (text(settings["qrCodeTextPattern"]) ?? "${entityName}") : made.text;
  return { text: fillPattern(pattern, entities[0], keys), problem: body === undefined ? undefined : made.problem };
}

export default function QrCode(props: WidgetProps): ReactElement {
  const { text: content, problem } = useText(props);
  const code = useMemo(() => (content === "" ? undefined : codeOf(content)), [content]);
  if (problem !== undefined || code === undefined) {
    return <EmptyState>{problem ?? t(content === "" ? "There is no text for a code yet." : "The text is too long for a code.")}</EmptyState>;
  }
  return (
    <div className={classes["code"]}>
      <svg viewBox={`0 0 ${code.size} ${code.size}`} role="img" aria-label={t("QR code: {text}", { text: content })} shapeRendering="crispEdges">
        <rect width={code.size} height={code.size} fill="#fff" />
        <path d={code.path} fill="#000" />
      </svg>
    </div>
  );
}
