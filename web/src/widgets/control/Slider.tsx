// A number that is set by moving a thumb along a line.

import { useState, type CSSProperties, type ReactElement } from "react";
import { number, text } from "@/dashboard/model";
import { t } from "@/i18n";
import { safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { scaleOf } from "../values";
import { ControlFrame } from "./ControlFrame";
import { Icon } from "@/icons/Icon";
import { inkOf } from "./look";
import { numberOf, shownNumber, snapped, stepFor } from "./numbers";
import { getterOf, setterOf } from "./settings";
import { ownInk } from "./Stepper";
import { useControl, useSetting } from "./useControl";
import { useReading } from "./useReading";
import classes from "./control.module.css";

export default function Slider({ widget, entities }: WidgetProps): ReactElement {
  const { settings } = widget;
  const [low, high] = scaleOf(settings);
  const limits = { low, high, step: stepFor(number(settings["valueDecimals"])) };
  const change = setterOf(settings["valueChange"]);
  const control = useControl(entities, change);
  const state = useReading(getterOf(settings["initialState"], "value"), control.target);
  const disabled = useReading(getterOf(settings["disabledState"], "state", "DO_NOTHING"), control.target);
  const setting = useSetting(control, state);
  // While the thumb is held nothing is sent, and nothing that comes moves it.
  const [held, setHeld] = useState<number>();
  const known = numberOf(setting.value);
  const value = held ?? known;
  const still = control.locked !== undefined || disabled.value === true;
  const send = (): void => {
    if (held !== undefined && held !== known) {
      setting.set(change, held);
    }
    setHeld(undefined);
  };
  const main = safeColor(settings["mainColor"]);
  const line: CSSProperties = main === undefined ? {} : { ["--ink" as string]: inkOf(main) };
  const layout = text(settings["layout"]) ?? "default";
  const name = widget.title || t("Value");
  const icons = layout === "extended" ? [text(settings["leftIcon"]), text(settings["rightIcon"])] : [];
  return (
    <ControlFrame control={control} readings={[state, disabled]}>
      <div className={classes["slider"]} style={line}>
        {layout !== "simplified" && settings["showValue"] !== false && (
          <output className={classes["big"]} data-value style={{ color: ownInk(settings["valueColor"]) }}>
            {shownNumber(value, settings)}
          </output>
        )}
        <div className={classes["line"]}>
          {icons[0] !== undefined && <Icon name={icons[0]} />}
          <input
            type="range"
            aria-label={name}
            aria-valuetext={shownNumber(value, settings)}
            min={low}
            max={high}
            step={limits.step}
            value={value ?? low}
            aria-disabled={still || undefined}
            onChange={(event) => still || setHeld(snapped(Number(event.currentTarget.value), limits))}
            onPointerUp={send}
            onPointerCancel={send}
            onKeyUp={send}
            onBlur={send}
          />
          {icons[1] !== undefined && <Icon name={icons[1]} />}
        </div>
        {settings["showTicks"] !== false && (
          <div className={classes["ticks"]} aria-hidden="true">
            <span>{shownNumber(low, settings)}</span>
            <span>{shownNumber(high, settings)}</span>
          </div>
        )}
      </div>
    </ControlFrame>
  );
}
