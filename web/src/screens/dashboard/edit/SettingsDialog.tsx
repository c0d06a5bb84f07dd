// Settings of a dashboard that is edited: its states, their grids, its time window, and what its aliases stand for.

import { Button, ColorInput, Group, Modal, NumberInput, Select, Stack, Switch, Table, Tabs, Text, Textarea, TextInput } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { addState, changeGrid, changeState, newId, removeAlias, removeState, setAlias, setTimeWindow } from "@/dashboard/edit/document";
import { object, type Alias, type Json } from "@/dashboard/model";
import { intervalFor, readTimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { AGGREGATIONS, LENGTHS } from "../windows";
import type { DashboardEditor } from "./editor";

function States({ editor }: { editor: DashboardEditor }): ReactElement {
  const { model, edit, document, showState } = editor;
  const [name, setName] = useState("");
  return (
    <Stack>
      <Table aria-label={t("States")}>
        <Table.Tbody>
          {model.states.map((state) => (
            <Table.Tr key={state.id}>
              <Table.Td>
                <TextInput aria-label={t("Name of the state {id}", { id: state.id })} value={state.name} onChange={(event) => {
                  const next = event.currentTarget.value;
                  edit((before) => changeState(before, state.id, { name: next }));
                }} />
              </Table.Td>
              <Table.Td>
                {state.root ? (
                  t("shown first")
                ) : (
                  <Group gap={6}>
                    <Button size="compact-sm" variant="default" onClick={() => edit((before) => changeState(before, state.id, { root: true }))}>
                      {t("Show first")}
                    </Button>
                    <Button size="compact-sm" variant="default" color="red" onClick={() => edit((before) => removeState(before, state.id))}>
                      {t("Remove")}
                    </Button>
                  </Group>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Group align="end">
        <TextInput label={t("New state")} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <Button
          disabled={name.trim() === ""}
          onClick={() => {
            const { document: next, state } = addState(document, name.trim());
            edit(() => next);
            showState(state);
            setName("");
          }}
        >
          {t("Add")}
        </Button>
      </Group>
    </Stack>
  );
}

function GridTab({ editor }: { editor: DashboardEditor }): ReactElement | null {
  const { state, edit } = editor;
  if (state === undefined) {
    return null;
  }
  const { grid } = state.main;
  const change = (next: Json): void => edit((before) => changeGrid(before, state.id, next));
  return (
    <Stack maw={360}>
      <NumberInput label={t("Columns")} min={10} max={3000} value={grid.columns} onChange={(value) => change({ columns: Number(value) || 24, minColumns: Number(value) || 24 })} />
      <NumberInput label={t("Margin between widgets, pixels")} min={0} max={50} value={grid.margin} onChange={(value) => change({ margin: Number(value) || 0 })} />
      <Switch label={t("Margin around all of them")} checked={grid.outerMargin} onChange={(event) => change({ outerMargin: event.currentTarget.checked })} />
      <Switch label={t("Fill the height of the page")} checked={grid.autoFillHeight} onChange={(event) => change({ autoFillHeight: event.currentTarget.checked })} />
      <NumberInput label={t("Height of a row on phones, pixels")} min={5} max={200} value={grid.mobileRowHeight} onChange={(value) => change({ mobileRowHeight: Number(value) || 70 })} />
      <ColorInput label={t("Background")} value={grid.backgroundColor} onChange={(backgroundColor) => change({ backgroundColor })} eyeDropperButtonProps={{ "aria-label": t("Pick a color from the screen") }} />
    </Stack>
  );
}

function TimeTab({ editor }: { editor: DashboardEditor }): ReactElement {
  const { model, document, edit } = editor;
  const window = readTimeWindow(model.timeWindow);
  const stored = object(object(document["timewindow"])["aggregation"]);
  return (
    <Stack maw={360}>
      <Select
        label={t("Time that is shown first")}
        placeholder={t("As stored")}
        allowDeselect={false}
        data={LENGTHS.map(([length, label]) => ({ value: String(length), label: t(label) }))}
        value={window.quick === undefined && window.end === undefined ? String(window.length) : null}
        onChange={(value) => edit((before) => setTimeWindow(before, { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: Number(value), interval: intervalFor(Number(value)) } }))}
      />
      <Select
        label={t("Aggregation")}
        allowDeselect={false}
        data={AGGREGATIONS}
        value={window.aggregation}
        onChange={(type) => edit((before) => setTimeWindow(before, { aggregation: { limit: 25_000, ...stored, type } }))}
      />
    </Stack>
  );
}

/** Filters with one text that says which entities they find; all others are edited as JSON. */
const NEW_FILTERS: Record<string, Json> = {
  entityType: { type: "entityType", entityType: "DEVICE", resolveMultiple: true },
  entityName: { type: "entityName", entityType: "DEVICE", entityNameFilter: "", resolveMultiple: true },
  deviceType: { type: "deviceType", deviceTypes: ["default"], deviceNameFilter: "", resolveMultiple: true },
  assetType: { type: "assetType", assetTypes: ["default"], assetNameFilter: "", resolveMultiple: true },
  entityList: { type: "entityList", entityType: "DEVICE", entityList: [], resolveMultiple: true },
  stateEntity: { type: "stateEntity", stateEntityParamName: null, defaultStateEntity: null, resolveMultiple: false },
  relationsQuery: { type: "relationsQuery", rootEntity: null, rootStateEntity: true, direction: "FROM", maxLevel: 1, fetchLastLevelOnly: false, filters: [], resolveMultiple: true },
  deviceSearchQuery: { type: "deviceSearchQuery", rootEntity: null, rootStateEntity: true, direction: "FROM", maxLevel: 1, relationType: "Contains", deviceTypes: ["default"], resolveMultiple: true },
  assetSearchQuery: { type: "assetSearchQuery", rootEntity: null, rootStateEntity: true, direction: "FROM", maxLevel: 1, relationType: "Contains", assetTypes: ["default"], resolveMultiple: true },
  entityViewType: { type: "entityViewType", entityViewTypes: ["default"], entityViewNameFilter: "", resolveMultiple: true },
  apiUsageState: { type: "apiUsageState", resolveMultiple: false },
};

function AliasRow({ alias, editor }: { alias: Alias; editor: DashboardEditor }): ReactElement {
  const [filter, setFilter] = useState(() => JSON.stringify(alias.filter, null, 2));
  const [problem, setProblem] = useState("");
  const put = (name: string, next: string): void => {
    try {
      const read: unknown = JSON.parse(next);
      setProblem("");
      editor.edit((before) => setAlias(before, alias.id, { alias: name, filter: object(read) }));
    } catch (error) {
      setProblem(String(error));
    }
  };
  return (
    <Stack gap={6} p="xs" bd="1px solid var(--mantine-color-default-border)">
      <Group align="end">
        <TextInput label={t("Name")} flex={1} value={alias.alias} onChange={(event) => put(event.currentTarget.value, filter)} />
        <Button variant="default" color="red" onClick={() => editor.edit((before) => removeAlias(before, alias.id))}>
          {t("Remove")}
        </Button>
      </Group>
      <Textarea
        label={t("Entities it stands for")}
        description={t("A filter as in entity queries, as JSON")}
        autosize
        maxRows={10}
        ff="monospace"
        value={filter}
        error={problem || undefined}
        onChange={(event) => {
          setFilter(event.currentTarget.value);
          put(alias.alias, event.currentTarget.value);
        }}
      />
    </Stack>
  );
}

function Aliases({ editor }: { editor: DashboardEditor }): ReactElement {
  const aliases = [...editor.model.aliases.values()];
  const [kind, setKind] = useState("entityType");
  return (
    <Stack>
      {aliases.length === 0 && <Text>{t("There are none yet. Choosing an entity in a widget makes one, too.")}</Text>}
      {aliases.map((alias) => (
        <AliasRow key={alias.id} alias={alias} editor={editor} />
      ))}
      <Group align="end">
        <Select label={t("Kind of filter")} allowDeselect={false} data={Object.keys(NEW_FILTERS)} value={kind} onChange={(value) => setKind(value ?? kind)} />
        <Button onClick={() => editor.edit((before) => setAlias(before, newId(), { alias: t("Alias {n}", { n: aliases.length + 1 }), filter: NEW_FILTERS[kind] ?? {} }))}>{t("Add")}</Button>
      </Group>
    </Stack>
  );
}

export function SettingsDialog({ editor, opened, onClose }: { editor: DashboardEditor; opened: boolean; onClose: () => void }): ReactElement {
  return (
    <Modal opened={opened} onClose={onClose} size="lg" title={t("Settings of the dashboard")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Tabs defaultValue="states" keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="states">{t("States")}</Tabs.Tab>
          <Tabs.Tab value="grid">{t("Grid")}</Tabs.Tab>
          <Tabs.Tab value="aliases">{t("Aliases")}</Tabs.Tab>
          <Tabs.Tab value="time">{t("Time")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="states">
          <States editor={editor} />
        </Tabs.Panel>
        <Tabs.Panel value="grid">
          <GridTab editor={editor} />
        </Tabs.Panel>
        <Tabs.Panel value="aliases">
          <Aliases editor={editor} />
        </Tabs.Panel>
        <Tabs.Panel value="time">
          <TimeTab editor={editor} />
        </Tabs.Panel>
      </Tabs>
    </Modal>
  );
}
