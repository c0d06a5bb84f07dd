// What differs between two forms of a document, for people to read.

import { Badge, Group, Stack, Table, Text, Title } from "@mantine/core";
import type { ReactElement } from "react";
import type { PartChange, SectionChange } from "./diff";
import { plural, t } from "@/i18n";

const LOOKS = {
  added: { color: "teal", label: "added" },
  removed: { color: "red", label: "removed" },
  changed: { color: "blue", label: "changed" },
} as const;

/** More changed fields than these are counted instead. */
const SHOWN = 40;

function Part({ part }: { part: PartChange }): ReactElement {
  const look = LOOKS[part.kind];
  return (
    <div>
      <Group gap="xs" wrap="nowrap">
        <Badge color={look.color} variant="light" autoContrast style={{ flex: "none" }}>
          {t(look.label)}
        </Badge>
        <Text fw={500} style={{ overflowWrap: "anywhere" }}>
          {part.name}
        </Text>
      </Group>
      {part.fields.length > 0 && (
        <Table aria-label={t("Changed fields of {name}", { name: part.name })} layout="fixed" fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t("Field")}</Table.Th>
              <Table.Th>{t("Before")}</Table.Th>
              <Table.Th>{t("After")}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody style={{ overflowWrap: "anywhere" }}>
            {part.fields.slice(0, SHOWN).map((field) => (
              <Table.Tr key={field.path}>
                <Table.Td>{field.path}</Table.Td>
                <Table.Td>{field.before === undefined ? "–" : <del>{field.before}</del>}</Table.Td>
                <Table.Td>{field.after === undefined ? "–" : <ins>{field.after}</ins>}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {part.fields.length > SHOWN && <Text size="sm">{plural(part.fields.length - SHOWN, "and {n} more field", "and {n} more fields")}</Text>}
    </div>
  );
}

export function DiffView({ changes }: { changes: readonly SectionChange[] }): ReactElement {
  if (changes.length === 0) {
    return <Text>{t("Both are the same.")}</Text>;
  }
  return (
    <Stack>
      {changes.map((section) => (
        <section key={section.title} aria-label={t(section.title)}>
          <Title order={3} size="h5" mb="xs">
            {t(section.title)}
          </Title>
          <Stack gap="sm">
            {section.parts.map((part, n) => (
              <Part key={`${part.name} ${n}`} part={part} />
            ))}
          </Stack>
        </section>
      ))}
    </Stack>
  );
}
