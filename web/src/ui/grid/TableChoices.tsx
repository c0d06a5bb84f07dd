// What of a table is shown: its columns, their order and widths, filters above them.

import { ActionIcon, Button, Checkbox, Group, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { orderOf, type Arrangement } from "./columns";

/** How much a button changes a width, and what a column without one begins with, pixels. */
const STEP = 24;
const USUAL = 160;

interface Column {
  key: string;
  label: string;
  hideable?: boolean;
}

function ColumnLine({ column, arrangement }: { column: Column; arrangement: Arrangement }): ReactElement {
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

interface ChoicesProps {
  /** Nothing where they can't be chosen. */
  columns: readonly Column[] | undefined;
  arrangement: Arrangement;
  filters: { shown: boolean; toggle: () => void } | undefined;
}

export default function TableChoices({ columns, arrangement, filters }: ChoicesProps): ReactElement {
  return (
    <>
      {filters !== undefined && <Checkbox label={t("Filters above the columns")} checked={filters.shown} onChange={filters.toggle} />}
      {columns !== undefined && (
        <>
          <Text size="sm" fw={600}>
            {t("Columns")}
          </Text>
          {orderOf(columns.map(({ key }) => key), arrangement.layout.order).map((key) => {
            const column = columns.find((one) => one.key === key);
            return column === undefined ? null : <ColumnLine key={key} column={column} arrangement={arrangement} />;
          })}
          <Button size="compact-sm" variant="subtle" onClick={() => arrangement.adopt({})}>
            {t("As it was at first")}
          </Button>
        </>
      )}
    </>
  );
}
