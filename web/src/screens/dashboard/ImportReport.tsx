// The report on a dashboard that was made elsewhere.

import { Badge, Group, List, Modal, SegmentedControl, Stack, Table, Text } from "@mantine/core";
import { useMemo, useState, type ReactElement } from "react";
import { countsOf, importReport, VERDICTS, type Verdict, type WidgetReport } from "@/dashboard/report";
import { t } from "@/i18n";
import { useMissingIcons } from "@/icons/drawings";
import { EmptyState } from "@/ui/feedback";
import { Flow } from "@/ui/Flow";

const COLORS: Record<Verdict, string> = { native: "teal", approximated: "yellow", code: "blue", unknown: "red" };

function CodeList({ code }: Pick<WidgetReport, "code">): ReactElement | null {
  return code.length === 0 ? null : (
    <List size="sm">
      {code.map((one) => (
        <List.Item key={one.where}>
          {one.where}: {t(one.runs ? "runs in the sandbox" : "is not run")}
          {one.asks.length > 0 && ` – ${t("asks for: {things}", { things: one.asks.map((name) => t(name)).join(", ") })}`}
        </List.Item>
      ))}
    </List>
  );
}

export default function ImportReport({ configuration, opened, onClose }: { configuration: unknown; opened: boolean; onClose: () => void }): ReactElement {
  const isMissing = useMissingIcons();
  const report = useMemo(() => importReport(configuration, isMissing), [configuration, isMissing]);
  const counts = countsOf(report);
  const [shown, setShown] = useState<string>("all");
  const rows = report.filter(({ verdict }) => shown === "all" || verdict === shown);
  return (
    <Modal opened={opened} onClose={onClose} size="72rem" title={t("How this dashboard is drawn here")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Stack>
        <Text size="sm">{t("Code of dashboards runs in a frame without access to the page, the session and the network. What it asks for is told from its text.")}</Text>
        <SegmentedControl
          aria-label={t("Which widgets")}
          value={shown}
          onChange={setShown}
          data={[{ value: "all", label: `${t("All")} (${report.length})` }, ...VERDICTS.map(({ id, label }) => ({ value: id, label: `${t(label)} (${counts[id]})` }))]}
        />
        {rows.length === 0 ? (
          <EmptyState>{t("No widget is of this kind.")}</EmptyState>
        ) : (
          <Flow>
            <Table aria-label={t("Widgets")}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t("Widget")}</Table.Th>
                  <Table.Th>{t("Drawn")}</Table.Th>
                  <Table.Th>{t("What to know")}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rows.map((one) => (
                  <Table.Tr key={one.id}>
                    <Table.Td>
                      {one.title}
                      <Text size="xs" c="var(--soft-text)" style={{ overflowWrap: "anywhere" }}>
                        {one.fqn}
                      </Text>
                    </Table.Td>
                    <Table.Td>
                      <Group>
                        <Badge color={COLORS[one.verdict]} variant="light" autoContrast tt="none">
                          {t(VERDICTS.find(({ id }) => id === one.verdict)?.label ?? "")}
                        </Badge>
                      </Group>
                    </Table.Td>
                    <Table.Td>
                      {one.verdict === "unknown" && <Text size="sm">{t("Nobody here draws this type: its place shows its name and its values.")}</Text>}
                      {one.notes.map((note) => (
                        <Text key={note} size="sm">
                          {t(note)}
                        </Text>
                      ))}
                      <CodeList code={one.code} />
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Flow>
        )}
      </Stack>
    </Modal>
  );
}
