// The value of a control: asked for once, or followed live over the subscriptions that all widgets share.

import { useEffect, useMemo, useState } from "react";
import { usePlace } from "@/dashboard/place";
import { latestOf, useSources, type SourceRequest } from "@/dashboard/source";
import type { DataKey, Datasource } from "@/dashboard/model";
import { t } from "@/i18n";
import type { LiveUpdate } from "@/live/protocol";
import { live } from "@/live/socket";
import { parsed, toValue, type Converted } from "./convert";
import { callDevice, reasonOf } from "./rpc";
import type { AttributeScope, Getter } from "./settings";
import type { Target } from "./useControl";

export interface Reading {
  value: unknown;
  /** Changes with every value that comes. */
  version: string;
  waiting: boolean;
  problem: string | undefined;
  /** Asks the device again; none for values that come by themselves. */
  again: (() => void) | undefined;
}

const KEY_TYPES: Record<AttributeScope, DataKey["type"]> = { SERVER_SCOPE: "serverAttribute", SHARED_SCOPE: "sharedAttribute", CLIENT_SCOPE: "clientAttribute" };

interface Raw {
  data: unknown;
  version: string;
  problem?: string;
}

function requestFor(getter: Getter, target: Target): { key: DataKey; source: Datasource; request: SourceRequest } {
  const type = getter.action === "GET_TIME_SERIES" ? "timeseries" : getter.scope === undefined ? "attribute" : KEY_TYPES[getter.scope];
  const key: DataKey = { name: getter.key, type, label: getter.key, color: "", units: undefined, decimals: undefined, settings: {}, hidden: false, raw: {} };
  const source: Datasource = { type: "entity", name: "", aliasId: undefined, deviceId: undefined, filterId: undefined, dataKeys: [key], latestKeys: [], alarmFilter: {} };
  const filter = { type: "singleEntity", singleEntity: { entityType: target.id.entityType, id: target.id.id } };
  return { key, source, request: { source, filter, keyFilters: [], window: undefined } };
}

/** Follows an attribute or a key of time series. */
function useStored(getter: Getter, target: Target | undefined): Raw | undefined {
  const wanted = getter.action === "GET_ATTRIBUTE" || getter.action === "GET_TIME_SERIES";
  const identity = wanted && target !== undefined ? JSON.stringify([getter.action, getter.key, getter.scope, target]) : "";
  const asked = useMemo(() => (identity === "" || target === undefined ? undefined : requestFor(getter, target)), [identity]);
  const sources = useMemo(() => (asked === undefined ? [] : [asked.source]), [asked]);
  const shown = useSources(asked === undefined ? [] : [asked.request], sources)[0];
  const entity = shown?.entities[0];
  const point = asked === undefined || entity === undefined ? undefined : latestOf(entity, asked.key);
  if (shown?.problem !== undefined) {
    return { data: undefined, version: "refused", problem: t("The server refused this: {problem}", { problem: shown.problem }) };
  }
  // A key that was never written comes as the empty text of the beginning of time.
  return entity === undefined ? undefined : { data: point === undefined || point.ts === 0 ? null : parsed(point.value), version: point === undefined ? "none" : `${point.ts} ${point.value}` };
}

/** Follows whether there are active alarms. */
function useAlarmStatus(getter: Getter, target: Target | undefined): Raw | undefined {
  const [raw, setRaw] = useState<Raw>();
  const command = getter.action === "GET_ALARM_STATUS" && target !== undefined
    ? JSON.stringify({
        type: "ALARM_STATUS",
        originatorId: target.id,
        severityList: getter.severities.length === 0 ? null : getter.severities,
        typeList: getter.alarmTypes.length === 0 ? null : getter.alarmTypes,
      })
    : "";
  useEffect(
    () =>
      command === ""
        ? undefined
        : live.subscribe(JSON.parse(command) as { type: string }, (update: LiveUpdate & { active?: boolean }) =>
            setRaw(
              (update.errorCode ?? 0) !== 0
                ? { data: undefined, version: "refused", problem: t("The server refused this: {problem}", { problem: update.errorMsg ?? "" }) }
                : { data: update.active === true, version: String(update.active) },
            ),
          ),
    [command],
  );
  return raw;
}

/** Asks the device itself, once and whenever somebody wants to know again. */
function useAnswer(getter: Getter, target: Target | undefined, turn: number): Raw | undefined {
  const { editing } = usePlace();
  const [raw, setRaw] = useState<Raw>();
  const isDevice = target?.id.entityType === "DEVICE";
  const call = getter.action === "EXECUTE_RPC" && isDevice && !editing ? JSON.stringify([target, getter.rpc]) : "";
  useEffect(() => {
    if (call === "") {
      return undefined;
    }
    const ending = new AbortController();
    const [device, rpc] = JSON.parse(call) as [Target, Getter["rpc"]];
    setRaw(undefined);
    callDevice(device.id.id, device.name, { ...rpc, params: null, twoWay: true }, ending.signal).then(
      (data) => ending.signal.aborted || setRaw({ data, version: `answer ${turn}` }),
      (error: unknown) => ending.signal.aborted || setRaw({ data: undefined, version: `failed ${turn}`, problem: reasonOf(error, device.name, rpc.timeoutMs) }),
    );
    return () => ending.abort();
  }, [call, turn]);
  return raw;
}

/** Gets the value of a control in the way that its settings say. */
export function useReading(getter: Getter, target: Target | undefined): Reading {
  const [turn, setTurn] = useState(0);
  const place = usePlace();
  const stored = useStored(getter, target);
  const alarms = useAlarmStatus(getter, target);
  const answer = useAnswer(getter, target, turn);
  const raws: Record<Getter["action"], Raw | undefined> = {
    DO_NOTHING: { data: getter.defaultValue, version: "default" },
    EXECUTE_RPC: answer,
    GET_ATTRIBUTE: stored,
    GET_TIME_SERIES: stored,
    GET_ALARM_STATUS: alarms,
    GET_DASHBOARD_STATE: { data: place.state.id, version: place.state.id },
    GET_DASHBOARD_STATE_OBJECT: { data: place.state, version: JSON.stringify(place.state) },
  };
  const raw = raws[getter.action];
  const identity = JSON.stringify([getter.body, getter.on, raw]);
  const [made, setMade] = useState<Converted & { identity: string }>();
  useEffect(() => {
    let current = true;
    if (raw !== undefined && raw.problem === undefined) {
      void toValue(getter, raw.data).then((value) => current && setMade({ ...value, identity }));
    }
    return () => {
      current = false;
    };
  }, [identity]);
  const calls = getter.action === "EXECUTE_RPC" && target !== undefined;
  const asks = calls && target.id.entityType === "DEVICE";
  const noDevice = calls && !asks ? t("Commands go to devices only, and {name} is none.", { name: target.name }) : undefined;
  return {
    value: made === undefined ? getter.defaultValue : made.value,
    version: made?.identity ?? "",
    waiting: target !== undefined && !place.editing && raw === undefined && (asks || getter.action !== "EXECUTE_RPC"),
    problem: noDevice ?? raw?.problem ?? (made?.identity === identity ? made.problem : undefined),
    again: asks ? () => setTurn((before) => before + 1) : undefined,
  };
}
