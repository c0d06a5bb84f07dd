// Rate limits such as `100:1,2000:60`, as numbers that people read.

import { ActionIcon, Button, Group, Input, NumberInput, Text } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { ratesOf, ratesText, type RateLimit } from "./values";

export function RatesField({ label, value, change }: { label: string; value: unknown; change: (value: string | null) => void }): ReactElement {
  const [limits, setLimits] = useState<RateLimit[]>(() => ratesOf(typeof value === "string" ? value : ""));
  const store = (next: RateLimit[]): void => {
    setLimits(next);
    change(ratesText(next));
  };
  const put = (at: number, part: Partial<RateLimit>): void => store(limits.map((limit, n) => (n === at ? { ...limit, ...part } : limit)));
  return (
    <Input.Wrapper label={label} labelElement="div">
      {limits.length === 0 && (
        <Text size="sm" c="var(--soft-text)">
          {t("No limit")}
        </Text>
      )}
      {limits.map((limit, at) => (
        <Group key={at} gap="xs" mb={4} wrap="nowrap">
          <NumberInput aria-label={t("{label}: messages", { label })} min={1} w={110} value={limit.count} onChange={(next) => put(at, { count: Number(next) })} />
          <Text size="sm">{t("in")}</Text>
          <NumberInput aria-label={t("{label}: seconds", { label })} min={1} w={90} value={limit.seconds} onChange={(next) => put(at, { seconds: Number(next) })} />
          <Text size="sm">s</Text>
          <ActionIcon variant="subtle" color="red" aria-label={t("Remove {n}", { n: at + 1 })} onClick={() => store(limits.filter((_, n) => n !== at))}>
            ✕
          </ActionIcon>
        </Group>
      ))}
      <Button size="compact-xs" variant="default" aria-label={t("Add a limit: {label}", { label })} onClick={() => store([...limits, { count: 100, seconds: 1 }])}>
        {t("Add a limit")}
      </Button>
    </Input.Wrapper>
  );
}
