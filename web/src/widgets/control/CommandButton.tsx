// A button that sends something to its target with each click: a command, an attribute, telemetry.

import { useEffect, useState, type CSSProperties, type ReactElement } from "react";
import { object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { fillPattern } from "../text";
import { ControlFrame } from "./ControlFrame";
import { lookOf, type ButtonLook } from "./look";
import { LookButton } from "./LookButton";
import { getterOf, olderCommand, scopeOf, setterOf } from "./settings";
import { saveValues, useControl } from "./useControl";
import { useReading } from "./useReading";

/** How long a button says that it has done its work, milliseconds. */
const DONE_MS = 2_000;

function olderLook(settings: Json, label: string): ButtonLook {
  const style = object(settings["styleButton"]);
  const isPrimary = style["isPrimary"] === true;
  const own = { ground: safeColor(style["bgColor"]), ink: safeColor(style["textColor"]) };
  const ground = isPrimary ? "#305680" : (own.ground ?? "light-dark(#f2f5f3, #262e2b)");
  const ink = isPrimary ? "#fff" : (own.ink ?? (own.ground === undefined ? "var(--mantine-color-text)" : "#000"));
  return { type: style["isRaised"] === false ? "basic" : "outlined", label, icon: undefined, style: { "--ground": ground, "--ink": ink } as CSSProperties };
}

/** Reads the attributes that the older button for them writes. */
export function storedAttributes(settings: Json): Json | undefined {
  try {
    const read = JSON.parse(text(settings["entityParameters"]) ?? "{}") as unknown;
    return typeof read === "object" && read !== null && !Array.isArray(read) ? (read as Json) : undefined;
  } catch {
    return undefined;
  }
}

export default function CommandButton({ widget, entities }: WidgetProps): ReactElement {
  const { settings, fqn } = widget;
  const isAttributes = fqn.endsWith("update_attributes");
  const isOlder = isAttributes || fqn.endsWith("rpcbutton");
  const setter = isAttributes ? undefined : isOlder ? olderCommand(settings) : setterOf(settings["onClickState"], { data: "NONE" });
  const control = useControl(entities, setter);
  const disabled = useReading(getterOf(settings["disabledState"], "state", "DO_NOTHING"), control.target);
  const [done, setDone] = useState(0);
  useEffect(() => {
    const timer = done === 0 ? undefined : setTimeout(() => setDone(0), DONE_MS);
    return () => clearTimeout(timer);
  }, [done]);
  const still = control.locked !== undefined || disabled.value === true;
  const send = async (): Promise<void> => {
    if (control.pending) {
      return;
    }
    const attributes = storedAttributes(settings);
    const succeeded = await (setter !== undefined
      ? control.put(setter, null)
      : control.run((target) => {
          if (attributes === undefined) {
            throw new Error(t("The attributes of this button are no JSON object."));
          }
          return saveValues(target.id, scopeOf(settings["entityAttributeType"]) ?? "SERVER_SCOPE", attributes);
        }));
    if (succeeded) {
      setDone((before) => before + 1);
    }
  };
  const look = isOlder
    ? olderLook(settings, text(settings["buttonText"]) ?? t("Send"))
    : lookOf(settings["appearance"], still ? "disabled" : "enabled", { label: t("Send"), icon: "arrow_outward" });
  const label = look.label === undefined ? undefined : fillPattern(look.label, entities[0], []);
  const shown = { ...look, icon: done > 0 ? "done" : look.icon, label };
  return (
    <ControlFrame control={control} readings={[disabled]}>
      <LookButton look={shown} name={widget.title || t("Send")} disabled={still} onClick={() => void send()} />
      <span role="status" style={{ position: "absolute", opacity: 0, pointerEvents: "none" }}>
        {done > 0 ? t("Done") : ""}
      </span>
    </ControlFrame>
  );
}
