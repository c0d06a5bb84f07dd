// Offers to select all rows that match, when all that are loaded are selected: they are asked for page by page.

import { Button, Group, Text } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import type { RowsPage } from "../rowsFile";
import { notify } from "../feedback";

interface Props<T> {
  selected: number;
  total: number;
  page: (page: number) => Promise<RowsPage<T>>;
  select: (rows: T[]) => void;
}

/** It belongs to one search and is drawn anew for another, which ends what is asked for. */
export function SelectMatching<T>({ selected, total, page, select }: Props<T>): ReactElement {
  const [progress, setProgress] = useState<number>();
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(), []);
  const selectAll = async (): Promise<void> => {
    const { signal } = (controller.current = new AbortController());
    const rows: T[] = [];
    setProgress(0);
    try {
      for (let number = 0, more = true; more && !signal.aborted; number++) {
        const part = await page(number);
        rows.push(...part.rows);
        more = part.hasNext && part.rows.length > 0;
        setProgress(rows.length);
      }
      if (!signal.aborted) {
        select(rows);
      }
    } catch (error) {
      notify.error(error);
    } finally {
      setProgress(undefined);
    }
  };
  return (
    <Group gap="xs" px="xs" pb="xs">
      <Text size="sm" role="status">
        {progress !== undefined ? t("{n} of {all}", { n: progress, all: total }) : selected < total ? t("{n} of {all} are selected.", { n: selected, all: total }) : t("All {n} that match are selected.", { n: selected })}
      </Text>
      {progress !== undefined ? (
        <Button size="compact-xs" variant="default" onClick={() => controller.current?.abort()}>
          {t("Cancel")}
        </Button>
      ) : (
        <>
          {selected < total && (
            <Button size="compact-xs" variant="default" onClick={() => void selectAll()}>
              {t("Select all {n} that match", { n: total })}
            </Button>
          )}
          <Button size="compact-xs" variant="subtle" onClick={() => select([])}>
            {t("Select none")}
          </Button>
        </>
      )}
    </Group>
  );
}
