// The live latest values of an entity as rows that can be searched, chosen, and changed where that is allowed.

import { ActionIcon, Button, Group, TextInput } from "@mantine/core";
import { createContext, useContext, useEffect, useMemo, useRef, useState, type FormEvent, type ReactElement, type ReactNode } from "react";
import { plural, t } from "@/i18n";
import { useAnswered, useKeys, useValue, type LatestValue, type LatestValues } from "@/live/latest";
import { Ago, EmptyState, notify, Waiting } from "@/ui/feedback";
import type { GridColumn } from "@/ui/grid/columns";
import type { GridSort } from "@/ui/grid/sorting";
import { LocalTable } from "@/ui/list/LocalTable";
import { LiveSparkline } from "./LiveSparkline";

export function valueText(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Reads what a person typed as the JSON value that it looks like, else as text. */
export function typedValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Writes a value so that it keeps its type when it is read again: text that looks like JSON is quoted. */
export function editedText(value: unknown): string {
  return typeof value === "string" && typedValue(value) === value ? value : JSON.stringify(value);
}

function EditedValue({ name, value, onSave, onEnd }: { name: string; value: unknown; onSave: (value: unknown) => Promise<void>; onEnd: () => void }): ReactElement {
  const [text, setText] = useState(() => editedText(value));
  const [busy, setBusy] = useState(false);
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await onSave(typedValue(text));
      onEnd();
    } catch (error) {
      notify.error(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void save(event)}>
      <Group gap={4} wrap="nowrap">
        <TextInput
          size="xs"
          autoFocus
          aria-label={t("Value of {name}", { name })}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && onEnd()}
        />
        <Button type="submit" size="compact-xs" loading={busy}>
          {t("Save")}
        </Button>
      </Group>
    </form>
  );
}

/** The value as text, written anew by itself: of a flood of values only texts and lines change, and no row is drawn again. */
function LiveText({ values, name }: { values: LatestValues; name: string }): ReactElement {
  const ref = useRef<HTMLSpanElement>(null);
  const written = (): string => valueText(values.value(name)?.value);
  useEffect(() => {
    const write = (): void => {
      if (ref.current !== null) {
        ref.current.textContent = written();
      }
    };
    write();
    return values.watch(name, write);
  }, [values, name]);
  return (
    <span ref={ref} data-key={name}>
      {written()}
    </span>
  );
}

function LiveAgo({ values, name }: { values: LatestValues; name: string }): ReactElement {
  return <Ago ts={useValue(values, name)?.ts ?? 0} />;
}

/** Long keys and values are told whole. */
const WRAPS = { overflowWrap: "anywhere" } as const;

interface Editing {
  /** The key whose value is edited. */
  key: string | undefined;
  edit: (key: string | undefined) => void;
  save: (key: string, value: unknown) => Promise<void>;
}

/** Which value is edited: cells look by themselves, so that no other row is drawn again. */
const EditingContext = createContext<Editing>({ key: undefined, edit: () => undefined, save: () => Promise.resolve() });

function ValueCell({ values, name }: { values: LatestValues; name: string }): ReactElement {
  const { key, edit, save } = useContext(EditingContext);
  return key === name ? <EditedValue name={name} value={values.value(name)?.value} onSave={(value) => save(name, value)} onEnd={() => edit(undefined)} /> : <LiveText values={values} name={name} />;
}

function ChangeButton({ name }: { name: string }): ReactElement | null {
  const { key, edit } = useContext(EditingContext);
  return key === name ? null : (
    <Button size="compact-xs" variant="subtle" aria-label={t("Change {name}", { name })} onClick={() => edit(name)}>
      {t("Change")}
    </Button>
  );
}

/** Columns of the keys of an entity. What is live in them draws itself. */
function columnsOf(values: LatestValues, course: boolean): GridColumn<string>[] {
  const last = (key: string): LatestValue | undefined => values.value(key);
  return [
    { key: "key", label: "Key", px: 220, least: 110, sortable: true, hideable: false, text: (key) => key, style: () => WRAPS },
    {
      key: "value", label: "Value", px: 260, sortable: true,
      text: (key) => valueText(last(key)?.value),
      value: (key) => sortedValue(last(key)?.value),
      style: () => ({ fontVariantNumeric: "tabular-nums", ...WRAPS }),
      show: (key) => <ValueCell values={values} name={key} />,
    },
    ...(course ? [{ key: "course", label: "Course", px: 130, yields: 1, text: () => "", show: (key: string) => <LiveSparkline values={values} name={key} /> }] : []),
    { key: "ts", label: "Updated", px: 120, sortable: true, text: (key) => new Date(last(key)?.ts ?? 0).toISOString(), value: (key) => last(key)?.ts ?? 0, show: (key) => <LiveAgo values={values} name={key} /> },
  ];
}

