// Parts that cards of values share.

import type { ReactElement } from "react";
import { number, object, text, type Json } from "@/dashboard/json";
import type { DataKey } from "@/dashboard/model";
import { fontStyle } from "@/dashboard/look";
import { NOT_SUPPORTED } from "@/dashboard/aggregated";
import { t } from "@/i18n";
import { Ago } from "@/ui/feedback";
import { formattedDate } from "../dates";
import { shownValue } from "../text";
import { useColor } from "../useColor";

const SOFT = "var(--soft-text)";

/** Fills in the parts of a font that settings leave out. */
export function fontOf(settings: Json, name: string, size: number, weight: string, lineHeight: string): Json {
  return { size, weight, lineHeight, ...object(settings[name]) };
}

const SIZE_UNIT = /^(px|em|rem|%|vw|vh)$/;

/** Returns the size of an icon or its ground, such as `iconSize` with its `iconSizeUnit`. */
export function sizeOf(settings: Json, name: string, usual: number): string {
  const unit = text(settings[`${name}Unit`]) ?? "px";
  return `${Math.min(400, Math.max(8, number(settings[name]) ?? usual))}${SIZE_UNIT.test(unit) ? unit : "px"}`;
}

/** When a value came: how long ago, or in the format of the settings. */
export function ValueDate({ ts, settings, value, zone }: { ts: number; settings: Json; value: unknown; zone?: string | undefined }): ReactElement {
  const format = object(settings["dateFormat"]);
  const color = useColor(settings["dateColor"], value, SOFT);
  const ago = format["lastUpdateAgo"] === true || settings["dateFormat"] === undefined;
  const font = fontOf(settings, "dateFont", 12, "500", "1.33");
  return (
    <div style={{ ...fontStyle(font), color }} data-date>
      {ago ? (
        <>
          {format["hideLastUpdatePrefix"] === true ? "" : `${t("Last update")} `}
          <Ago ts={ts} />
        </>
      ) : (
        formattedDate(ts, format, zone)
      )}
    </div>
  );
}

/** Returns a value as it is shown; a dash if there is none, words if it can't be had. */
export function valueText(value: string | undefined, key: Pick<DataKey, "decimals" | "units">): string {
  return value === undefined ? "–" : value === NOT_SUPPORTED ? t("Not supported") : shownValue(value, key);
}
