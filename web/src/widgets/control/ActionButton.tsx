// A button for what the dashboard declares as its click, with a look for when something is active.

import type { ReactElement } from "react";
import { t } from "@/i18n";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import { ControlFrame } from "./ControlFrame";
import { lookOf } from "./look";
import { LookButton } from "./LookButton";
import { getterOf } from "./settings";
import { useControl } from "./useControl";
import { useReading } from "./useReading";

export default function ActionButton({ widget, entities, act }: WidgetProps): ReactElement {
  const { settings } = widget;
  const control = useControl(entities, undefined);
  const activated = useReading(getterOf(settings["activatedState"], "state", "DO_NOTHING"), control.target);
  const disabled = useReading(getterOf(settings["disabledState"], "state", "DO_NOTHING"), control.target);
  const still = disabled.value === true;
  const look = lookOf(settings["appearance"], still ? "disabled" : activated.value === true ? "activated" : "enabled", { label: t("Button") });
  const label = look.label === undefined ? undefined : fillPattern(look.label, entities[0], widget.datasources[0]?.dataKeys ?? []);
  const hasStates = settings["activatedState"] !== undefined && activated.value !== undefined && activated.value !== null;
  return (
    <ControlFrame control={control} readings={[activated, disabled]} readOnly>
      <LookButton look={{ ...look, label }} name={widget.title || t("Button")} disabled={still} {...(hasStates && activated.value === true ? { pressed: true } : {})} onClick={() => act("click", entities[0])} />
    </ControlFrame>
  );
}
