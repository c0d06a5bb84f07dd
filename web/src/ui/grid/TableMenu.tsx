// What can be done with a table as a whole: its columns, filters above them, and a file of all rows.

import { ActionIcon, Button, Checkbox, Group, Popover, Stack, Text } from "@mantine/core";
import { useRef, useState, type ReactElement, type ReactNode } from "react";
import { t } from "@/i18n";
import type { Saving } from "@/ui/csvFile";
import { notify } from "@/ui/feedback";
import { orderOf, type Arrangement, type GridColumn } from "./columns";

/** How much a button changes a width, and what a column without one begins with, pixels. */
const STEP = 24;
const USUAL = 160;

interface MenuProps<T> {
  columns: readonly GridColumn<T>[];
  arrangement: Arrangement;
  /** Whether columns can be chosen. */
  chooses?: boolean;
  filters?: { shown: boolean; toggle: () => void } | undefined;
  /** Saves all rows as a file. */
  save: (saving: Saving) => Promise<void> | void;
  /** What else can be done. */
  children?: ReactNode;
}

interface ColumnLineProps {
  column: { key: string; label: string; hideable?: boolean };
  arrangement: Arrangement;
}

function ColumnLine({ column, arrangement }: ColumnLineProps): ReactElement {
  const { key, label } = column;
  const name = label || key;
  const resize = (change: number): void => arrangement.resize(key, (arrangement.widths[key] ?? USUAL) + change);
  const isPinned = arrangement.pinned.has(key);
  const acts = [
    { label: "{column}: narrower", title: "narrower", sign: "−", act: () => resize(-STEP) },
    { label: "{column}: wider", title: "wider", sign: "+", act: () => resize(STEP) },
    { label: "{column}: one place back", title: "one place back", sign: "↑", act: () => arrangement.step(key, -1) },
    { label: "{column}: one place on", title: "one place on", sign: "↓", act: () => arrangement.step(key, 1) },
  ];
  return (
    <Group gap={4} wrap="nowrap" w="100%">
      <Checkbox style={{ flex: 1 }} label={name} disabled={column.hideable === false} checked={column.hideable === false || !arrangement.hidden.has(key)} onChange={() => arrangement.toggle(key)} />
      {acts.map((one) => (
        <ActionIcon key={one.title} size={24} variant="subtle" aria-label={t(one.label, { column: name })} title={t(one.title)} onClick={one.act}>
          {one.sign}
        </ActionIcon>
      ))}
      <ActionIcon size={24} variant={isPinned ? "light" : "subtle"} aria-pressed={isPinned} aria-label={t("{column}: stays in view", { column: name })} title={t("stays in view")} onClick={() => arrangement.pin(key)}>
        ⇤
      </ActionIcon>
    </Group>
  );
}

export function TableMenu<T>({ columns, arrangement, chooses = true, filters, save, children }: MenuProps<T>): ReactElement {
  const [progress, setProgress] = useState<{ done: number; total: number }>();
  const cancel = useRef<AbortController>(undefined);
  const saveAll = async (): Promise<void> => {
    const controller = new AbortController();
    cancel.current = controller;
    setProgress({ done: 0, total: 0 });
    try {
      await save({ tell: (done, total) => setProgress({ done, total }), signal: controller.signal });
    } catch (error) {
      notify.error(error);
    } finally {
      setProgress(undefined);
    }
  };
  const inOrder = orderOf(columns.map((column) => column.key), arrangement.layout.order);
  return (
    <>
      {progress !== undefined && progress.total > 0 && (
        <Group gap={4} wrap="nowrap">
          <Text size="xs" role="status">
            {t("{n} of {all}", { n: progress.done, all: progress.total })}
          </Text>
          <Button size="compact-xs" variant="default" onClick={() => cancel.current?.abort()}>
            {t("Cancel")}
          </Button>
        </Group>
      )}
      <Popover position="bottom-end" withinPortal trapFocus>
        <Popover.Target>
          <ActionIcon size="md" variant="subtle" aria-label={t("Columns, filters, file")} title={t("Columns, filters, file")}>
            ⋮
          </ActionIcon>
        </Popover.Target>
        <Popover.Dropdown>
          <Stack gap={6} mah="50vh" style={{ overflow: "auto" }} align="start">
            {filters !== undefined && <Checkbox label={t("Filters above the columns")} checked={filters.shown} onChange={filters.toggle} />}
            <Button size="compact-sm" variant="default" disabled={progress !== undefined} onClick={() => void saveAll()}>
              {t("Save as CSV")}
            </Button>
            {children}
            {chooses && (
              <>
                <Text size="sm" fw={600}>
                  {t("Columns")}
                </Text>
                {inOrder.map((key) => {
                  const column = columns.find((one) => one.key === key);
                  return column === undefined ? null : <ColumnLine key={key} column={column} arrangement={arrangement} />;
                })}
                <Button size="compact-sm" variant="subtle" onClick={() => arrangement.adopt({})}>
                  {t("As it was at first")}
                </Button>
              </>
            )}
          </Stack>
        </Popover.Dropdown>
      </Popover>
    </>
  );
}
