// What stands above and below a table of a dashboard: search, columns, filters, file, pages.

import { ActionIcon, NativeSelect, Text, TextInput } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { t } from "@/i18n";
import type { Saving } from "@/ui/rowsFile";
import type { Arrangement, GridColumn } from "@/ui/grid/columns";
import classes from "@/ui/grid/grid.module.css";
import { TableMenu } from "@/ui/grid/TableMenu";
import type { TableSettings } from "./settings";

interface ToolsProps<T> {
  settings: TableSettings;
  columns: readonly GridColumn<T>[];
  arrangement: Arrangement;
  search: string;
  onSearch: (text: string) => void;
  filters: { shown: boolean; toggle: () => void } | undefined;
  total: number;
  /** Saves all rows as a file. */
  save: (saving: Saving) => Promise<void>;
  children?: ReactNode;
}

export function TableTools<T>({ settings, columns, arrangement, search, onSearch, filters, total, save, children }: ToolsProps<T>): ReactElement {
  return (
    <div className={classes["tools"]}>
      {settings.search && <TextInput size="xs" className={classes["search"] ?? ""} aria-label={t("Search")} placeholder={t("Search")} value={search} onChange={(event) => onSearch(event.currentTarget.value)} />}
      {children}
      <div className={classes["end"]}>
        <Text size="xs" role="status">
          {t("{n} in all", { n: total })}
        </Text>
        <TableMenu columns={columns} arrangement={arrangement} chooses={settings.columnMenu} filters={filters} save={save} />
      </div>
    </div>
  );
}

interface PagerProps {
  page: number;
  pageSize: number;
  sizes: readonly number[];
  total: number;
  onPage: (page: number) => void;
  onSize: (size: number) => void;
}

export function Pager({ page, pageSize, sizes, total, onPage, onSize }: PagerProps): ReactElement | null {
  if (total <= Math.min(pageSize, ...sizes)) {
    return null;
  }
  const last = Math.max(0, Math.ceil(total / pageSize) - 1);
  return (
    <div className={classes["tools"]}>
      <div className={classes["end"]}>
        <Text size="xs" className={classes["wide"] ?? ""}>{t("Rows per page")}</Text>
        <NativeSelect size="xs" w={76} aria-label={t("Rows per page")} data={sizes.map(String)} value={String(pageSize)} onChange={(event) => onSize(Number(event.currentTarget.value))} />
        <Text size="xs">{t("{from} – {to} of {all}", { from: total === 0 ? 0 : page * pageSize + 1, to: Math.min(total, (page + 1) * pageSize), all: total })}</Text>
        <ActionIcon size="sm" variant="subtle" aria-label={t("Page before")} disabled={page === 0} onClick={() => onPage(page - 1)}>
          ‹
        </ActionIcon>
        <ActionIcon size="sm" variant="subtle" aria-label={t("Next page")} disabled={page >= last} onClick={() => onPage(page + 1)}>
          ›
        </ActionIcon>
      </div>
    </div>
  );
}
