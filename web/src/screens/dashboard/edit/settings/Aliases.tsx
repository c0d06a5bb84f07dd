// The aliases of a dashboard that is edited.

import { Accordion, Button, Group, Stack, Text } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { ALIAS_FORMS, changeKind } from "@/dashboard/edit/aliasForms";
import { newId, removeAlias, setAlias } from "@/dashboard/edit/document";
import { usesOf } from "@/dashboard/edit/layouts";
import { plural, t } from "@/i18n";
import type { DashboardEditor } from "../editor";
import { AliasForm } from "./AliasForm";

export function Aliases({ editor }: { editor: DashboardEditor }): ReactElement {
  const { model, document, edit } = editor;
  const aliases = [...model.aliases.values()];
  const [opened, setOpened] = useState<string | null>(null);
  const add = (): void => {
    const id = newId();
    const names = new Set(aliases.map(({ alias }) => alias));
    let name = t("Alias {n}", { n: aliases.length + 1 });
    while (names.has(name)) {
      name += "+";
    }
    edit((before) => setAlias(before, id, { alias: name, filter: changeKind({}, "singleEntity") }));
    setOpened(id);
  };
  return (
    <Stack>
      {aliases.length === 0 && <Text>{t("There are none yet. Choosing an entity in a widget makes one, too.")}</Text>}
      <Accordion variant="separated" value={opened} onChange={setOpened}>
        {aliases.map((alias) => {
          const uses = usesOf(document, alias.id);
          return (
            <Accordion.Item key={alias.id} value={alias.id}>
              <Accordion.Control>
                {alias.alias}
                <Text size="xs" c="var(--soft-text)">
                  {t(ALIAS_FORMS.find(({ type }) => type === alias.filter["type"])?.label ?? "Unknown")} · {plural(uses, "used by {n} widget", "used by {n} widgets")}
                </Text>
              </Accordion.Control>
              <Accordion.Panel>
                {opened === alias.id && (
                  <Stack>
                    <AliasForm
                      alias={alias}
                      taken={new Set(aliases.filter(({ id }) => id !== alias.id).map((one) => one.alias))}
                      onChange={(name, filter) => edit((before) => setAlias(before, alias.id, { alias: name, filter }))}
                    />
                    <Group justify="end">
                      <Button variant="default" color="red" onClick={() => edit((before) => removeAlias(before, alias.id))}>
                        {t("Remove")}
                      </Button>
                    </Group>
                  </Stack>
                )}
              </Accordion.Panel>
            </Accordion.Item>
          );
        })}
      </Accordion>
      <Group>
        <Button onClick={add}>{t("Add an alias")}</Button>
      </Group>
    </Stack>
  );
}
