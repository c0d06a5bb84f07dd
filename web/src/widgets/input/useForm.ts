// What a form of values holds: what is stored, live; what was typed over it; and saving, entity by entity.

import { useEffect, useMemo, useState } from "react";
import { api } from "@/api/client";
import { latestOf, type EntityValues, type SourceValues } from "@/dashboard/source";
import { usePlace } from "@/dashboard/place";
import { t } from "@/i18n";
import { applied, parsed } from "../control/convert";
import { reasonOf } from "../control/rpc";
import { saveValues } from "../control/useControl";
import { faultOf, inputOf, isBoolean, opens, valueOf, type FieldInput, type InputField } from "./fields";
import type { FormPlan } from "./olderForms";

export interface Entry {
  id: string;
  entity: EntityValues;
  field: InputField;
  /** The stored value, before functions. */
  stored: unknown;
}

export interface ValuesForm {
  entries: Entry[];
  inputOf: (entry: Entry) => FieldInput;
  faultOf: (entry: Entry) => string | undefined;
  isDisabled: (entry: Entry) => boolean;
  set: (entry: Entry, input: FieldInput) => void;
  /** Saves what has changed, or one field alone. */
  save: (only?: Entry, input?: FieldInput) => Promise<void>;
  undo: () => void;
  /** Whether somebody has typed into a field; before that nothing in it is called wrong. */
  isTouched: (entry: Entry) => boolean;
  isChanged: (entry: Entry) => boolean;
  changed: boolean;
  saving: boolean;
  done: boolean;
  problem: string | undefined;
}

const SCOPES = { server: "SERVER_SCOPE", shared: "SHARED_SCOPE" } as const;

function entriesOf(sources: SourceValues[], plan: FormPlan): Entry[] {
  return sources.flatMap(({ source, entities }, at) =>
    entities.flatMap((entity) =>
      plan.fieldsOf(source).map((field, n): Entry => {
        const point = latestOf(entity, field.key);
        const value = point === undefined || (point.ts === 0 && point.value === "") ? undefined : field.kind === "string" || field.kind === "color" ? point.value : parsed(point.value);
        return { id: `${at} ${entity.id.id} ${n}`, entity, field, stored: value };
      }),
    ),
  );
}

/** Runs the functions that turn stored values into shown ones. */
function useShown(entries: Entry[]): { shown: ReadonlyMap<string, unknown>; problem: string | undefined } {
  const asked = entries.filter(({ field }) => field.getBody !== undefined);
  const identity = JSON.stringify(asked.map(({ id, field, stored }) => [id, field.getBody, stored]));
  const [made, setMade] = useState<{ shown: ReadonlyMap<string, unknown>; problem: string | undefined }>({ shown: new Map(), problem: undefined });
  useEffect(() => {
    let current = true;
    void Promise.all(asked.map(async ({ id, field, stored }) => [id, await applied(field.getBody ?? "", ["value", "ctx"], stored, {})] as const)).then((all) => {
      if (current && all.length > 0) {
        setMade({ shown: new Map(all.map(([id, { value }]) => [id, value])), problem: all.find(([, one]) => one.problem !== undefined)?.[1].problem });
      }
    });
    return () => {
      current = false;
    };
  }, [identity]);
  return made;
}

/** Writes values of one place of an entity; those that are empty are deleted. */
async function write(entity: EntityValues, place: InputField["place"], values: [string, unknown][]): Promise<void> {
  const kept = values.filter(([, value]) => value !== null && value !== undefined);
  const gone = values.filter(([, value]) => value === null || value === undefined).map(([key]) => key);
  if (place === "timeseries") {
    if (gone.length > 0) {
      throw new Error(t("Telemetry has no empty values: {keys}", { keys: gone.join(", ") }));
    }
    await saveValues(entity.id, undefined, Object.fromEntries(kept));
    return;
  }
  if (kept.length > 0) {
    await saveValues(entity.id, SCOPES[place], Object.fromEntries(kept));
  }
  if (gone.length > 0) {
    await api.delete(`/api/plugins/telemetry/${entity.id.entityType}/${entity.id.id}/${SCOPES[place]}`, { keys: gone.join(",") });
  }
}

/** Returns what is to be saved for a field. A function of it that fails saves nothing. */
async function outcomeOf({ field, stored }: Entry, input: FieldInput): Promise<unknown> {
  const value = valueOf(field, input);
  if (field.setBody === undefined) {
    return value;
  }
  const made = await applied(field.setBody, ["value", "originValue", "ctx"], value, stored ?? null, {});
  if (made.problem !== undefined) {
    throw new Error(made.problem);
  }
  return made.value;
}

