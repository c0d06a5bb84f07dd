// Values that stand at their places on a picture.

import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef, useState, type CSSProperties, type ReactElement } from "react";
import { list, number, object, text } from "@/dashboard/model";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { useImage } from "@/ui/images";
import { safeColor } from "./color";
import { escapeHtml } from "./map/formatted";
import { cleanMarkup } from "./map/markup";
import type { WidgetProps } from "./registry";
import { readings, type Reading } from "./values";
import classes from "./widgets.module.css";

interface Label {
  markup: string;
  x: number;
  y: number;
  style: CSSProperties;
}

/** Reads a label; the size of its text is a share of the height of the picture, percent. `scale` is one percent of it. */
export function readLabel(value: unknown, fill: (pattern: string) => string, scale: number): Label {
  const label = object(value);
  const font = object(label["font"]);
  const family = text(font["family"]);
  const style: CSSProperties = {
    color: safeColor(font["color"]) ?? "#fff",
    background: safeColor(label["backgroundColor"]) ?? "transparent",
    fontSize: (number(font["size"]) ?? 6) * scale,
    fontWeight: text(font["weight"]) ?? "500",
    fontStyle: text(font["style"]) ?? "normal",
    ...(family === undefined || !/^[\w ,'-]+$/.test(family) ? {} : { fontFamily: `${family}, inherit` }),
  };
  return { markup: fill(text(label["pattern"]) ?? "${#0}"), x: number(label["x"]) ?? 0, y: number(label["y"]) ?? 0, style };
}

function PlacedLabel({ label }: { label: Label }): ReactElement {
  const host = useRef<HTMLDivElement>(null);
  const { markup } = label;
  useEffect(() => host.current?.replaceChildren(cleanMarkup(markup)), [markup]);
  return <div ref={host} className={classes["placed"]} style={{ ...label.style, left: `${label.x}%`, top: `${label.y}%` }} data-label />;
}

/** Decimals of numbers in labels that say nothing else. */
const DECIMALS = 2;

/** Fills a pattern with values by the labels of their keys, or by their number among all. */
export function fillLabel(pattern: string, all: readonly Reading[]): string {
  return pattern.replace(/\$\{([^}:]+)(?::(\d+))?\}/g, (_whole, name: string, decimals: string | undefined) => {
    const reading = /^#\d+$/.test(name) ? all[Number(name.slice(1))] : all.find(({ key }) => key.label === name);
    const value = reading?.point?.value ?? (["entityName", "deviceName", "dsName"].includes(name) ? all[0]?.entity.name : undefined) ?? "";
    const isNumber = value.trim() !== "" && Number.isFinite(Number(value));
    return escapeHtml(isNumber ? Number(value).toFixed(Math.min(15, Number(decimals ?? DECIMALS))) : value);
  });
}

export default function LabelCard({ widget, sources }: WidgetProps): ReactElement {
  const { settings } = widget;
  const { url, failed } = useImage(text(settings["backgroundImageUrl"]));
  const { ref, width, height } = useElementSize();
  const [aspect, setAspect] = useState<number>();
  const all = readings(sources);
  if (url === undefined) {
    return <EmptyState>{failed ? t("The picture of this widget can't be loaded.") : t("This widget has no picture yet.")}</EmptyState>;
  }
  const shownWidth = aspect === undefined ? width : Math.min(width, height * aspect);
  const scale = (aspect === undefined ? height : shownWidth / aspect) / 100;
  return (
    <div ref={ref} className={classes["middle"]}>
      <div style={{ position: "relative", width: aspect === undefined ? "100%" : shownWidth }}>
        <img src={url} alt="" style={{ display: "block", width: "100%" }} onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => setAspect(naturalHeight > 0 ? naturalWidth / naturalHeight : 1.5)} />
        {list(settings["labels"]).map((label, n) => (
          <PlacedLabel key={n} label={readLabel(label, (pattern) => fillLabel(pattern, all), scale)} />
        ))}
      </div>
    </div>
  );
}
