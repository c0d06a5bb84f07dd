// One button with the look that its settings give it.

import type { ReactElement } from "react";
import { Icon } from "@/icons/Icon";
import { useDrawings } from "@/icons/drawings";
import type { ButtonLook } from "./look";
import classes from "./control.module.css";

interface LookButtonProps {
  look: ButtonLook;
  /** Name for those who don't see the label. */
  name: string;
  disabled: boolean;
  pressed?: boolean;
  onClick: () => void;
}

/** A disabled one keeps the focus and can be read, but does nothing. */
export function LookButton({ look, name, disabled, pressed, onClick }: LookButtonProps): ReactElement {
  const drawingOf = useDrawings();
  const hasIcon = look.icon !== undefined && drawingOf(look.icon) !== undefined;
  const label = look.label ?? (hasIcon ? undefined : name);
  return (
    <button
      type="button"
      className={classes["button"]}
      data-look={look.type}
      style={look.style}
      aria-disabled={disabled || undefined}
      {...(pressed === undefined ? {} : { "aria-pressed": pressed })}
      {...(label === undefined ? { "aria-label": name } : {})}
      onClick={() => disabled || onClick()}
    >
      {look.icon !== undefined && hasIcon && <Icon name={look.icon} />}
      {label !== undefined && <span>{label}</span>}
    </button>
  );
}
