// What somebody has typed into a form and not saved, kept in this browser: over a log-out, another tab of the page, a crash. Secrets are never kept.

import { useEffect, useMemo, useRef, useState } from "react";
import { currentClaims } from "@/api/session";
import { isObject, valueAt, withValue, type FormField, type FormValues } from "@/ui/form/values";

/** Names a form, and the version of what it began with. */
export interface DraftPlace {
  name: string;
  version?: unknown;
}

export interface FormDraft {
  /** When something was typed last. */
  at: number;
  /** The version of what the changes began with. */
  version?: unknown;
  /** Changed values by their paths. */
  changes: FormValues;
  /** Whether secrets were typed, too. */
  withheld: boolean;
}

const PREFIX = "fieldline_form_draft:";
/** Drafts that nobody comes back to make room. */
const MOST = 50;
const OLDEST_MS = 30 * 86_400_000;
/** What holds secrets by its name, where no field says so. */
const SECRET = /(password|passphrase|secret|token|signingkey|privatekey|apikey|credentials?|credentialsid|credentialsvalue|certificate)$/i;

const isSecretName = (name: string): boolean => SECRET.test(name);

/** Numbers and switches are none, such as the hours that a token is valid. */
const isSecret = (name: string, value: unknown): boolean => isSecretName(name) && (typeof value === "string" ? value !== "" : typeof value === "object" && value !== null);

const isSecretField = (field: FormField, value: unknown): boolean => field.secret === true || field.type === "password" || isSecret(field.name, value);

/** Whether one value of an object is a secret, by its field where one is declared. */
function isSecretOf(fields: readonly FormField[], name: string, value: unknown): boolean {
  const field = fields.find((one) => one.name === name);
  return field === undefined ? isSecret(name, value) : isSecretField(field, value);
}

/** The fields whose paths begin with a name, as those of the value there. */
const fieldsWithin = (fields: readonly FormField[], name: string): FormField[] => fields.flatMap((one) => (one.name.startsWith(`${name}.`) ? [{ ...one, name: one.name.slice(name.length + 1) }] : []));

/** Returns a value without the secrets within it, and tells of each. `fields` are those of the value, where some are declared. */
function withoutSecrets(value: unknown, fields: readonly FormField[], found: () => void): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => withoutSecrets(one, fields, found));
  }
  if (!isObject(value)) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
      const field = fields.find((one) => one.name === name);
      if (isSecretOf(fields, name, inner)) {
        found();
        return [];
      }
      return [[name, field === undefined ? withoutSecrets(inner, fieldsWithin(fields, name), found) : fieldWithoutSecrets(inner, field, found)]];
    }),
  );
}

function fieldWithoutSecrets(value: unknown, field: FormField, found: () => void): unknown {
  const fields = field.fields ?? [];
  // The keys of a map are names that somebody has given.
  return field.keyed !== undefined && isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, row]) => [key, withoutSecrets(row, fields, found)]))
    : withoutSecrets(value, fields, found);
}

/** Puts secrets that are stored back into a value that was kept without them: those alone that are not kept, so that what was deleted stays so. */
function withStored(value: unknown, stored: unknown, fields: readonly FormField[]): unknown {
  if (Array.isArray(value)) {
    return Array.isArray(stored) && stored.length === value.length ? value.map((one, at) => withStored(one, stored[at], fields)) : value;
  }
  if (!isObject(value) || !isObject(stored)) {
    return value;
  }
  const secrets = Object.entries(stored).filter(([name, inner]) => !(name in value) && isSecretOf(fields, name, inner));
  const kept = Object.entries(value).map(([name, inner]) => {
    const field = fields.find((one) => one.name === name);
    return [name, field === undefined ? withStored(inner, stored[name], fieldsWithin(fields, name)) : fieldWithStored(inner, stored[name], field)];
  });
  return { ...Object.fromEntries(kept), ...Object.fromEntries(secrets) };
}

function fieldWithStored(value: unknown, stored: unknown, field: FormField): unknown {
  const fields = field.fields ?? [];
  return field.keyed !== undefined && isObject(value) && isObject(stored)
    ? Object.fromEntries(Object.entries(value).map(([key, row]) => [key, withStored(row, stored[key], fields)]))
    : withStored(value, stored, fields);
}

const textOf = (value: unknown): string => JSON.stringify(value ?? "");

/** Returns what was changed of the fields of a form, apart from secrets. */
export function changesOf(fields: readonly FormField[], begun: FormValues, values: FormValues): Pick<FormDraft, "changes" | "withheld"> {
  let withheld = false;
  const found = (): void => void (withheld = true);
  const changes: FormValues = {};
  for (const field of fields) {
    const value = valueAt(values, field.name);
    if (field.name !== "" && textOf(value) !== textOf(valueAt(begun, field.name))) {
      if (fields.some((one) => one.name === field.name && isSecretField(one, value))) {
        found();
      } else {
        changes[field.name] = fieldWithoutSecrets(value ?? null, field, found);
      }
    }
  }
  return { changes, withheld };
}

