// What a control may do and has done: its target, commands on their way, and why the last one failed.

import { useEffect, useRef, useState } from "react";
import { api } from "@/api/client";
import { currentClaims } from "@/api/session";
import type { EntityId } from "@/api/types";
import { usePlace } from "@/dashboard/place";
import type { EntityValues } from "@/dashboard/source";
import { t } from "@/i18n";
import { toData } from "./convert";
import { callDevice, reasonOf, type DeviceCall } from "./rpc";
import type { Setter } from "./settings";
import type { Reading } from "./useReading";

export interface Target {
  id: EntityId;
  name: string;
}

export interface Control {
  target: Target | undefined;
  /** Why nothing can be changed here; none if it can. */
  locked: string | undefined;
  pending: boolean;
  /** What is happening to a command that takes long. */
  note: string | undefined;
  problem: string | undefined;
  forget: () => void;
  /** Does something with the target; a failure is told on the control, and answered with `false`. */
  run: (action: (target: Target, signal: AbortSignal) => Promise<unknown>, timeoutMs?: number) => Promise<boolean>;
  /** Hands a new value on. While one is on its way, only the last one of those that come is kept. */
  put: (setter: Setter, value: unknown) => Promise<boolean>;
  call: (call: DeviceCall) => Promise<unknown>;
}

/** Returns why a target can't be written to in the way of a setter. */
export function lockOf(target: Target | undefined, setter: Setter | undefined): string | undefined {
  if (currentClaims()?.isPublic === true) {
    return t("Visitors of a public link see this and change nothing.");
  }
  if (target === undefined) {
    return t("No entity is chosen for this.");
  }
  const isDevice = target.id.entityType === "DEVICE";
  if (setter?.action === "EXECUTE_RPC" && !isDevice) {
    return t("Commands go to devices only, and {name} is none.", { name: target.name });
  }
  return setter?.action === "SET_ATTRIBUTE" && setter.scope !== "SERVER_SCOPE" && !isDevice
    ? t("Only devices have shared and client attributes, and {name} is none.", { name: target.name })
    : undefined;
}

/** Writes values of an entity; `undefined` as scope stands for telemetry. */
export async function saveValues(id: EntityId, scope: string | undefined, values: Record<string, unknown>): Promise<void> {
  const path = `/api/plugins/telemetry/${id.entityType}/${id.id}`;
  await api.post(scope === undefined ? `${path}/timeseries/ANY` : `${path}/attributes/${scope}`, values);
}

export function useControl(entities: readonly EntityValues[], setter: Setter | undefined): Control {
  const { editing } = usePlace();
  const first = entities[0];
  const target = first === undefined ? undefined : { id: first.id, name: first.name };
  const [state, setState] = useState<Pick<Control, "pending" | "note" | "problem">>({ pending: false, note: undefined, problem: undefined });
  const ending = useRef<AbortController>(undefined);
  const chain = useRef<Promise<unknown>>(Promise.resolve());
  const newest = useRef(0);
  useEffect(() => {
    const controller = new AbortController();
    ending.current = controller;
    return () => controller.abort();
  }, []);
  const locked = lockOf(target, setter);

  const run: Control["run"] = async (action, timeoutMs) => {
    const signal = ending.current?.signal;
    if (target === undefined || locked !== undefined || editing || signal === undefined) {
      return false;
    }
    setState({ pending: true, note: undefined, problem: undefined });
    try {
      await action(target, signal);
      setState({ pending: false, note: undefined, problem: undefined });
      return true;
    } catch (error) {
      if (!signal.aborted) {
        setState({ pending: false, note: undefined, problem: reasonOf(error, target.name, timeoutMs) });
      }
      return false;
    }
  };
  const stored = (): void => setState((before) => ({ ...before, note: t("Stored until {name} connects.", { name: target?.name ?? "" }) }));
  const send = async (one: Setter, value: unknown, to: Target, signal: AbortSignal): Promise<void> => {
    const data = await toData(one, value);
    if (one.action === "EXECUTE_RPC") {
      await callDevice(to.id.id, to.name, { ...one.rpc, params: data, twoWay: one.twoWay }, signal, stored);
    } else {
      await saveValues(to.id, one.action === "SET_ATTRIBUTE" ? one.scope : undefined, { [one.key]: data });
    }
  };
  return {
    ...state,
    target,
    locked,
    forget: () => setState((before) => ({ ...before, problem: undefined })),
    run,
    put: async (one, value) => {
      const turn = ++newest.current;
      const before = chain.current;
      const mine = before.then(() => (turn === newest.current ? run((to, signal) => send(one, value, to, signal), one.rpc.timeoutMs) : true));
      chain.current = mine;
      return await mine;
    },
    call: (call) => (target === undefined ? Promise.reject(new Error(t("No entity is chosen for this."))) : callDevice(target.id.id, target.name, call, ending.current?.signal ?? new AbortController().signal, stored)),
  };
}

export interface Setting {
  value: unknown;
  set: (setter: Setter, value: unknown) => void;
}

/** The value that a control shows: what somebody has just set, until it has failed or something newer has come. */
export function useSetting(control: Control, reading: Reading): Setting {
  const [own, setOwn] = useState<{ value: unknown; version: string }>();
  const isOwn = own !== undefined && (control.pending || own.version === reading.version);
  return {
    value: isOwn ? own.value : reading.value,
    set: (setter, value) => {
      const mine = { value, version: reading.version };
      setOwn(mine);
      void control.put(setter, value).then((done) => done || setOwn((now) => (now === mine ? undefined : now)));
    },
  };
}
