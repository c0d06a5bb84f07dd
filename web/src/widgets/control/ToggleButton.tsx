// A button that looks otherwise when its state is on.

import type { ReactElement } from "react";
import { t } from "@/i18n";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import { ControlFrame } from "./ControlFrame";
import { lookOf } from "./look";
import { LookButton } from "./LookButton";
import { getterOf, setterOf } from "./settings";
import { useControl, useSetting } from "./useControl";
import { useReading } from "./useReading";

export default function ToggleButton({ widget, entities }: WidgetProps): ReactElement {
  const { settings } = widget;
  const check = setterOf(settings["checkState"], { data: "CONSTANT", constant: true });
  const uncheck = setterOf(settings["uncheckState"], { data: "CONSTANT", constant: false });
  const control = useControl(entities, check);
  const state = useReading(getterOf(settings["initialState"], "state"), control.target);
  const disabled = useReading(getterOf(settings["disabledState"], "state", "DO_NOTHING"), control.target);
  const { value, set } = useSetting(control, state);
  const isOn = value === true;
  const still = control.locked !== undefined || disabled.value === true;
  const look = lookOf(settings[isOn ? "checkedAppearance" : "uncheckedAppearance"], still ? "disabled" : "enabled", { label: t(isOn ? "On" : "Off") });
  const label = look.label === undefined ? undefined : fillPattern(look.label, entities[0], []);
  return (
    <ControlFrame control={control} readings={[state, disabled]}>
      <LookButton look={{ ...look, label }} name={widget.title || t("Switch")} disabled={still} pressed={isOn} onClick={() => set(isOn ? uncheck : check, !isOn)} />
    </ControlFrame>
  );
}
