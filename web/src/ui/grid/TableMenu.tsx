// What can be done with a table as a whole: its columns, filters above them, and a file of all rows.

import { ActionIcon, Button, Group, Popover, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useRef, useState, type ReactElement, type ReactNode } from "react";
import { t } from "@/i18n";
import type { FileFormat, Saving } from "@/ui/rowsFile";
import { notify } from "@/ui/feedback";
import type { Arrangement, GridColumn } from "./columns";

// Few open the menu.
const TableChoices = lazy(() => import("./TableChoices"));

const FORMATS: readonly { format: FileFormat; label: string }[] = [
  { format: "csv", label: "Save as CSV" },
  { format: "xlsx", label: "Save as Excel (XLSX)" },
  { format: "json", label: "Save as JSON" },
];

interface MenuProps<T> {
  columns: readonly GridColumn<T>[];
  arrangement: Arrangement;
  /** Whether columns can be chosen. */
  chooses?: boolean;
  filters?: { shown: boolean; toggle: () => void } | undefined;
  /** Saves all rows as a file. */
  save: (saving: Saving) => Promise<void>;
  /** What else can be done. */
  children?: ReactNode;
}

export function TableMenu<T>({ columns, arrangement, chooses = true, filters, save, children }: MenuProps<T>): ReactElement {
  const [progress, setProgress] = useState<{ done: number; total: number }>();
  const cancel = useRef<AbortController>(undefined);
  const saveAll = async (format: FileFormat): Promise<void> => {
    const controller = new AbortController();
    cancel.current = controller;
    setProgress({ done: 0, total: 0 });
    try {
      await save({ format, tell: (done, total) => setProgress({ done, total }), signal: controller.signal });
    } catch (error) {
      notify.error(error);
    } finally {
      setProgress(undefined);
    }
  };
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
            {FORMATS.map(({ format, label }) => (
              <Button key={format} size="compact-sm" variant="default" disabled={progress !== undefined} onClick={() => void saveAll(format)}>
                {t(label)}
              </Button>
            ))}
            {children}
            <Suspense>
              <TableChoices columns={chooses ? columns : undefined} arrangement={arrangement} filters={filters} />
            </Suspense>
          </Stack>
        </Popover.Dropdown>
      </Popover>
    </>
  );
}
