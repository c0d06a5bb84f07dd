// The filters of a dashboard that is edited. Widgets choose one for each of their sources.

import { Accordion, Button, Group, Stack, Text } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { newId } from "@/dashboard/edit/document";
import { newKeyFilter } from "@/dashboard/edit/filterForms";
import { removeFilter, setFilter, usesOf } from "@/dashboard/edit/layouts";
import { object } from "@/dashboard/model";
import { plural, t } from "@/i18n";
import type { DashboardEditor } from "../editor";
import { FilterForm } from "./FilterForm";

export function Filters({ editor }: { editor: DashboardEditor }): ReactElement {
  const { model, document, edit } = editor;
  const filters = [...model.filters.values()];
  const [opened, setOpened] = useState<string | null>(null);
  return (
    <Stack>
      {filters.length === 0 && <Text>{t("There are none yet. A filter narrows what an alias finds, by values and fields of the entities.")}</Text>}
      <Accordion variant="separated" value={opened} onChange={setOpened}>
        {filters.map(({ id, name }) => {
          return (
            <Accordion.Item key={id} value={id}>
              <Accordion.Control>
                {name}
                <Text size="xs" c="var(--soft-text)">
                  {plural(usesOf(document, id), "used by {n} widget", "used by {n} widgets")}
                </Text>
              </Accordion.Control>
              <Accordion.Panel>
                {opened === id && (
                  <Stack>
                    <FilterForm filter={object(object(document["filters"])[id])} onChange={(filter) => edit((before) => setFilter(before, id, filter))} />
                    <Group justify="end">
                      <Button variant="default" color="red" onClick={() => edit((before) => removeFilter(before, id))}>
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
      <Button
        w="fit-content"
        onClick={() => {
          const id = newId();
          edit((before) => setFilter(before, id, { filter: t("Filter {n}", { n: filters.length + 1 }), editable: true, keyFilters: [newKeyFilter()] }));
          setOpened(id);
        }}
      >
        {t("Add a filter")}
      </Button>
    </Stack>
  );
}
