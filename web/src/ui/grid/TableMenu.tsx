// What can be done with a table as a whole: its columns, filters above them, and a file of all rows.

import { ActionIcon, Button, Checkbox, Group, Popover, Stack, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import type { Arrangement, GridColumn } from "./columns";

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
  save: () => Promise<void> | void;
}

export function TableMenu<T>({ columns, arrangement, chooses = true, filters, save }: MenuProps<T>): ReactElement {
  const saveAll = async (): Promise<void> => {
    try {
      await save();
    } catch (error) {
      notify.error(error);
    }
  };
  const resize = (key: string, change: number): void => arrangement.resize(key, (arrangement.widths[key] ?? USUAL) + change);
  const hideable = columns.filter((column) => column.hideable !== false);
  return (
    <Popover position="bottom-end" withinPortal trapFocus>
      <Popover.Target>
        <ActionIcon size="md" variant="subtle" aria-label={t("Columns, filters, file")} title={t("Columns, filters, file")}>
          ⋮
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap={6} mah="50vh" style={{ overflow: "auto" }} align="start">
          {filters !== undefined && <Checkbox label={t("Filters above the columns")} checked={filters.shown} onChange={filters.toggle} />}
          <Button size="compact-sm" variant="default" onClick={() => void saveAll()}>
            {t("Save as CSV")}
          </Button>
          {chooses && hideable.length > 0 && (
            <>
              <Text size="sm" fw={600}>
                {t("Columns")}
              </Text>
              {hideable.map((column) => (
                <Group key={column.key} gap={4} wrap="nowrap" w="100%">
                  <Checkbox style={{ flex: 1 }} label={column.label || column.key} checked={!arrangement.hidden.has(column.key)} onChange={() => arrangement.toggle(column.key)} />
                  <ActionIcon size={24} variant="subtle" aria-label={t("{column}: narrower", { column: column.label })} title={t("narrower")} onClick={() => resize(column.key, -STEP)}>
                    −
                  </ActionIcon>
                  <ActionIcon size={24} variant="subtle" aria-label={t("{column}: wider", { column: column.label })} title={t("wider")} onClick={() => resize(column.key, STEP)}>
                    +
                  </ActionIcon>
                </Group>
              ))}
            </>
          )}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
