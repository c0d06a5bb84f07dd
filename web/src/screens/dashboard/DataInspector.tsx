// What a widget has asked the server for, how long the answer took, what came, and why nothing did.

import { Alert, Code, Group, Stack, Table, Tabs, Text, Title } from "@mantine/core";
import type { ReactElement } from "react";
import { whyEmpty } from "@/dashboard/emptiness";
import { traceOf } from "@/dashboard/sharedSource";
import { useSources, type SourceRequest } from "@/dashboard/source";
import type { Datasource } from "@/dashboard/model";
import { formatTime, t } from "@/i18n";
import { rowsOf } from "./rows";

/** More rows than these are read better in the file that the widget saves. */
const SHOWN = 200;

interface InspectorProps {
  requests: readonly (SourceRequest | undefined)[];
  sources: Datasource[];
}

export default function DataInspector({ requests, sources }: InspectorProps): ReactElement {
  const values = useSources([...requests], sources);
  if (sources.length === 0) {
    return <Text>{t("This widget asks for nothing.")}</Text>;
  }
  return (
    <Stack>
      {values.map((one, n) => {
        const request = requests[n];
        const trace = request === undefined ? undefined : traceOf(JSON.stringify(request));
        const why = whyEmpty(one, request, trace?.answeredAt !== undefined);
        const rows = rowsOf([one]);
        return (
          <section key={n} aria-label={t("Source {n}", { n: n + 1 })}>
            <Title order={3} size="h5">
              {t("Source {n}", { n: n + 1 })}
            </Title>
            {trace !== undefined && (
              <Group gap="xs" my="xs">
                <Text size="sm">
                  {trace.answeredAt === undefined
                    ? t("asked at {time}, not answered yet", { time: formatTime(trace.askedAt) })
                    : t("answered after {ms} ms; {n} answers, {entities} entities, {rows} values", { ms: trace.answeredAt - trace.askedAt, n: trace.answers, entities: one.entities.length, rows: rows.length })}
                </Text>
                {one.total > one.entities.length && <Text size="sm">{t("{n} of {total} entities are shown", { n: one.entities.length, total: one.total })}</Text>}
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
      })}
    </Stack>
  );
}
