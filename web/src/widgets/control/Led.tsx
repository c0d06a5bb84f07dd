// A lamp that is lit while something is on. It may ask the device first whether it is there.

import { useEffect, useState, type ReactElement } from "react";
import { text } from "@/dashboard/model";
import { usePlace } from "@/dashboard/place";
import { t } from "@/i18n";
import { safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { ControlFrame } from "./ControlFrame";
import { callDevice, reasonOf } from "./rpc";
import { olderGetter } from "./settings";
import { useControl, type Target } from "./useControl";
import { useReading, type Reading } from "./useReading";
import classes from "./control.module.css";

/** A device that did not answer is asked again after this time, milliseconds. */
const CHECK_AGAIN_MS = 10_000;

/** Asks a device whether it is well until it says so. */
function useCheck(method: string | undefined, target: Target | undefined, timeoutMs: number): { well: boolean; problem: string | undefined } {
  const { editing } = usePlace();
  const [state, setState] = useState<{ well: boolean; problem: string | undefined }>({ well: method === undefined, problem: undefined });
  const id = target?.id.entityType === "DEVICE" ? target.id.id : undefined;
  const name = target?.name ?? "";
  useEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      let problem: string | undefined;
      try {
        const answer = await callDevice(id ?? "", name, { method: method ?? "", params: null, twoWay: true, timeoutMs, persistent: false, pollingMs: 0 }, ending.signal);
        problem = answer ? undefined : t("Something is wrong, says {name}.", { name });
      } catch (error) {
        problem = reasonOf(error, name, timeoutMs);
      }
      if (!ending.signal.aborted) {
        setState({ well: problem === undefined, problem });
        timer = problem === undefined ? undefined : setTimeout(() => void ask(), CHECK_AGAIN_MS);
      }
    };
    if (method !== undefined && id !== undefined && !editing) {
      void ask();
    }
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [method, id, name, timeoutMs, editing]);
  return state;
}

export default function Led({ widget, entities }: WidgetProps): ReactElement {
  const { settings } = widget;
  const control = useControl(entities, undefined);
  const getter = olderGetter({ ...settings, valueKey: settings["valueAttribute"] ?? settings["valueKey"] }, "attribute");
  const method = settings["performCheckStatus"] === false ? undefined : (text(settings["checkStatusMethod"]) ?? "checkStatus");
  const { well, problem } = useCheck(method, control.target, getter.rpc.timeoutMs);
  const state = useReading(well ? getter : { ...getter, action: "DO_NOTHING" }, control.target);
  const isOn = state.value === true && (well || state.version !== "");
  const color = safeColor(settings["ledColor"]) ?? "#4caf50";
  const title = text(settings["title"]);
  const checked: Reading = { ...state, problem: state.problem ?? problem };
  const style = isOn ? { background: color, boxShadow: `0 0 1.2em 0.1em ${color}` } : { background: `color-mix(in srgb, ${color} 25%, light-dark(#9aa5a0, #101614))` };
  return (
    <ControlFrame control={control} readings={[checked]} readOnly>
      <div className={classes["row"]} data-layout="column">
        <div className={classes["lamp"]} role="img" aria-label={`${title ?? (widget.title || t("Lamp"))}: ${t(isOn ? "On" : "Off")}`} data-on={isOn} style={style} />
        {title !== undefined && <span className={classes["label"]}>{title}</span>}
      </div>
    </ControlFrame>
  );
}
