// Many entities from a CSV file: the file, what its columns are, then batches of lines with what went wrong in each.

import { Button, Checkbox, FileInput, Group, Modal, Progress, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { plural, t } from "@/i18n";
import { Flow } from "@/ui/Flow";
import { wordsOf } from "@/ui/form/values";
import { messageOf, notify } from "@/ui/feedback";
import { csvRecords, guessColumn, KEYED, type ImportColumn } from "./importing";
import type { EntityKind } from "./kinds";

/** Lines of one request: a failed one can be sent again without harm. */
const BATCH = 500;

interface Outcome {
  created: number;
  updated: number;
  errors: number;
  errorsList: string[];
}

const TYPES = {
  DEVICE: ["IGNORE", "NAME", "TYPE", "LABEL", "DESCRIPTION", "IS_GATEWAY", "SERVER_ATTRIBUTE", "SHARED_ATTRIBUTE", "TIMESERIES", "ACCESS_TOKEN", "X509", "MQTT_CLIENT_ID", "MQTT_USER_NAME", "MQTT_PASSWORD"],
  ASSET: ["IGNORE", "NAME", "TYPE", "LABEL", "DESCRIPTION", "SERVER_ATTRIBUTE", "TIMESERIES"],
};

export default function BulkImport({ kind }: { kind: EntityKind }): ReactElement {
  const [opened, { open, close }] = useDisclosure(false);
  const [text, setText] = useState("");
  const [header, setHeader] = useState(true);
  const [delimiter, setDelimiter] = useState(",");
  const [columns, setColumns] = useState<ImportColumn[]>([]);
  const [done, setDone] = useState<number>();
  const [outcome, setOutcome] = useState<Outcome>();
  const cache = useQueryClient();
  const records = text === "" ? [] : csvRecords(text, delimiter);
  const lines = header ? records.slice(1) : records;
  const read = async (file: File | null): Promise<void> => {
    setOutcome(undefined);
    const content = (await file?.text()) ?? "";
    const split = [",", ";", "\t"].find((mark) => (csvRecords(content.slice(0, 10_000), mark)[0]?.cells.length ?? 0) > 1) ?? ",";
    setDelimiter(split);
    setText(content);
    setColumns((csvRecords(content, split)[0]?.cells ?? []).map(guessColumn));
  };
  const put = (at: number, part: Partial<ImportColumn>): void => setColumns(columns.map((column, n) => (n === at ? { ...column, ...part } : column)));
  const run = async (): Promise<void> => {
    const total: Outcome = { created: 0, updated: 0, errors: 0, errorsList: [] };
    const used = columns.flatMap((column, n) => (column.type === "IGNORE" ? [] : [n]));
    const mapping = { columns: used.map((n) => columns[n]), delimiter: ",", update: true, header: false };
    for (let at = 0; at < lines.length; at += BATCH) {
      setDone(at);
      const part = lines.slice(at, at + BATCH);
      const file = part.map(({ cells }) => used.map((n) => `"${(cells[n] ?? "").replaceAll('"', '""')}"`).join(",")).join("\n");
      try {
        const answer = await api.post<Outcome>(`/api/${kind.assign ?? ""}/bulk_import`, { file, mapping });
        total.created += answer.created;
        total.updated += answer.updated;
        total.errors += answer.errors;
        total.errorsList.push(...answer.errorsList.map((error) => (at === 0 ? error : t("From line {n}: {error}", { n: part[0]?.line ?? 0, error }))));
      } catch (error) {
        total.errors += part.length;
        total.errorsList.push(t("From line {n}: {error}", { n: part[0]?.line ?? 0, error: messageOf(error) }));
      }
    }
    setDone(undefined);
    setOutcome(total);
    await cache.invalidateQueries({ queryKey: ["list"] });
  };
  const ready = lines.length > 0 && columns.some(({ type }) => type === "NAME") && columns.every(({ type, key }) => !KEYED.has(type) || key !== "");
  return (
    <>
      <Button variant="default" onClick={open}>
        {t("Import CSV")}
      </Button>
      <Modal opened={opened} onClose={close} size="xl" title={t("Import from a CSV file")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Stack>
          <FileInput label={t("File")} accept=".csv,text/csv,text/plain" onChange={(file) => void read(file).catch(notify.error)} />
          {records.length > 0 && (
            <>
              <Checkbox label={t("The first line names the columns")} checked={header} onChange={(event) => setHeader(event.currentTarget.checked)} />
              <Flow>
                <Table aria-label={t("Columns")}>
                  <Table.Thead>
                    <Table.Tr>
                      {["Column", "Example", "Becomes", "Key"].map((label) => (
                        <Table.Th key={label}>{t(label)}</Table.Th>
                      ))}
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {columns.map((column, n) => (
                      <Table.Tr key={n}>
                        <Table.Td>{header ? records[0]?.cells[n] : n + 1}</Table.Td>
                        <Table.Td>{lines[0]?.cells[n]}</Table.Td>
                        <Table.Td>
                          <Select
                            aria-label={t("Column {n} becomes", { n: n + 1 })}
                            allowDeselect={false}
                            data={TYPES[kind.type === "ASSET" ? "ASSET" : "DEVICE"].map((type) => ({ value: type, label: t(wordsOf(type)) }))}
                            value={column.type}
                            onChange={(type) => put(n, { type: type ?? "IGNORE" })}
                          />
                        </Table.Td>
                        <Table.Td>
                          {KEYED.has(column.type) && (
                            <TextInput aria-label={t("Key of column {n}", { n: n + 1 })} value={column.key} onChange={(event) => put(n, { key: event.currentTarget.value })} />
                          )}
                        </Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </Flow>
              <Group>
                <Button disabled={!ready} loading={done !== undefined} onClick={() => void run()}>
                  {plural(lines.length, "Import {n} line", "Import {n} lines")}
                </Button>
                {!ready && <Text size="sm">{t("One column has to be the name, and attributes and series need a key.")}</Text>}
              </Group>
            </>
          )}
          {done !== undefined && <Progress aria-label={t("Progress")} value={(100 * done) / Math.max(1, lines.length)} />}
          {outcome !== undefined && (
            <Text role="status">{t("{created} created, {updated} updated, {errors} with errors", { created: outcome.created, updated: outcome.updated, errors: outcome.errors })}</Text>
          )}
          {outcome?.errorsList.slice(0, 100).map((error) => (
            <Text key={error} size="sm" c="var(--mantine-color-error)">
              {error}
            </Text>
          ))}
        </Stack>
      </Modal>
    </>
  );
}
