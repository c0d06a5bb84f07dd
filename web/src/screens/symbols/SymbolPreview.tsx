// A symbol with values that somebody tries it with. What a click would do is told, and not done.

import { Stack, Text } from "@mantine/core";
import { useMemo, useState, type ReactElement } from "react";
import type { Json } from "@/dashboard/json";
import { plainWords } from "@/dashboard/words";
import { t } from "@/i18n";
import { Fields } from "@/ui/form/Fields";
import type { FormValues } from "@/ui/form/values";
import { EmptyState } from "@/ui/feedback";
import { emptyValue, readSymbol } from "@/widgets/symbol/symbol";
import { valueField } from "@/widgets/symbol/symbolForm";
import { DrawnSymbol } from "@/widgets/symbol/SymbolWidget";

interface Done {
  n: number;
  id: string;
  value: unknown;
}

/** So many clicks are told; the oldest go. */
const MOST = 5;

export default function SymbolPreview({ content, round }: { content: string; round: number }): ReactElement {
  const symbol = useMemo(() => readSymbol(content, {}), [content]);
  const [tried, setTried] = useState<FormValues>({});
  const [done, setDone] = useState<readonly Done[]>([]);
  if (symbol === undefined) {
    return <EmptyState>{t("This is no drawing that can be shown as a symbol.")}</EmptyState>;
  }
  const shown = symbol.behaviors.filter(({ type }) => type === "value");
  // Ids may have dots, which paths of fields take for steps.
  const begin = shown.map(({ settings, valueType }) => settings["defaultValue"] ?? emptyValue(valueType));
  const values: FormValues = Object.fromEntries(shown.map(({ id }, n) => [`v${n}`, tried[id] ?? begin[n]]));
  const given: Json = Object.fromEntries(shown.map(({ id }, n) => [id, values[`v${n}`]]));
  return (
    <Stack gap="xs">
      <div data-preview style={{ height: 320, resize: "both", overflow: "hidden", border: "1px solid var(--mantine-color-default-border)", borderRadius: 6, display: "flex", flexDirection: "column" }}>
        <DrawnSymbol key={round} symbol={symbol} title={t("Preview")} entities={[]} act={() => undefined} test={{ values: given, onAction: (id, value) => setDone((before) => [{ n: (before[0]?.n ?? 0) + 1, id, value }, ...before].slice(0, MOST)) }} />
      </div>
      {shown.length > 0 && (
        <Fields
          key={round}
          fields={shown.map(({ name, valueType }, n) => valueField(valueType, `v${n}`, plainWords(name)))}
          values={values}
          change={(update) => {
            const next = update(values);
            setTried((before) => ({ ...before, ...Object.fromEntries(shown.map(({ id }, n) => [id, next[`v${n}`]])) }));
          }}
        />
      )}
      <div aria-live="polite">
        {done.map(({ n, id, value }) => (
          <Text key={n} size="sm">
            {value === null || value === undefined ? t("A click asked for “{id}”.", { id }) : t("A click asked for “{id}” with {value}.", { id, value: JSON.stringify(value) })}
          </Text>
        ))}
      </div>
      <Text size="sm">{t("Clicks are told here and do nothing. The code runs without the session and without network.")}</Text>
    </Stack>
  );
}
