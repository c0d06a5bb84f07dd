// A state of a device that is on or off: the switch with a label, and the older ones.

import type { CSSProperties, ReactElement } from "react";
import { text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import { ControlFrame } from "./ControlFrame";
import { Icon } from "@/icons/Icon";
import { SLIDER_COLORS } from "./olderSettings";
import { getterOf, olderGetter, olderSetter, setterOf, type Getter, type Setter } from "./settings";
import { useControl, useSetting } from "./useControl";
import { useReading } from "./useReading";
import classes from "./control.module.css";

interface SwitchSettings {
  state: Getter;
  disabled: Getter;
  on: Setter;
  off: Setter;
}

/** Reads the settings of a switch, whichever kind it is of. */
export function switchSettings(settings: Json, isOlder: boolean): SwitchSettings {
  const disabled = getterOf(settings["disabledState"], "state", "DO_NOTHING");
  if (isOlder) {
    const set = olderSetter(settings);
    return { state: olderGetter(settings, "rpc"), disabled, on: set, off: set };
  }
  return {
    state: getterOf(settings["initialState"], "state"),
    disabled,
    on: setterOf(settings["onUpdateState"], { data: "CONSTANT", constant: true }),
    off: setterOf(settings["offUpdateState"], { data: "CONSTANT", constant: false }),
  };
}

/** Where the label of an older switch stands, and the colour of a slide toggle. */
function olderLook(fqn: string, settings: Json): { layout: string; style: CSSProperties; labels: boolean } {
  const isToggle = fqn.endsWith("slide_toggle_control");
  const color = SLIDER_COLORS.find(({ value }) => value === (settings["sliderColor"] ?? "accent"))?.color;
  return {
    layout: isToggle ? (settings["labelPosition"] === "before" ? "before" : "after") : "column",
    style: (isToggle && color !== undefined ? { "--on": color } : {}) as CSSProperties,
    labels: !isToggle && settings["showOnOffLabels"] !== false,
  };
}

function colorsOf(settings: Json): CSSProperties {
  const named = { "--on": "switchColorOn", "--off": "switchColorOff", "--thumb-on": "tumblerColorOn", "--thumb-off": "tumblerColorOff" };
  return Object.fromEntries(Object.entries(named).flatMap(([name, key]) => (safeColor(settings[key]) === undefined ? [] : [[name, safeColor(settings[key])]])));
}

export default function Switch({ widget, entities }: WidgetProps): ReactElement {
  const { settings } = widget;
  const isOlder = widget.fqn.includes("control_widgets.");
  const isRound = widget.fqn.endsWith("round_switch");
  const older = olderLook(widget.fqn, settings);
  const made = switchSettings(settings, isOlder);
  const control = useControl(entities, made.on);
  const state = useReading(made.state, control.target);
  const disabled = useReading(made.disabled, control.target);
  const { value, set } = useSetting(control, state);
  const isOn = value === true;
  const still = control.locked !== undefined || disabled.value === true;
  const flip = (): void => {
    if (!still) {
      set(isOn ? made.off : made.on, !isOn);
    }
  };
  const own = isOlder ? text(settings["title"]) : settings["showLabel"] === false ? undefined : text(settings["label"]);
  const label = own === undefined ? undefined : fillPattern(own, entities[0], []);
  const name = label ?? (widget.title || control.target?.name) ?? t("Switch");
  const shows = (which: "On" | "Off"): string | undefined =>
    isOlder ? (older.labels ? t(which) : undefined) : settings[`show${which}Label`] === true ? (text(settings[`${which.toLowerCase()}Label`]) ?? t(which)) : undefined;
  const icon = settings["showIcon"] === true ? text(settings["icon"]) : undefined;
  const layout = isOlder ? older.layout : (text(settings["layout"]) ?? "right");
  return (
    <ControlFrame control={control} readings={[state, disabled]}>
      <div className={classes["row"]} data-layout={layout}>
        {(label !== undefined || icon !== undefined) && (
          <span className={classes["label"]}>
            {icon !== undefined && <Icon name={icon} />}
            {label}
          </span>
        )}
        {isRound ? (
          <button type="button" role="switch" className={classes["round"]} aria-label={name} aria-checked={isOn} aria-disabled={still || undefined} onClick={flip}>
            {t(isOn ? "On" : "Off")}
          </button>
        ) : (
          <span className={classes["track"]}>
            {shows("Off") !== undefined && <span className={classes["end"]} data-chosen={!isOn}>{shows("Off")}</span>}
            <input type="checkbox" role="switch" className={classes["switch"]} style={isOlder ? older.style : colorsOf(settings)} aria-label={name} aria-disabled={still || undefined} checked={isOn} onChange={flip} />
            {shows("On") !== undefined && <span className={classes["end"]} data-chosen={isOn}>{shows("On")}</span>}
          </span>
        )}
      </div>
    </ControlFrame>
  );
}
