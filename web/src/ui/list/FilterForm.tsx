// A form of filters beside the search of a list, which opens on demand. What is typed counts after a moment.

import { Button, Group, Paper } from "@mantine/core";
import { useDebouncedCallback, useId } from "@mantine/hooks";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { Fields } from "@/ui/form/Fields";
import type { FormField } from "@/ui/form/values";
import { filterForm, filtersSet, filterTexts } from "./filterValues";

interface Props {
  fields: readonly FormField[];
  /** The filters as the address has them. */
  texts: Readonly<Record<string, string>>;
  change: (texts: Record<string, string>) => void;
}

const AFTER_MS = 300;

export function FilterForm({ fields, texts, change }: Props): ReactElement {
  const [open, setOpen] = useState(false);
  const [form, setForm] = useState(() => filterForm(fields, texts));
  const id = useId();
  // What comes from elsewhere, such as the way back, is shown; what was typed here is there already.
  const known = useRef("");
  const given = JSON.stringify(fields.map(({ name }) => texts[name] ?? ""));
  useEffect(() => {
    if (known.current !== given) {
      known.current = given;
      setForm(filterForm(fields, texts));
    }
  }, [given]);
  const tell = useDebouncedCallback((next: Record<string, string>) => {
    known.current = JSON.stringify(fields.map(({ name }) => next[name] ?? ""));
    change(next);
  }, AFTER_MS);
  const count = filtersSet(fields, texts);
  const put = (update: (before: typeof form) => typeof form): void => {
    const next = update(form);
    setForm(next);
    tell(filterTexts(fields, next));
  };
  return (
    <>
      <Button size="xs" variant={count > 0 ? "light" : "default"} aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        {count === 0 ? t("Filter") : t("Filter ({n})", { n: count })}
      </Button>
      {count > 0 && (
        <Button
          size="xs"
          variant="subtle"
          onClick={() => {
            change(Object.fromEntries(fields.map(({ name }) => [name, ""])));
          }}
        >
          {t("Without filter")}
        </Button>
      )}
      {open && (
        <Paper id={id} withBorder p="sm" role="group" aria-label={t("Filter")} style={{ order: 1, flexBasis: "100%" }}>
          <Fields fields={fields} values={form} change={put} />
          <Group mt="xs" justify="flex-end">
            <Button size="compact-xs" variant="subtle" onClick={() => setOpen(false)}>
              {t("Close")}
            </Button>
          </Group>
        </Paper>
      )}
    </>
  );
}
