// What a widget shows, as a file: CSV and JSON of its values, PNG of its drawing.

import { ActionIcon, Menu } from "@mantine/core";
import type { ReactElement, RefObject } from "react";
import type { SourceValues } from "@/dashboard/source";
import { formatTime, t } from "@/i18n";
import { csvOf, download } from "@/ui/csv";
import { notify } from "@/ui/feedback";
import { drawPng } from "./png";
import classes from "./dashboard.module.css";

interface Row {
  entity: string;
  key: string;
  ts: number;
  value: string;
}

/** Returns all values of a widget, points included, one a row. */
export function rowsOf(values: SourceValues[]): Row[] {
  return values.flatMap(({ entities }) =>
    entities.flatMap((entity) => [
      ...[...entity.latest].map(([path, { ts, value }]) => ({ entity: entity.name, key: path.slice(path.indexOf("/") + 1), ts, value })),
      ...[...entity.points].flatMap(([key, points]) => points.map(({ ts, value }) => ({ entity: entity.name, key, ts, value }))),
    ]),
  );
}

const columns = (): { label: string; text: (row: Row) => string }[] => [
  { label: t("Entity"), text: (row) => row.entity },
  { label: t("Key"), text: (row) => row.key },
  { label: t("Time"), text: (row) => (row.ts === 0 ? "" : new Date(row.ts).toISOString()) },
  { label: t("Value"), text: (row) => row.value },
];

interface MenuProps {
  title: string;
  section: RefObject<HTMLElement | null>;
  values: SourceValues[];
}

export function ExportMenu({ title, section, values }: MenuProps): ReactElement {
  const png = async (): Promise<void> => {
    const drawing = section.current?.querySelector<HTMLCanvasElement | SVGSVGElement>("canvas, svg[data-drawing]");
    if (drawing === null || drawing === undefined) {
      notify.error(t("This widget has no drawing; save its values as CSV instead."));
      return;
    }
    await drawPng(drawing, `${title} ${formatTime(Date.now())}.png`);
  };
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon className={classes["menu"] ?? ""} size="sm" variant="subtle" color="gray" aria-label={t("Save what {title} shows", { title })}>
          ⋮
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => download(`${title}.csv`, csvOf(columns(), rowsOf(values)))}>CSV</Menu.Item>
        <Menu.Item onClick={() => download(`${title}.json`, JSON.stringify(rowsOf(values), null, 2))}>JSON</Menu.Item>
        <Menu.Item onClick={() => void png()}>PNG</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