/** Puts what was changed onto what a form begins with now. */
export function withChanges(fields: readonly FormField[], begun: FormValues, changes: FormValues): FormValues {
  return Object.entries(changes).reduce((values, [path, value]) => {
    const field = fields.findLast(({ name }) => name === path);
    return field === undefined ? values : withValue(values, path, fieldWithStored(value, valueAt(begun, path), field));
  }, begun);
}

/** Forms that are being saved: what follows a save must not find the draft of before. */
const held = new Set<string>();

/** Returns where the draft of a form is kept; visitors of public links have none. */
function keyOf(name: string): string | undefined {
  const claims = currentClaims();
  return claims === undefined || claims.isPublic === true ? undefined : `${PREFIX}${claims.userId}:${name}`;
}

/** What the keys of one user's drafts begin with. */
const ownerOf = (key: string): string => key.slice(0, key.indexOf(":", PREFIX.length) + 1);

function readDraft(key: string): FormDraft | undefined {
  try {
    const draft = JSON.parse(localStorage.getItem(key) ?? "null") as FormDraft | null;
    return draft !== null && typeof draft.at === "number" && isObject(draft.changes) ? draft : undefined;
  } catch {
    return undefined;
  }
}

/** Drops drafts that are old, and the oldest of whoever keeps another one if that user has too many. */
function makeRoom(now: number, owner: string): void {
  const drafts = Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .map((key) => ({ key, at: readDraft(key)?.at ?? 0 }))
    .sort((a, b) => b.at - a.at);
  const own = drafts.filter(({ key }) => key.startsWith(owner));
  [...own.slice(MOST - 1), ...drafts.filter(({ at }) => now - at > OLDEST_MS)].forEach(({ key }) => localStorage.removeItem(key));
}

function writeDraft(key: string, draft: FormDraft): boolean {
  try {
    if (localStorage.getItem(key) === null) {
      makeRoom(draft.at, ownerOf(key));
    }
    localStorage.setItem(key, JSON.stringify(draft));
    return true;
  } catch {
    // The browser keeps no more; what is on the screen can still be saved.
    localStorage.removeItem(key);
    return false;
  }
}

/** Whether something of a form was kept. */
export function hasDraft(name: string): boolean {
  const key = keyOf(name);
  return key !== undefined && !held.has(key) && readDraft(key) !== undefined;
}

/** Gives up what was kept of a form. */
export function dropDraft(name: string): void {
  const key = keyOf(name);
  if (key !== undefined) {
    localStorage.removeItem(key);
  }
}

/** Keeps what is typed into a form that begins with `begun`, and brings back what was. */
export function useFormDraft(place: DraftPlace | undefined, fields: readonly FormField[], begun: FormValues) {
  // Whoever is logged in now: at a log-out there is nobody any more.
  const [key] = useState(() => (place === undefined ? undefined : keyOf(place.name)));
  const [restored, setRestored] = useState(() => {
    const draft = key === undefined || held.has(key) ? undefined : readDraft(key);
    const differs = draft !== undefined && Object.keys(changesOf(fields, begun, withChanges(fields, begun, draft.changes)).changes).length > 0;
    if (draft !== undefined && !differs && key !== undefined) {
      localStorage.removeItem(key);
    }
    return differs ? draft : undefined;
  });
  const version = restored === undefined ? place?.version : restored.version;
  const [first] = useState(() => (restored === undefined ? begun : withChanges(fields, begun, restored.changes)));
  const [values, setValues] = useState(first);
  const now = useMemo(() => (place === undefined ? { changes: {}, withheld: false } : changesOf(fields, begun, values)), [place === undefined, fields, begun, values]);
  const [fits, setFits] = useState(true);
  const seen = useRef(first);
  const hasChanges = Object.keys(now.changes).length > 0;
  useEffect(() => {
    // Another tab may keep what is typed there, so that only a change here counts.
    if (key === undefined || seen.current === values) {
      return;
    }
    seen.current = values;
    if (!hasChanges) {
      localStorage.removeItem(key);
    } else {
      setFits(writeDraft(key, { at: Date.now(), version, ...now, withheld: now.withheld || restored?.withheld === true }));
    }
  }, [key, values, now, hasChanges, version, restored]);
  return {
    values,
    setValues,
    /** What was brought back, as long as it is neither saved nor given up. */
    restored,
    /** The version that the values belong to. */
    version,
    dirty: hasChanges || now.withheld,
    /** Whether all that was typed stays in this browser. */
    kept: key === undefined || !fits || !hasChanges ? false : now.withheld ? ("partly" as const) : true,
    drop: (): void => {
      if (key !== undefined) {
        localStorage.removeItem(key);
      }
      setRestored(undefined);
    },
    /** While a form is saved, its draft stays for the case of a crash, but no other form begins with it. */
    hold: (isHeld: boolean): void => {
      if (key !== undefined) {
        held[isHeld ? "add" : "delete"](key);
      }
    },
  };
}
