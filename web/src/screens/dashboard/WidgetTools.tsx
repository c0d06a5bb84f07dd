// What can be done with any widget: its values as CSV and JSON, its picture as PNG, full screen, and what it asked for.

import { ActionIcon, Menu } from "@mantine/core";
import { lazy, Suspense, useState, type ReactElement, type RefObject } from "react";
import type { SourceRequest, SourceValues } from "@/dashboard/source";
import { formatTime, t } from "@/i18n";
import { csvOf, download, saveBlob, tableText } from "@/ui/csv";
import { notify } from "@/ui/feedback";
import { rowsOf, type Row } from "./rows";
import type { Fill } from "./useFill";
import classes from "./dashboard.module.css";

const columns = (): { label: string; text: (row: Row) => string }[] => [
  { label: t("Entity"), text: (row) => row.entity },
  { label: t("Key"), text: (row) => row.key },
  { label: t("Time"), text: (row) => (row.ts === 0 ? "" : new Date(row.ts).toISOString()) },
  { label: t("Value"), text: (row) => row.value },
];

const DataDrawer = lazy(() => import("./DataDrawer"));

interface ToolsProps {
  /** The widget. */
  id: string;
  title: string;
  section: RefObject<HTMLElement | null>;
  /** What it shows; widgets that ask page by page save it themselves. */
  values: SourceValues[] | undefined;
  requests: readonly (SourceRequest | undefined)[];
  /** How it fills the screen, if it may. */
  fill: Fill | undefined;
  /** Whether a chart is shown as a table, and what changes that; nothing for other widgets. */
  table?: { shown: boolean; toggle: () => void } | undefined;
}

export function WidgetTools({ id, title, section, values, requests, fill, table }: ToolsProps): ReactElement {
  const [inspected, setInspected] = useState(false);
  const png = async (): Promise<void> => {
    const drawn = section.current;
    if (drawn === null) {
      return;
    }
    try {
      const { hasFrame, pictureOf } = await import("./picture");
      if (hasFrame(drawn)) {
        throw new Error("This widget is drawn in a frame of its own, of which no picture can be taken. Take one of the screen, or save the values as CSV.");
      }
      saveBlob(await pictureOf(drawn), `${title} ${formatTime(Date.now())}.png`);
    } catch (error) {
      notify.error(error);
    }
  };
  const copy = (shown: SourceValues[]): void => {
    const rows = rowsOf(shown);
    navigator.clipboard.writeText(tableText(columns(), rows)).then(() => notify.ok(t("{n} copied", { n: rows.length })), notify.error);
  };
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon data-omit className={classes["menu"] ?? ""} size="sm" variant="subtle" color="gray" aria-label={t(values === undefined ? "More of {title}" : "Save what {title} shows", { title })}>
            ⋮
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {values !== undefined && (
            <>
              <Menu.Item onClick={() => download(`${title}.csv`, csvOf(columns(), rowsOf(values)))}>CSV</Menu.Item>
              <Menu.Item onClick={() => download(`${title}.json`, JSON.stringify(rowsOf(values), null, 2))}>JSON</Menu.Item>
              {/* Browsers have a clipboard for pages of HTTPS and of their own machine alone. */}
              {isSecureContext && <Menu.Item onClick={() => copy(values)}>{t("Copy the values")}</Menu.Item>}
            </>
          )}
          <Menu.Item onClick={() => void png()}>PNG</Menu.Item>
          <Menu.Divider />
          <Menu.Item onClick={() => setInspected(true)}>{t("Data and questions")}</Menu.Item>
          {table !== undefined && <Menu.Item onClick={table.toggle}>{t(table.shown ? "Show as a chart" : "Show as a table")}</Menu.Item>}
          {fill !== undefined && <Menu.Item onClick={fill.toggle}>{t(fill.filled ? "Leave full screen" : "Full screen")}</Menu.Item>}
        </Menu.Dropdown>
      </Menu>
      <Suspense>{inspected && <DataDrawer title={title} widget={id} requests={requests} sources={values?.map(({ source }) => source)} onClose={() => setInspected(false)} />}</Suspense>
    </>
  );
}