async function saveAll(entries: Entry[], input: (entry: Entry) => FieldInput): Promise<void> {
  const places = new Map<string, { entity: EntityValues; place: InputField["place"]; values: [string, unknown][] }>();
  for (const entry of entries) {
    const { entity, field } = entry;
    if (field.place === "shared" && entity.id.entityType !== "DEVICE") {
      throw new Error(t("Only devices have shared and client attributes, and {name} is none.", { name: entity.name }));
    }
    const path = `${entity.id.id} ${field.place}`;
    const one = places.get(path) ?? { entity, place: field.place, values: [] };
    one.values.push([field.key.name, await outcomeOf(entry, input(entry))]);
    places.set(path, one);
  }
  for (const { entity, place, values } of places.values()) {
    try {
      await write(entity, place, values);
    } catch (error) {
      throw new Error(reasonOf(error, entity.name));
    }
  }
}

export function useForm(sources: SourceValues[], plan: FormPlan, updateAll: boolean): ValuesForm {
  const { editing } = usePlace();
  const entries = useMemo(() => entriesOf(sources, plan), [sources, plan]);
  const { shown, problem: notShown } = useShown(entries);
  const [typed, setTyped] = useState<ReadonlyMap<string, FieldInput>>(new Map());
  const [state, setState] = useState<{ saving: boolean; done: boolean; problem: string | undefined }>({ saving: false, done: false, problem: undefined });
  const base = (entry: Entry): FieldInput => inputOf(entry.field, shown.has(entry.id) ? shown.get(entry.id) : entry.stored);
  const input = (entry: Entry): FieldInput => typed.get(entry.id) ?? base(entry);
  const isChanged = (entry: Entry): boolean => typed.has(entry.id) && typed.get(entry.id) !== base(entry);

  const isDisabled = (entry: Entry): boolean => {
    const { field, entity } = entry;
    if (field.editable === "disabled") {
      return true;
    }
    const other = field.disabledOn === undefined ? undefined : entries.find((one) => one.entity === entity && one.field.key.name === field.disabledOn);
    return other !== undefined && !opens(input(other));
  };
  const fault = (entry: Entry): string | undefined => (entry.field.hidden || isDisabled(entry) ? undefined : faultOf(entry.field, input(entry)));

  const save = async (only?: Entry, next?: FieldInput): Promise<void> => {
    const now = (entry: Entry): FieldInput => (entry === only && next !== undefined ? next : input(entry));
    const wanted = only !== undefined ? [only] : entries.filter((entry) => updateAll || isChanged(entry));
    if (editing || wanted.some((entry) => !entry.field.hidden && !isDisabled(entry) && faultOf(entry.field, now(entry)) !== undefined)) {
      return;
    }
    setState({ saving: true, done: false, problem: undefined });
    try {
      await saveAll(wanted, now);
      // What a function has made of it comes back from the server; everything else is shown as it was stored.
      const kept = wanted.filter(({ field }) => field.setBody === undefined).map((entry): [string, FieldInput] => [entry.id, inputOf(entry.field, valueOf(entry.field, now(entry)))]);
      const ids = new Set(wanted.map(({ id }) => id));
      setTyped((before) => new Map([...[...before].filter(([id]) => !ids.has(id)), ...kept]));
      setState({ saving: false, done: true, problem: undefined });
    } catch (error) {
      setState({ saving: false, done: false, problem: error instanceof Error ? error.message : String(error) });
    }
  };
  // What was typed is shown until it has come back as what is stored.
  useEffect(() => {
    const settled = entries.filter((entry) => typed.has(entry.id) && typed.get(entry.id) === base(entry)).map(({ id }) => id);
    if (state.done && settled.length > 0) {
      setTyped((before) => new Map([...before].filter(([id]) => !settled.includes(id))));
    }
  });
  return {
    entries,
    inputOf: input,
    faultOf: fault,
    isDisabled,
    set: (entry, next) => {
      setTyped((before) => new Map([...before, [entry.id, next]]));
      setState((before) => (before.done || before.problem !== undefined ? { ...before, done: false, problem: undefined } : before));
      if (!plan.buttons && (isBoolean(entry.field.kind) || ["select", "radio"].includes(entry.field.kind))) {
        void save(entry, next);
      }
    },
    save,
    undo: () => {
      setTyped(new Map());
      setState({ saving: false, done: false, problem: undefined });
    },
    isTouched: (entry) => typed.has(entry.id),
    isChanged,
    changed: entries.some(isChanged),
    ...state,
    problem: state.problem ?? notShown,
  };
}
