// A round button that turns something on and off, in the looks that dashboards choose from.

import type { ReactElement } from "react";
import { object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { isImplicitWhite, safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { ControlFrame } from "./ControlFrame";
import { useDrawings } from "@/icons/drawings";
import { inkOf } from "./look";
import { switchSettings } from "./Switch";
import { useControl, useSetting } from "./useControl";
import { useReading } from "./useReading";
import classes from "./control.module.css";

interface PowerLook {
  /** `default` has a ring and a plate, `simplified` a plate alone, `outlined` rings alone. */
  shape: "default" | "simplified" | "outlined";
  /** Whether the plate is rounded by light and shadow. */
  volume: boolean;
  /** Whether an icon stands in the place of the words. */
  icon: string | undefined;
  main: string;
  ground: string;
}

/** Reads the look of a power button in one of its states. */
export function powerLook(settings: Json, state: "On" | "Off" | "Disabled"): PowerLook {
  const [shape = "default", kind] = (text(settings["layout"]) ?? "default").split("_");
  const icon = object(settings[state === "On" ? "onButtonIcon" : "offButtonIcon"]);
  const standard = { On: "#3F52DD", Off: "#A2A2A2", Disabled: "rgba(128,128,128,0.4)" }[state];
  const ground = safeColor(settings[`backgroundColor${state}`]);
  return {
    shape: shape === "simplified" || shape === "outlined" ? shape : "default",
    volume: kind === "volume",
    icon: kind === "icon" || icon["showIcon"] === true ? (text(icon["icon"]) ?? "power_settings_new") : undefined,
    main: inkOf(safeColor(settings[`mainColor${state}`]) ?? standard),
    ground: ground === undefined || isImplicitWhite(ground) ? "light-dark(#fff, #262e2b)" : ground,
  };
}

function Plate({ look, isOn, words }: { look: PowerLook; isOn: boolean; words: string }): ReactElement {
  const { shape, volume, main, ground } = look;
  const filled = isOn && shape !== "outlined";
  const ink = filled ? ground : main;
  const drawingOf = useDrawings();
  const drawing = look.icon === undefined ? undefined : (drawingOf(look.icon) ?? drawingOf("power_settings_new"));
  return (
    <svg viewBox="0 0 100 100" aria-hidden="true">
      {shape !== "simplified" && <circle cx="50" cy="50" r="47" style={{ fill: ground, stroke: main, strokeWidth: 3 }} />}
      <circle cx="50" cy="50" r={shape === "simplified" ? 48 : 39} style={{ fill: filled ? main : ground, stroke: shape === "outlined" ? main : "light-dark(#c8d0cc, #48524e)", strokeWidth: 1.5 }} />
      {volume && <path d="M18 40a34 34 0 0 1 64 0a40 30 0 0 0 -64 0" style={{ fill: "#fff", opacity: isOn ? 0.12 : 0.5 }} />}
      {volume && <path d="M18 60a34 34 0 0 0 64 0a40 30 0 0 1 -64 0" style={{ fill: "#000", opacity: isOn ? 0.3 : 0.12 }} />}
      {drawing === undefined ? (
        <text x="50" y="57" textAnchor="middle" style={{ fill: filled ? ground : "currentColor", fontSize: 20, fontWeight: 600 }}>
          {words}
        </text>
      ) : (
        <path d={drawing.path} fillRule={drawing.rule} transform="translate(32 32) scale(1.5)" style={{ fill: ink }} />
      )}
    </svg>
  );
}

export default function PowerButton({ widget, entities }: WidgetProps): ReactElement {
  const { settings } = widget;
  const made = switchSettings(settings, false);
  const control = useControl(entities, made.on);
  const state = useReading(made.state, control.target);
  const disabled = useReading(made.disabled, control.target);
  const { value, set } = useSetting(control, state);
  const isOn = value === true;
  const still = control.locked !== undefined || disabled.value === true;
  return (
    <ControlFrame control={control} readings={[state, disabled]}>
      <button
        type="button"
        role="switch"
        className={classes["power"]}
        aria-label={widget.title || t("Power")}
        aria-checked={isOn}
        aria-disabled={still || undefined}
        onClick={() => still || set(isOn ? made.off : made.on, !isOn)}
      >
        <Plate look={powerLook(settings, still ? "Disabled" : isOn ? "On" : "Off")} isOn={isOn} words={t(isOn ? "On" : "Off")} />
      </button>
    </ControlFrame>
  );
}
