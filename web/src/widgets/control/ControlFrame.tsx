// What stands around every control: whether something is on its way, and the reason if something failed or may not be done.

import type { ReactElement, ReactNode } from "react";
import { t } from "@/i18n";
import type { Control } from "./useControl";
import type { Reading } from "./useReading";
import classes from "./control.module.css";

interface FrameProps {
  control: Control;
  /** The values that the control shows, for what is wrong with them. */
  readings?: readonly Reading[];
  /** Whether nothing is missing here without somebody who may change it, such as at a lamp. */
  readOnly?: boolean;
  children: ReactNode;
}

export function ControlFrame({ control, readings = [], readOnly = false, children }: FrameProps): ReactElement {
  const { pending, problem, note } = control;
  const failed = readings.find((reading) => reading.problem !== undefined);
  const waiting = pending || readings.some((reading) => reading.waiting);
  const locked = readOnly ? undefined : control.locked;
  const shown = problem ?? failed?.problem;
  const again = problem === undefined ? failed?.again : undefined;
  return (
    <div className={classes["frame"]} aria-busy={waiting} data-pending={pending || undefined}>
      <div className={classes["inside"]}>{children}</div>
      {waiting && <i className={classes["progress"]} />}
      {shown !== undefined ? (
        <div className={classes["problem"]} role="alert" title={shown}>
          <span>{shown}</span>
          {again !== undefined && (
            <button type="button" onClick={again}>
              {t("Try again")}
            </button>
          )}
          {problem !== undefined && (
            <button type="button" aria-label={t("Close")} onClick={control.forget}>
              ✕
            </button>
          )}
        </div>
      ) : (
        (note ?? locked) !== undefined && (
          <div className={classes["note"]} role="status" title={note ?? locked}>
            <span>{note ?? locked}</span>
          </div>
        )
      )}
    </div>
  );
}
