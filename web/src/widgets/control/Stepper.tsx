// A number with a button on each side that moves it by a step.

import type { CSSProperties, ReactElement } from "react";
import { number, object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { isImplicitWhite, safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { ControlFrame } from "./ControlFrame";
import { Icon } from "@/icons/Icon";
import { useDrawings } from "@/icons/drawings";
import { inkOf } from "./look";
import { numberOf, shownNumber, stepped } from "./numbers";
import { getterOf, setterOf, type Setter } from "./settings";
import { useControl, useSetting } from "./useControl";
import { useReading } from "./useReading";
import classes from "./control.module.css";

interface StepProps {
  look: Json;
  name: string;
  icon: string;
  disabled: boolean;
  onClick: () => void;
}

function Step({ look, name, icon, disabled, onClick }: StepProps): ReactElement | null {
  const main = safeColor(look["mainColorOn"]);
  const ground = safeColor(look["backgroundColorOn"]);
  const own = ground !== undefined && !isImplicitWhite(ground);
  const style: CSSProperties = { ...(main === undefined ? {} : { "--ink": own ? main : inkOf(main) }), ...(own ? { background: ground } : {}) };
  const drawingOf = useDrawings();
  const wanted = text(look["icon"]);
  return look["showButton"] === false ? null : (
    <button type="button" className={classes["step"]} style={style} aria-label={name} aria-disabled={disabled || undefined} onClick={() => disabled || onClick()}>
      <Icon name={wanted !== undefined && drawingOf(wanted) !== undefined ? wanted : icon} />
    </button>
  );
}

export default function Stepper({ widget, entities }: WidgetProps): ReactElement {
  const { settings } = widget;
  const appearance = object(settings["appearance"]);
  const buttons = object(settings["buttonAppearance"]);
  const limits = { low: number(appearance["minValueRange"]) ?? -100, high: number(appearance["maxValueRange"]) ?? 100, step: Math.abs(number(appearance["valueStep"]) ?? 0.5) || 1 };
  const left = setterOf(settings["leftButtonClick"]);
  const right = setterOf(settings["rightButtonClick"]);
  const control = useControl(entities, left);
  const state = useReading(getterOf(settings["initialState"], "value"), control.target);
  const disabled = useReading(getterOf(settings["disabledState"], "state", "DO_NOTHING"), control.target);
  const setting = useSetting(control, state);
  const value = numberOf(setting.value);
  // A value that was never set begins at nothing, or as near to it as the limits permit; one that can't be had is not guessed.
  const isUnknown = state.waiting || state.problem !== undefined;
  const begin = value ?? (isUnknown ? undefined : Math.min(limits.high, Math.max(limits.low, 0)));
  const still = control.locked !== undefined || disabled.value === true || begin === undefined;
  const lower = begin === undefined ? undefined : stepped(begin, -1, limits);
  const higher = begin === undefined ? undefined : stepped(begin, 1, limits);
  // A second click while the first is on its way would lose a step where the device counts by itself.
  const go = (setter: Setter, next: number | undefined): void => {
    if (next !== undefined && !control.pending) {
      setting.set(setter, next);
    }
  };
  return (
    <ControlFrame control={control} readings={[state, disabled]}>
      <div className={classes["stepper"]} role="group" aria-label={widget.title || t("Value")}>
        <Step look={object(buttons["leftButton"])} name={t("Less")} icon="remove" disabled={still || lower === undefined} onClick={() => go(left, lower)} />
        {appearance["showValueBox"] !== false && (
          <output className={classes["box"]} data-value style={{ color: ownInk(appearance["valueColor"]) }}>
            {shownNumber(value, appearance)}
          </output>
        )}
        <Step look={object(buttons["rightButton"])} name={t("More")} icon="add" disabled={still || higher === undefined} onClick={() => go(right, higher)} />
      </div>
    </ControlFrame>
  );
}

/** Black is what dashboards have when nobody chose a colour; it follows the theme. */
export function ownInk(value: unknown): string {
  const color = safeColor(value);
  return color === undefined || /^(#000(000)?|black|rgba?\(0, ?0, ?0(, ?0\.\d+)?\))$/i.test(color) ? "inherit" : inkOf(color);
}
