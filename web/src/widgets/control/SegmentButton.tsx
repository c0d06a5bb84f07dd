// Two halves of which one is chosen by a state; a click on one does what the dashboard declares.

import type { CSSProperties, ReactElement } from "react";
import { number, object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { isImplicitWhite, safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import { ControlFrame } from "./ControlFrame";
import type { ButtonLook } from "./look";
import { LookButton } from "./LookButton";
import { getterOf } from "./settings";
import { useControl } from "./useControl";
import { useReading } from "./useReading";
import classes from "./control.module.css";

function halfLook(appearance: Json, side: "left" | "right", chosen: boolean): ButtonLook {
  const half = object(appearance[`${side}Appearance`]);
  const style = object(appearance[chosen ? "selectedStyle" : "unselectedStyle"]);
  const ground = safeColor(style["backgroundColor"]) ?? (chosen ? "#305680" : "#E8E8E8");
  const main = safeColor(style["mainColor"]) ?? (chosen ? "#FFFFFF" : "#000000");
  const isOwn = isImplicitWhite(ground);
  return {
    type: "basic",
    label: half["showLabel"] === false ? undefined : (text(half["label"]) ?? t(side === "left" ? "Left" : "Right")),
    icon: half["showIcon"] === false ? undefined : text(half["icon"]),
    style: { "--ink": isOwn ? "var(--mantine-color-text)" : main, "--ground": isOwn ? "transparent" : ground } as CSSProperties,
  };
}

export default function SegmentButton({ widget, entities, act }: WidgetProps): ReactElement {
  const { settings } = widget;
  const control = useControl(entities, undefined);
  const state = useReading(getterOf(settings["initialState"], "state", "DO_NOTHING"), control.target);
  const disabled = useReading(getterOf(settings["disabledState"], "state", "DO_NOTHING"), control.target);
  const appearance = object(settings["appearance"]);
  const still = disabled.value === true;
  const border = number(appearance["cardBorder"]) ?? 1;
  const frame = { borderWidth: Math.min(10, border), borderColor: safeColor(appearance["cardBorderColor"]) ?? "#305680" };
  return (
    <ControlFrame control={control} readings={[state, disabled]} readOnly>
      <div className={classes["segments"]} data-layout={text(appearance["layout"]) ?? "squared"} role="group" aria-label={widget.title || t("Choice")} style={frame}>
        {(["left", "right"] as const).map((side) => {
          const chosen = (state.value === true) === (side === "left");
          const look = halfLook(appearance, side, chosen);
          const label = look.label === undefined ? undefined : fillPattern(look.label, entities[0], []);
          return <LookButton key={side} look={{ ...look, label }} name={t(side === "left" ? "Left" : "Right")} disabled={still} pressed={chosen} onClick={() => act(`${side}ButtonClick`, entities[0])} />;
        })}
      </div>
    </ControlFrame>
  );
}
