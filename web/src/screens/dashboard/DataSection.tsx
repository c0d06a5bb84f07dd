// One question of a widget: how long the answer took, what came, and why nothing did.

import { Alert, Code, Group, Table, Tabs, Text, Title } from "@mantine/core";
import type { ReactElement } from "react";
import type { Trace } from "@/dashboard/sharedSource";
import { formatTime, t } from "@/i18n";
import type { Row } from "./rows";

/** More rows than these are read better in the file that the widget saves. */
const SHOWN = 200;

interface SectionProps {
  title: string;
  trace: Trace | undefined;
  /** How many entities or alarms came, and how many there are. */
  came: number;
  total: number;
  rows: readonly Row[];
  why: string | undefined;
  ofAlarms?: boolean;
}

export function DataSection({ title, trace, came, total, rows, why, ofAlarms = false }: SectionProps): ReactElement {
  return (
    <section aria-label={title}>
      <Title order={3} size="h5">
        {title}
      </Title>
      {trace !== undefined && (
        <Group gap="xs" my="xs">
          <Text size="sm">
            {trace.answeredAt === undefined
              ? t("asked at {time}, not answered yet", { time: formatTime(trace.askedAt) })
              : t(ofAlarms ? "answered after {ms} ms; {n} answers, {entities} alarms" : "answered after {ms} ms; {n} answers, {entities} entities, {rows} values", { ms: trace.answeredAt - trace.askedAt, n: trace.answers, entities: came, rows: rows.length })}
          </Text>
          {total > came && <Text size="sm">{t(ofAlarms ? "{n} of {total} alarms are shown" : "{n} of {total} entities are shown", { n: came, total })}</Text>}
        </Group>
      )}
      {why !== undefined && (
        <Alert color="yellow" mb="xs">
          {why}
        </Alert>
      )}
      <Tabs defaultValue="values" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="values">{t("Values")}</Tabs.Tab>
          <Tabs.Tab value="asked">{t("What was asked")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="values">
          <Table.ScrollContainer minWidth={300} maxHeight={360}>
            <Table stickyHeader aria-label={t("Values that came")}>
              <Table.Thead>
                <Table.Tr>
                  {["Entity", "Key", "Time", "Value"].map((name) => (
                    <Table.Th key={name}>{t(name)}</Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rows.slice(-SHOWN).map((row, at) => (
                  <Table.Tr key={at}>
                    <Table.Td>{row.entity}</Table.Td>
                    <Table.Td>{row.key}</Table.Td>
                    <Table.Td>{row.ts === 0 ? "" : formatTime(row.ts)}</Table.Td>
                    <Table.Td style={{ overflowWrap: "anywhere" }}>{row.value.slice(0, 300)}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
          {rows.length > SHOWN && <Text size="xs">{t("The last {n} of {total}; the file of the widget has all.", { n: SHOWN, total: rows.length })}</Text>}
        </Tabs.Panel>
        <Tabs.Panel value="asked">
          <Code block tabIndex={0} mah={360} style={{ overflow: "auto" }}>
            {trace === undefined ? t("Nothing was asked.") : JSON.stringify(trace.asked, null, 2)}
          </Code>
        </Tabs.Panel>
      </Tabs>
    </section>
  );
}
