// What lies behind a widget: a colour, or a picture with a veil over it.

import type { ReactElement } from "react";
import { number, object, text, type Json } from "@/dashboard/json";
import { cssUrl, useImage } from "@/ui/images";
import { isImplicitWhite, safeColor } from "../color";
import classes from "./card.module.css";

const VEIL = "light-dark(rgb(255 255 255 / 72%), rgb(24 26 25 / 72%))";

/** Returns the veil over a picture; the usual white one follows the theme. */
function veilOf(overlay: Json): { background: string; backdropFilter: string } | undefined {
  const color = safeColor(overlay["color"]);
  const blur = Math.min(50, Math.max(0, number(overlay["blur"]) ?? 3));
  return overlay["enabled"] === true ? { background: color === undefined || isImplicitWhite(color) ? VEIL : color, backdropFilter: `blur(${blur}px)` } : undefined;
}

export function Backdrop({ settings }: { settings: Json }): ReactElement | null {
  const background = object(settings["background"]);
  const link = background["type"] === "image" || background["type"] === "imageUrl" ? (text(background["imageUrl"]) ?? text(background["imageBase64"])) : undefined;
  const { url } = useImage(link);
  const color = safeColor(background["color"]);
  const own = link === undefined && color !== undefined && !isImplicitWhite(color) ? color : undefined;
  const veil = veilOf(object(background["overlay"]));
  if (own === undefined && url === undefined && veil === undefined) {
    return null;
  }
  return (
    <div className={classes["backdrop"]} data-picture={url !== undefined || undefined} style={{ ...(own === undefined ? {} : { background: own }), ...(url === undefined ? {} : { backgroundImage: cssUrl(url) }) }}>
      {veil !== undefined && <div className={classes["veil"]} style={veil} />}
    </div>
  );
}
