// The live latest values of an entity as rows that can be searched, chosen, and changed where that is allowed.

import { ActionIcon, Button, Checkbox, Group, Table, Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState, type FormEvent, type ReactElement, type ReactNode } from "react";
import { plural, t } from "@/i18n";
import { useAnswered, useKeys, useValue, type LatestValues } from "@/live/latest";
import { Ago, EmptyState, notify, Waiting } from "@/ui/feedback";
import { Flow } from "@/ui/Flow";
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

interface RowProps {
  values: LatestValues;
  name: string;
  course: boolean;
  chosen: boolean;
  onChoose: () => void;
  onSave?: (value: unknown) => Promise<void>;
  onRemove?: () => void;
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
  return <span ref={ref}>{written()}</span>;
}

function LiveAgo({ values, name }: { values: LatestValues; name: string }): ReactElement {
  return <Ago ts={useValue(values, name)?.ts ?? 0} />;
}

function ValueRow({ values, name, course, chosen, onChoose, onSave, onRemove }: RowProps): ReactElement {
  const [editing, setEditing] = useState(false);
  return (
    <Table.Tr aria-selected={chosen}>
      <Table.Td w={36}>
        <Checkbox aria-label={t("Select {name}", { name })} checked={chosen} onChange={onChoose} />
      </Table.Td>
      <Table.Td>{name}</Table.Td>
      <Table.Td data-key={name} maw={420} style={{ fontVariantNumeric: "tabular-nums", overflowWrap: "anywhere" }}>
        {editing && onSave !== undefined ? <EditedValue name={name} value={values.value(name)?.value} onSave={onSave} onEnd={() => setEditing(false)} /> : <LiveText values={values} name={name} />}
      </Table.Td>
      {course && (
        <Table.Td>
          <LiveSparkline values={values} name={name} />
        </Table.Td>
      )}
      <Table.Td>
        <LiveAgo values={values} name={name} />
      </Table.Td>
      {(onSave !== undefined || onRemove !== undefined) && (
        <Table.Td>
          <Group gap={4} wrap="nowrap">
            {onSave !== undefined && !editing && (
              <Button size="compact-xs" variant="subtle" aria-label={t("Change {name}", { name })} onClick={() => setEditing(true)}>
                {t("Change")}
              </Button>
            )}
            {onRemove !== undefined && (
              <ActionIcon variant="subtle" color="red" aria-label={t("Delete {name}", { name })} onClick={onRemove}>
                ✕
              </ActionIcon>
            )}
          </Group>
        </Table.Td>
      )}
    </Table.Tr>
  );
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
  /** Buttons for the chosen keys. */
  bulk: (keys: string[], done: () => void) => ReactNode;
}

export function ValueTable({ label, values, gone, empty, course = false, onSave, onRemove, bulk }: TableProps): ReactElement {
  const [search, setSearch] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const answered = useAnswered(values);
  const keys = useKeys(values).filter((key) => gone?.has(key) !== true);
  const found = keys.filter((key) => key.toLowerCase().includes(search.trim().toLowerCase()));
  const picked = found.filter((key) => chosen.has(key));
  if (keys.length === 0) {
    return answered ? <EmptyState>{empty}</EmptyState> : <Waiting />;
  }
  const choose = (key: string): void =>
    setChosen((before) => {
      const after = new Set(before);
      return after.delete(key) ? after : after.add(key);
    });
  const hasActions = onSave !== undefined || onRemove !== undefined;
  return (
    <>
      <Group mb="xs" mih={36}>
        <TextInput aria-label={t("Search")} placeholder={t("Search")} value={search} onChange={(event) => setSearch(event.currentTarget.value)} />
        <Text size="sm" role="status">
          {picked.length > 0 ? plural(picked.length, "{n} key is selected", "{n} keys are selected") : plural(found.length, "{n} key", "{n} keys")}
        </Text>
        {picked.length > 0 && bulk(picked, () => setChosen(new Set()))}
      </Group>
      <Flow>
        <Table aria-label={label}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={36}>
                <Checkbox
                  aria-label={t("Select all")}
                  checked={picked.length > 0 && picked.length === found.length}
                  indeterminate={picked.length > 0 && picked.length < found.length}
                  onChange={() => setChosen(new Set(picked.length === found.length ? [] : found))}
                />
              </Table.Th>
              {["Key", "Value", ...(course ? ["Course"] : []), "Updated"].map((name) => (
                <Table.Th key={name}>{t(name)}</Table.Th>
              ))}
              {hasActions && <Table.Th>{t("Actions")}</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {found.map((key) => (
              <ValueRow
                key={key}
                values={values}
                name={key}
                course={course}
                chosen={chosen.has(key)}
                onChoose={() => choose(key)}
                {...(onSave === undefined ? {} : { onSave: (value: unknown) => onSave(key, value) })}
                {...(onRemove === undefined ? {} : { onRemove: () => onRemove(key) })}
              />
            ))}
          </Table.Tbody>
        </Table>
      </Flow>
    </>
  );
}
