// A state that is on or off, with an icon, a label and a word for it, on a ground of its own.

import type { CSSProperties, ReactElement } from "react";
import { object, text, type Json } from "@/dashboard/model";
import { fontStyle } from "@/dashboard/look";
import { t } from "@/i18n";
import { Icon } from "@/icons/Icon";
import { begunWith } from "../beginnings";
import { fontOf, sizeOf } from "../card/parts";
import { isImplicitWhite, safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import { singleOf } from "../values";
import { ControlFrame } from "./ControlFrame";
import { getterOf } from "./settings";
import { STATUS } from "./statusSettings";
import { useControl } from "./useControl";
import { useReading } from "./useReading";
import classes from "./control.module.css";

/** Values of a key that mean that something is on. */
const ON = ["true", "1", "on"];

/** Returns the colours of a state; a ground of the usual white follows the theme, and what stands on it as well. */
function inksOf(state: Json, disabled: boolean): { ground: string; main: string; soft: string } {
  const named = (name: string): unknown => state[disabled ? `${name}Disabled` : name];
  const ground = safeColor(object(named("background"))["color"]);
  const isOwn = ground !== undefined && !isImplicitWhite(ground);
  const [main, soft] = [safeColor(named("primaryColor")), safeColor(named("secondaryColor"))];
  return isOwn ? { ground, main: main ?? "#fff", soft: soft ?? main ?? "#fff" } : { ground: "transparent", main: followed(main), soft: followed(soft, "var(--soft-text)") };
}

const followed = (color: string | undefined, theme = "var(--mantine-color-text)"): string => (color === undefined || /^rgba\(\s*0,\s*0,\s*0\s*,/.test(color) ? theme : color);

export default function Status({ widget, sources, entities }: WidgetProps): ReactElement {
  const settings = begunWith(STATUS, widget.settings);
  const control = useControl(entities, undefined);
  // Without a way to get its state, it is the value of its key.
  const single = singleOf(widget, sources);
  const keyed = text(object(settings["initialState"])["action"]) === undefined && single.key !== undefined;
  const state = useReading(getterOf(settings["initialState"], "state", keyed ? "DO_NOTHING" : "EXECUTE_RPC"), control.target);
  const disabled = useReading(getterOf(settings["disabledState"], "state", "DO_NOTHING"), control.target);
  const isOn = keyed ? ON.includes((single.point?.value ?? "").toLowerCase()) : state.value === true;
  const look = object(settings[isOn ? "onState" : "offState"]);
  const isUnknown = keyed && single.point === undefined;
  const { ground, main, soft } = inksOf(look, disabled.value === true);
  const word = isUnknown ? "–" : (text(look["status"]) ?? t(isOn ? "On" : "Off"));
  const label = fillPattern(text(look["label"]) ?? (single.label === "" ? (widget.title || control.target?.name) ?? "" : single.label), entities[0], single.key === undefined ? [] : [single.key]);
  const layout = text(settings["layout"]) ?? "default";
  const icon = text(look["icon"]);
  return (
    <ControlFrame control={control} readings={keyed ? [disabled] : [state, disabled]} readOnly>
      <div className={classes["status"]} data-layout={layout} data-on={isOn} data-value={word} role="img" aria-label={`${label}: ${word}`} style={{ background: ground, color: main } as CSSProperties}>
        {icon !== undefined && <Icon name={icon} size={sizeOf(look, "iconSize", 32)} />}
        {layout !== "icon" && (look["showLabel"] !== false || look["showStatus"] !== false) && (
          <div>
            {look["showLabel"] !== false && <div style={fontStyle(fontOf(look, "labelFont", 14, "500", "1.4"))}>{label}</div>}
            {look["showStatus"] !== false && <div style={{ ...fontStyle(fontOf(look, "statusFont", 12, "500", "1.4")), color: soft }}>{word}</div>}
          </div>
        )}
      </div>
    </ControlFrame>
  );
}