/** Numbers before words, whether they came as numbers or as text. */
function sortedValue(value: unknown): number | string {
  const text = valueText(value);
  const asNumber = text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(asNumber) ? asNumber : text;
}

interface TableProps {
  label: string;
  values: LatestValues;
  /** Keys that were deleted here, and come no more. */
  gone?: ReadonlySet<string>;
  empty: string;
  course?: boolean;
  onSave?: (key: string, value: unknown) => Promise<void>;
  onRemove?: (key: string) => void;
  /** Told the keys in view. */
  onView?: (keys: string[]) => void;
  /** Buttons for the chosen keys. */
  bulk: (keys: string[], done: () => void) => ReactNode;
}

const BY_KEY: GridSort = { key: "key", order: "ASC" };
const same = (key: string): string => key;
const fits = (key: string, wanted: string): boolean => key.toLowerCase().includes(wanted);

export function ValueTable({ label, values, gone, empty, course = false, onSave, onRemove, onView, bulk }: TableProps): ReactElement {
  const [editing, setEditing] = useState<string>();
  const answered = useAnswered(values);
  const all = useKeys(values);
  const keys = useMemo(() => all.filter((key) => gone?.has(key) !== true), [all, gone]);
  const save = useRef(onSave);
  save.current = onSave;
  const mayWrite = onSave !== undefined;
  // Words have no course.
  const hasCourse = course && keys.some((key) => typeof sortedValue(values.value(key)?.value) === "number");
  const columns = useMemo(() => columnsOf(values, hasCourse), [values, hasCourse]);
  const edited = useMemo((): Editing => ({ key: editing, edit: setEditing, save: (key, value) => save.current?.(key, value) ?? Promise.resolve() }), [editing]);
  if (keys.length === 0) {
    return answered ? <EmptyState>{empty}</EmptyState> : <Waiting />;
  }
  const copy = (key: string): void => {
    navigator.clipboard.writeText(valueText(values.value(key)?.value)).then(() => notify.ok(t("Copied: {text}", { text: key })), notify.error);
  };
  // Browsers have a clipboard for pages of HTTPS and of their own machine alone; keys copy everywhere.
  const copies = isSecureContext;
  return (
    <EditingContext value={edited}>
      <LocalTable<string>
        label={label}
        name={course ? "TELEMETRY" : "ATTRIBUTES"}
        columns={columns}
        rows={keys}
        rowKey={same}
        sort={BY_KEY}
        fits={fits}
        told={(count, chosen) => (chosen > 0 ? plural(chosen, "{n} key is selected", "{n} keys are selected") : plural(count, "{n} key", "{n} keys"))}
        bulk={bulk}
        selectLabel={(key) => t("Select {name}", { name: key })}
        {...(onView === undefined ? {} : { onView })}
        actions={
          copies || mayWrite || onRemove !== undefined
            ? (key) => (
                <>
                  {mayWrite && <ChangeButton name={key} />}
                  {copies && (
                    <ActionIcon variant="subtle" color="gray" aria-label={t("Copy the value of {name}", { name: key })} title={t("Copy the value")} onClick={() => copy(key)}>
                      <svg viewBox="0 0 16 16" width={14} height={14} fill="none" stroke="currentColor" strokeWidth={1.5} aria-hidden>
                        <path d="M5.5 5.5h8v8h-8zM3 10.5V2.5h8" />
                      </svg>
                    </ActionIcon>
                  )}
                  {onRemove !== undefined && (
                    <ActionIcon variant="subtle" color="red" aria-label={t("Delete {name}", { name: key })} title={t("Delete")} onClick={() => onRemove(key)}>
                      ✕
                    </ActionIcon>
                  )}
                </>
              )
            : undefined
        }
        actionsWidth={(mayWrite ? 80 : 0) + (copies ? 34 : 0) + (onRemove === undefined ? 0 : 34) + 16}
        tall
      />
    </EditingContext>
  );
}
